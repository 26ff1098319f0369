"""A panel's card: how its judges agree, how often each is right, and what their votes weigh."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from hallujudge.metrics.framework.agreement import JudgedTwice, cohen_kappa
from hallujudge.metrics.framework.arrays import FloatArray
from hallujudge.metrics.framework.json_values import file_text
from hallujudge.sdk.errors import InvalidInputError
from hallujudge.sdk.runs.stored_runs import StoredRun, read_run

from .human_labels import match_labels, read_labels
from .verdicts import read_verdicts

# Dawid and Skene's rounds end when no probability changes by more than this. A few dozen rounds are
# usual; the other bound only makes sure that the loop ends.
_STEADY = 1e-10
_ROUNDS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteModel:
    """What the votes of judges say about a claim, if judges err independently of each other."""

    sensitivity: FloatArray
    """For each judge the share of supported claims that it votes for."""
    leniency: FloatArray
    """For each judge the share of unsupported claims that it votes for."""
    supported: float
    """Share of claims that are supported."""

    @property
    def votes_for(self) -> FloatArray:
        """What each judge's vote for a claim adds to the log odds that it is supported."""
        return np.log(self.sensitivity / self.leniency)

    @property
    def votes_against(self) -> FloatArray:
        """What each judge's vote against a claim adds."""
        return np.log((1 - self.sensitivity) / (1 - self.leniency))

    @property
    def prior(self) -> float:
        """Log odds that a claim is supported before any vote."""
        return float(np.log(self.supported / (1 - self.supported)))

    def posterior(self, votes: FloatArray) -> FloatArray:
        """Return the probability that each claim is supported.

        Args:
            votes: A row for each claim and a column for each judge: 1 for, 0 against, NaN no vote.
        """
        added = np.where(votes == 1, self.votes_for, self.votes_against)
        # A judge without a verdict says nothing for or against a claim.
        odds = self.prior + np.where(np.isnan(votes), 0.0, added).sum(axis=1)
        return np.asarray(1 / (1 + np.exp(-odds)))


def weights_of_labels(votes: FloatArray, supported: FloatArray) -> VoteModel:
    """Return the model of votes whose truth is known, or known with a probability.

    Each share counts one more claim of either kind (Laplace's rule), so that a judge without an
    error gets no infinite weight.

    Args:
        votes: As in :meth:`VoteModel.posterior`.
        supported: For each claim the probability that it is supported; 0 or 1 for labels.
    """
    given = ~np.isnan(votes)
    share_for, truth = np.where(given, votes, 0.0), supported[:, None]
    return VoteModel(
        sensitivity=_share((share_for * truth).sum(axis=0), (given * truth).sum(axis=0)),
        leniency=_share((share_for * (1 - truth)).sum(axis=0), (given * (1 - truth)).sum(axis=0)),
        supported=float(_share(supported.sum(), np.float64(len(supported)))),
    )


def dawid_skene(votes: FloatArray) -> VoteModel:
    """Return the model that explains votes best without a label.

    Expectation and maximisation in turns, from majorities on. It needs three or more judges that
    err independently; judges that make the same mistakes count too much.

    Args:
        votes: As in :meth:`VoteModel.posterior`.

    Source: Dawid and Skene, Maximum Likelihood Estimation of Observer Error-Rates Using the EM
    Algorithm, Applied Statistics 28 (1979), for two classes, with Laplace's rule.
    """
    # From majorities: from elsewhere, both classes may end up exchanged.
    probability = np.nanmean(votes, axis=1)
    for _ in range(_ROUNDS):
        model = weights_of_labels(votes, probability)
        found = model.posterior(votes)
        if np.abs(found - probability).max(initial=0.0) < _STEADY:
            break
        probability = found
    return model


def _share(part: FloatArray | np.float64, whole: FloatArray | np.float64) -> FloatArray:
    return np.asarray((part + 1) / (whole + 2))


# Many error rates explain the votes of two judges equally well; those of three identify them.
_FEWEST = 3
_DIGITS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelMember:
    """A judge of a panel, or the panel itself."""

    judge: str
    """Its name; ``panel`` for the panel."""
    votes: int
    """Claims with a verdict of it."""
    dissents: int
    """Verdicts that differ from the panel's."""
    labelled: int
    """Claims of them that people labelled."""
    right: int
    """Labelled claims on which it agrees with people."""
    cost: float | None = None
    """What its replies cost; None without prices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MembersAgreement:
    """The agreement of two judges of a panel."""

    one: str
    """A judge."""
    other: str
    """Another judge."""
    claims: int
    """Claims on which both voted."""
    agreement: float | None
    """Share of them with equal votes; None without any."""
    kappa: float | None
    """Cohen's kappa; None if it is undefined."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelCard:
    """How the judges of a panel agree with each other and with people."""

    run_signature: str
    learnt_from: str
    """``labels``, or ``votes`` without any (Dawid and Skene 1979)."""
    members: tuple[PanelMember, ...]
    """The judges, and the panel as the last one."""
    pairs: tuple[MembersAgreement, ...]
    """The agreement of each two judges."""
    weights: Mapping[str, Mapping[str, float]]
    """Judge -> what its votes, ``supported`` and ``not_supported``, add to the log odds."""
    prior: float
    """Log odds of support before any vote."""

    def to_text(self) -> str:
        """Return the text of ``panel.json``, which ``--panel-weights`` takes."""
        return file_text("judge-panel", asdict(self))


def panel_card(run: str | Path, labels: Sequence[str | Path] = ()) -> PanelCard:
    """Return the card of a run's panel; nothing is judged again.

    Args:
        run: Folder of a run of ``tri-he`` with a panel.
        labels: Files of human labels. Without them, weights are learnt from the votes alone.

    Raises:
        InvalidInputError: The run has no panel, no label is of its claims, or without labels fewer
            than three judges voted.
        ArchiveError: A file can't be read.
    """
    stored = read_run(run)
    names, claims = _claims(stored)
    truths = _truths(stored, labels) if labels else {}
    if labels and not any(claim.place in truths for claim in claims):
        raise InvalidInputError(f"{stored.folder}: no label is of a claim that the panel judged")
    model = _model(claims, truths)
    rows = zip(names, model.votes_for, model.votes_against, strict=True)
    return PanelCard(
        run_signature=stored.signature,
        learnt_from="labels" if labels else "votes",
        members=(*_members(stored, names, claims, truths),),
        pairs=tuple(_agreement(names, claims, pair) for pair in combinations(range(len(names)), 2)),
        weights={
            name: {
                "supported": round(float(votes_for), _DIGITS),
                "not_supported": round(float(against), _DIGITS),
            }
            for name, votes_for, against in rows
        },
        prior=round(model.prior, _DIGITS),
    )


@dataclass(frozen=True, slots=True)
class _Claim:
    """A claim on which the panel voted."""

    place: tuple[str, int]
    cluster: str
    votes: tuple[float, ...]
    verdict: float


_AS_NUMBER = {"supported": 1.0, "not_supported": 0.0}


def _claims(run: StoredRun) -> tuple[tuple[str, ...], list[_Claim]]:
    """Return the names of a panel's judges, and the claims on which one voted."""
    names: dict[str, None] = {}
    found: list[_Claim] = []
    lines = [line for line in run.lines() if isinstance(line.get("evidence"), dict)]
    for line in lines:
        # All names first: each row of votes has a place for every judge, whether or not it voted.
        names.update(dict.fromkeys(part["judge"] for part in _parts(line)))
    for line in lines:
        parts = {part["judge"]: part["votes"] for part in _parts(line)}
        for at, claim in enumerate(line["evidence"].get("claims", ()) if parts else ()):
            votes = tuple(
                _AS_NUMBER.get(parts[n][at], np.nan) if n in parts else np.nan for n in names
            )
            if not np.isnan(votes).all():
                verdict = _AS_NUMBER.get(claim["verdict"], np.nan)
                place = (str(line["id"]), at)
                found.append(_Claim(place, str(line["group_id"]), votes, verdict))
    if not found:
        raise InvalidInputError(
            f"{run.folder}: no panel judged in this run; score tri-he with the option panel, such "
            "as llm,matcher,minicheck"
        )
    return tuple(names), found


def _parts(line: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    return (part for part in line["evidence"].get("judging", ()) if "votes" in part)


def _truths(run: StoredRun, labels: Sequence[str | Path]) -> dict[tuple[str, int], float]:
    """Return place of each labelled claim -> 1 if it is supported, 0 if it is hallucinated."""
    items = [*read_verdicts(run)]
    given = [label for path in labels for label in read_labels(path)]
    matched = match_labels(given, items)
    return {place: float(not wrong) for place, wrong in matched.claims.items()}


def _model(claims: Sequence[_Claim], truths: Mapping[tuple[str, int], float]) -> VoteModel:
    """Return what the labels say of votes, or without any what the votes say of each other."""
    if truths:
        # Claims without a label say nothing of how often a judge is right.
        known = [claim for claim in claims if claim.place in truths]
        labels = np.array([truths[claim.place] for claim in known])
        return weights_of_labels(np.array([claim.votes for claim in known]), labels)
    votes = np.array([claim.votes for claim in claims])
    judges = votes.shape[1]
    if judges < _FEWEST:
        raise InvalidInputError(
            f"weights of {judges} judges can't be learnt from their votes alone, which needs "
            f"{_FEWEST}; give human labels"
        )
    return dawid_skene(votes)


def _members(
    run: StoredRun,
    names: Sequence[str],
    claims: Sequence[_Claim],
    truths: Mapping[tuple[str, int], float],
) -> Iterator[PanelMember]:
    costs = {share.judge: share.cost for share in run.report.judging}
    priced = [cost for cost in costs.values() if cost is not None]
    columns = {name: [claim.votes[at] for claim in claims] for at, name in enumerate(names)}
    columns["panel"] = [claim.verdict for claim in claims]
    # Judges without a price do not make the cost of the others unknown.
    costs["panel"] = sum(priced) if priced else None
    for name, column in columns.items():
        given = [(of, vote) for of, vote in zip(claims, column, strict=True) if not np.isnan(vote)]
        labelled = [(truths[of.place], vote) for of, vote in given if of.place in truths]
        yield PanelMember(
            judge=name,
            votes=len(given),
            dissents=sum(not np.isnan(of.verdict) and of.verdict != vote for of, vote in given),
            labelled=len(labelled),
            right=sum(truth == vote for truth, vote in labelled),
            cost=costs.get(name),
        )


def _agreement(
    names: Sequence[str], claims: Sequence[_Claim], pair: tuple[int, int]
) -> MembersAgreement:
    one, other = pair
    twice = [
        JudgedTwice(claim.cluster, str(claim.votes[one]), str(claim.votes[other]))
        for claim in claims
        if not np.isnan((claim.votes[one], claim.votes[other])).any()
    ]
    found = cohen_kappa(twice)
    return MembersAgreement(
        one=names[one],
        other=names[other],
        claims=found.n,
        agreement=found.agreement,
        kappa=found.kappa,
    )
