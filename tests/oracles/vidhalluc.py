"""VidHalluc's four released evaluations as plain loops, bugs included.

They follow the scripts' rules step by step and share no code with the package.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any


def yes_or_no(text: str) -> str:
    """Return what is before the first full stop and the first comma, in upper case."""
    text = text.strip()
    text = text.split(".")[0]
    text = text.split(",")[0]
    return text.strip().upper()


def binary(truth: Mapping[str, Any], answers: Mapping[str, Any]) -> dict[str, float]:
    """Questions whose clips are all right; questions without an answer leave the denominator."""
    questions = correct = 0
    for key, asked in truth.items():
        if key not in answers or not answers[key]:
            continue
        for place, question in enumerate(asked):
            if place >= len(answers[key]):
                continue
            said = answers[key][place].get("a") or {}
            questions += 1
            right = True
            for clip, label in question["a"].items():
                if clip not in said or yes_or_no(said[clip]) != label.upper():
                    right = False
            correct += right
    return {"questions": questions, "correct": correct}


def letters(text: str, choices: Mapping[str, str]) -> set[str]:
    """Return capitals that stand alone, or the first choice whose text occurs."""
    found = set(re.findall(r"\b[A-D]\b", text))
    if not found:
        for letter, choice in choices.items():
            if choice.lower() in text.lower():
                return {letter}
    return found


def choices(clips: Mapping[str, Any]) -> dict[str, float]:
    """Clips whose letters are exactly those of the label."""
    questions = correct = 0
    for held in clips.values():
        for clip in held.values():
            questions += 1
            wanted = {letter for letter in clip["Correct Answer"] if letter in "ABCD"}
            correct += letters(clip["Model Answer"], clip["Choices"]) == wanted
    return {"questions": questions, "correct": correct}


BEFORE = r"(action [ab]|[ab][\.\)])[^before]+before[^action]*?(action [ab]|[ab][\.\)])"
THEN = r"(action [ab]|[ab][\.\)])[^then]+then[^action]*?(action [ab]|[ab][\.\)])"
AFTER = r"(action [ab]|[ab][\.\)])[^after]+after[^action]*?(action [ab]|[ab][\.\)])"


def order(text: str) -> str | None:
    """Return the order of two actions as the script reads it."""
    text = text.lower()
    if text == "ab" or text == "ba" or text == "a" or text == "b":
        return text.upper()
    if "not clear" in text or "no clear" in text:
        return None
    if "action a" in text and "action b" in text:
        if "before" in text:
            match = re.search(BEFORE, text)
            if match:
                return (match.group(1)[-1] + match.group(2)[-1]).upper()
        elif "then" in text:
            match = re.search(THEN, text)
            if match:
                return (match.group(1)[-1] + match.group(2)[-1]).upper()
        elif "after" in text:
            match = re.search(AFTER, text)
            if match:
                return (match.group(2)[-1] + match.group(1)[-1]).upper()
        marks = re.findall(r"action [ab]|[ab][\.\)]", text)
        return "".join(mark[-1] for mark in marks).upper()
    if "action a" in text:
        return "A"
    if "action b" in text:
        return "B"
    return None


def orders(videos: Mapping[str, Any]) -> dict[str, float]:
    """Videos whose order is that of the label."""
    right = [order(video["Model Answer"]) == video["Correct Answer"] for video in videos.values()]
    return {"questions": len(right), "correct": sum(right)}


def change_and_places(text: str) -> tuple[str, str | None]:
    """Return what the model says of the change, and its text about the locations."""
    places = None
    if ", Locations: " in text:
        text, places = text.split(", Locations: ", 1)
    if ": " in text:
        text = text.split(": ", 1)[1]
    return text.split(",")[0].strip(), places


def points(similarity: float) -> float:
    """Return the points of a place."""
    if similarity <= 0.5:
        return 0.0
    least, most = 1 / (1 + math.exp(-0.5)), 1 / (1 + math.exp(-1.0))
    return (1 / (1 + math.exp(-similarity)) - least) / (most - least)


def from_and_to(text: str | None) -> tuple[str, str] | None:
    """Return the two places of a text that begins with "from"."""
    match = re.match(r"from (.+?) to (.+?)\.", text or "", re.IGNORECASE)
    return (match.group(1), match.group(2)) if match else None


def scene_changes(
    truth: Mapping[str, Any], answers: Mapping[str, str], table: Sequence[Mapping[str, Any]]
) -> dict[str, float]:
    """Matthews correlation, classification, description and overall score."""
    known = {(row["model"], row["truth"]): row["similarity"] for row in table}
    tp = fn = fp = tn = 0
    gained = most = 0.0
    for key, video in truth.items():
        if key not in answers:
            continue
        said, places = change_and_places(answers[key])
        is_yes, says_yes = video["Scene change"].lower() == "yes", said.lower() == "yes"
        if is_yes and says_yes:
            tp += 1
            most += 2
            ours, theirs = from_and_to(places), from_and_to(video["Locations"])
            if ours and theirs:
                gained += points(known[ours[0], theirs[0]]) + points(known[ours[1], theirs[1]])
        elif is_yes:
            fn += 1
        elif says_yes:
            fp += 1
        else:
            tn += 1
    below = math.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
    mcc = (tp * tn - fp * fn) / below if below else 0.0
    classification = ((mcc + 1) / 2) ** 2
    description = gained / most if most else 0.0
    return {
        **{"tp": tp, "fn": fn, "fp": fp, "tn": tn, "mcc": mcc},
        "classification_score": classification,
        "description_score": description,
        "overall_score": 0.6 * classification + 0.4 * description,
    }
