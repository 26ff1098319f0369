"""Reasons why an item or a claim is unscored: one name and one sentence each."""

from __future__ import annotations

import enum


class UnscoredReason(enum.StrEnum):
    """Why an item or a claim is unscored.

    The value is the name that results, reports and the wire carry. ``sentence`` describes what
    happened, and ``next_step`` what to do about it.
    """

    sentence: str
    next_step: str

    def __new__(cls, value: str, sentence: str = "", next_step: str = "") -> UnscoredReason:
        """Make a member whose value is its name."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.sentence = sentence
        member.next_step = next_step
        return member

    # Responses ------------------------------------------------------------------------------------
    RESPONSE_MISSING = (
        "RESPONSE_MISSING",
        "The response is null or absent.",
        "Run the model on this item again, or remove it.",
    )
    RESPONSE_EMPTY = (
        "RESPONSE_EMPTY",
        "The response is empty or white space.",
        "Run the model on this item again, or set the option count_empty to score it as the "
        "released script does.",
    )
    RESPONSE_FAILED = (
        "RESPONSE_FAILED",
        "The response is a tool's failure text, not an answer of the model.",
        "Run the model on this item again, or set the option count_empty to score it as the "
        "released script does.",
    )
    RESPONSE_TOO_LONG = (
        "RESPONSE_TOO_LONG",
        "The response has more characters than the limit.",
        "Check whether several responses were joined, or cut the response.",
    )
    LANGUAGE_UNSUPPORTED = (
        "LANGUAGE_UNSUPPORTED",
        "The response is in a language that the extractor or synonym graph does not read.",
        "Translate the response, or choose an extractor that reads its language.",
    )
    # References -----------------------------------------------------------------------------------
    REFERENCE_MISSING = (
        "REFERENCE_MISSING",
        "There is no reference to compare the response with.",
        "Add the reference, or remove the response.",
    )
    REFERENCE_TOO_LONG = (
        "REFERENCE_TOO_LONG",
        "The reference has more characters than the limit.",
        "Check whether several references were joined, or cut the reference.",
    )
    LABEL_INVALID = (
        "LABEL_INVALID",
        "The label is empty, or is not one of the possible answers.",
        "Correct the label.",
    )
    PLACE_INVALID = (
        "PLACE_INVALID",
        "The item's place in its benchmark is not known: a category or another field is invalid.",
        "Correct the field that the detail names.",
    )
    DISPLAY_MISSING = (
        "DISPLAY_MISSING",
        "The order in which captions were shown is not known, so a letter has no meaning.",
        "Add the options file that the model was shown.",
    )
    DISPLAY_INVALID = (
        "DISPLAY_INVALID",
        "The order in which captions were shown does not fit the captions.",
        "Use the options file of the same release as the annotations.",
    )
    DOMAIN_UNKNOWN = (
        "DOMAIN_UNKNOWN",
        "There is no synonym graph for the item's domain.",
        "Give a graph for the domain, or remove the domain to use the general graphs.",
    )
    # Questions under operators --------------------------------------------------------------------
    OPERATOR_UNKNOWN = (
        "OPERATOR_UNKNOWN",
        "A run names an operator that the metric does not have.",
        "Correct the operator's name.",
    )
    BASE_MISSING = (
        "BASE_MISSING",
        "There is no base run, which every rate is compared with.",
        "Add the answer to the clean video.",
    )
    BASE_UNPARSED = (
        "BASE_UNPARSED",
        "The base answer could not be parsed.",
        "Read the answer in items.jsonl, or set the option unparsed = wrong to count it as wrong.",
    )
    CONFIDENCE_INVALID = (
        "CONFIDENCE_INVALID",
        "A confidence is not a number from 0 to 1.",
        "Write confidences as fractions.",
    )
    ANSWER_UNPARSED = (
        "ANSWER_UNPARSED",
        "The answer parser could not read a single answer in the response.",
        "Read the response in items.jsonl, or choose another answer parser.",
    )
    # Claims and keywords --------------------------------------------------------------------------
    CLAIMS_MISSING = (
        "CLAIMS_MISSING",
        "No claims came with the response, and no extractor was chosen.",
        "Add the claims, or choose an extractor.",
    )
    CLAIMS_INVALID = (
        "CLAIMS_INVALID",
        "A claim that came with the response has an empty part.",
        "Correct the claim.",
    )
    CLAIM_EMPTY = ("CLAIM_EMPTY", "The claim has no words.", "Correct the claim.")
    CLAIM_TOO_LONG = (
        "CLAIM_TOO_LONG",
        "The claim has more characters than the judge's limit.",
        "Split the claim.",
    )
    NO_CLAIMS = (
        "NO_CLAIMS",
        "The response makes no claim that could be judged.",
        "Nothing to do if the response really claims nothing.",
    )
    NO_VERDICTS = (
        "NO_VERDICTS",
        "None of the response's claims has a verdict.",
        "Read the first claim's reason, in the detail.",
    )
    KEYWORDS_MISSING = (
        "KEYWORDS_MISSING",
        "No keywords came with the description, and no extractor was chosen.",
        "Add the keywords, or choose an extractor.",
    )
    KEYWORD_TOO_LONG = (
        "KEYWORD_TOO_LONG",
        "A keyword has more characters than the limit.",
        "Check whether the keyword is a text that was not split.",
    )
    TOO_MANY_KEYWORDS = (
        "TOO_MANY_KEYWORDS",
        "A keyword list has more entries than the limit.",
        "Check whether several lists were joined.",
    )
    EXTRACTION_FAILED = (
        "EXTRACTION_FAILED",
        "The extractor could not read the response.",
        "Read the detail, then run the item again.",
    )
    PROCESS_DIED = (
        "PROCESS_DIED",
        "The process that scored the item alone died, twice.",
        "Read the server's log for the cause, and report it; then run the item again.",
    )
    # Verdicts -------------------------------------------------------------------------------------
    VERDICT_NULL = (
        "VERDICT_NULL",
        "The archived verdict is null: the judge's reply could not be read then.",
        "Judge the claim again.",
    )
    NO_VERDICT = (
        "NO_VERDICT",
        "The judge's reply contains no verdict.",
        "Run the item again, or choose another judge.",
    )
    JUDGE_REFUSED = (
        "JUDGE_REFUSED",
        "The judge refused to answer.",
        "Add a fallback judge.",
    )
    REPLY_NOT_JSON = (
        "REPLY_NOT_JSON",
        "The judge's reply is not JSON.",
        "Use a server that constrains replies, or another model.",
    )
    REPLY_WRONG_SCHEMA = (
        "REPLY_WRONG_SCHEMA",
        "The judge's reply is JSON of another shape.",
        "Use a server that constrains replies, or another model.",
    )
    REPLY_OUT_OF_CHOICE = (
        "REPLY_OUT_OF_CHOICE",
        "The judge's reply is not one of the offered answers.",
        "Use a server that constrains replies, or another model.",
    )
    REPLY_TRUNCATED = (
        "REPLY_TRUNCATED",
        "The judge's reply was cut at its token limit.",
        "Raise the limit of completion tokens.",
    )
    MARGIN_TOO_SMALL = (
        "MARGIN_TOO_SMALL",
        "The judge's verdict has a smaller margin than this run keeps.",
        "Add a judge to the router, or keep smaller margins.",
    )
    # Judges ---------------------------------------------------------------------------------------
    JUDGE_AUTH_FAILED = (
        "JUDGE_AUTH_FAILED",
        "The judge's server refused the key.",
        "Set a valid key.",
    )
    JUDGE_MODEL_UNKNOWN = (
        "JUDGE_MODEL_UNKNOWN",
        "The judge's server does not have the endpoint or the model.",
        "Check the address and the model's name.",
    )
    JUDGE_QUOTA_EXHAUSTED = (
        "JUDGE_QUOTA_EXHAUSTED",
        "The judge's account has no quota left.",
        "Raise the quota, or add a fallback judge.",
    )
    JUDGE_RATE_LIMITED = (
        "JUDGE_RATE_LIMITED",
        "The judge's server answered that calls come too fast.",
        "Lower the concurrency, then run again.",
    )
    JUDGE_SERVER_ERROR = (
        "JUDGE_SERVER_ERROR",
        "The judge's server failed.",
        "Read the server's log, then run again.",
    )
    JUDGE_UNREACHABLE = (
        "JUDGE_UNREACHABLE",
        "The judge's server could not be reached.",
        "Start the server, or correct its address.",
    )
    JUDGE_TIMEOUT = (
        "JUDGE_TIMEOUT",
        "The judge did not answer in time.",
        "Raise the timeout, or lower the concurrency.",
    )
    JUDGE_NOT_THE_API = (
        "JUDGE_NOT_THE_API",
        "The judge's server sent something that is not of the chat API, such as a web page.",
        "Check that the address is that of an OpenAI-compatible API.",
    )
    JUDGE_BAD_REPLY = (
        "JUDGE_BAD_REPLY",
        "The judge's server sent a chat completion without an answer in it.",
        "Read the detail, then choose another model or server.",
    )
    PROMPT_TOO_LONG = (
        "PROMPT_TOO_LONG",
        "The prompt does not fit the judge's context.",
        "Choose a judge with a longer context.",
    )
    JUDGE_REQUEST_REFUSED = (
        "JUDGE_REQUEST_REFUSED",
        "The judge's server refuses this request.",
        "Read the server's message in the detail.",
    )
    JUDGE_CIRCUIT_OPEN = (
        "JUDGE_CIRCUIT_OPEN",
        "The judge failed several times in a row and was not called again.",
        "Repair the judge's server, then run again.",
    )
    JUDGE_OTHER_MODEL = (
        "JUDGE_OTHER_MODEL",
        "Another model than the requested one replied.",
        "Name the model that the server has, or correct the address.",
    )
    JUDGE_NO_REPLY = (
        "JUDGE_NO_REPLY",
        "The judge is run offline, and the imported replies have none to this call.",
        "Run the requests of hallujudge batch export, and import all replies.",
    )
    JUDGE_BUDGET_EXHAUSTED = (
        "JUDGE_BUDGET_EXHAUSTED",
        "The budget does not allow another call.",
        "Raise the budget, or run again without it.",
    )


def reasons_table() -> str:
    """Return every reason with its sentence and next step as a Markdown table."""
    rows = [f"| `{each}` | {each.sentence} | {each.next_step} |" for each in UnscoredReason]
    return "\n".join(("| reason | what happened | what to do |", "|---|---|---|", *rows)) + "\n"
