"""Settings of the judges, and their keys.

Settings come from arguments, environment, file and defaults, in this order. Keys come from the
environment or from a file that it names, never from an argument, which every user of the machine
can read in the list of processes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import reduce

from . import definitions, setting
from .connection import Secret, hosted_by, masked_repr, read_secret

APIS = ("chat", "scoring", "decisions")
"""How choices are asked for."""
_CONSTRAINTS = ("auto", "json_schema", "structured_outputs", "none")
_DIALECTS = ("vllm", "openai", "plain")
_SENDERS = ("auto", "http", "openai", "azure")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ModelSettings:
    """A language model and its server: what ``llm`` and ``fallback`` both have."""

    url: str = setting("", "base address of the judge's server, or several with commas")
    """Base address of an OpenAI-compatible server, such as ``http://127.0.0.1:8000/v1``; several
    servers of one model are separated by commas. Empty for no llm judge."""
    model: str = setting("", "the model, as its server calls it")
    """The model's name there."""
    dialect: str = setting(
        "auto",
        "auto, vllm, openai or plain: what the server knows",
        choices=("auto", *_DIALECTS),
    )
    """Whose extensions the server understands; ``auto``: ``openai`` for OpenAI's and Azure's
    addresses, and ``vllm`` or ``plain`` for others, which are asked whether they are vLLM."""
    sender: str = setting("auto", "auto, http, openai or azure: what sends calls", choices=_SENDERS)
    """``http`` is our own sender, ``openai`` and ``azure`` are OpenAI's package; ``auto``: that of
    the address, and for a fallback OpenAI's package unless its dialect is ``vllm``."""
    api: str = setting(
        "chat", "chat, scoring or decisions: how choices are asked for", choices=APIS
    )
    """``chat`` has a choice written; ``scoring`` (vLLM) and ``decisions`` (OpenAI, vLLM) report
    probabilities, and ask about all claims of an image in one call."""
    constraint: str = setting(
        "auto", "auto, json_schema, structured_outputs or none", choices=_CONSTRAINTS
    )
    """How replies are constrained to the choices."""
    claims_per_call: int = setting(1, "claims in one call", low=1, high=100)
    """Claims in one call at most; 1: one claim at a time, as published."""
    # vLLM batches the calls that it has; its own batch is the limit, not the server.
    max_concurrency: int = setting(64, "calls to each server at the same time", low=1, high=4096)
    """Calls to each of the model's servers at the same time at most."""
    max_tokens: int = setting(0, "most tokens of a reply of judge or extractor; 0: by question")
    """Limit of tokens of a reply of the judge or extractor; 0: that of the question, and 4,096 more
    where the model thinks."""
    proxy: str = setting("", "proxy on the way to the server; empty: the environment's")
    """Proxy for calls to the model's server, such as ``http://proxy:3128``; empty: that of
    ``HTTPS_PROXY`` or ``HTTP_PROXY``, except for hosts in ``NO_PROXY``. That of ``llm`` is used for
    a small judge's server too."""
    reply_models: str = setting("", "names that replies may carry; *: any")
    """Further names that replies may carry, separated by commas; ``*`` accepts any."""
    omit: str = setting("", "parameters that the server refuses, such as seed,top_logprobs")
    """Parameters that are left out because the server refuses them, with commas between."""
    tokenizer: str = setting("", "the model's tokenizer.json or its folder, for estimates")
    """The model's ``tokenizer.json``, or its folder; empty to let the server count, if it can.
    Without it, estimates of a fallback are marked as rough."""
    # -1 because 0 is a price: a local model is free, and an unknown price is no reason to call it
    # so.
    price_prompt: float = setting(-1.0, "price of a million prompt tokens", low=-1)
    """Price of a million prompt tokens; 0 if free, -1 if unknown."""
    price_cached: float = setting(-1.0, "price of a million cached tokens", low=-1)
    """Price of a million cached prompt tokens; -1: like the others."""
    price_completion: float = setting(-1.0, "price of a million completion tokens", low=-1)
    """Price of a million completion tokens; 0 if free, -1 if unknown."""

    __repr__ = masked_repr


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class LlmSettings(ModelSettings):
    """The judge ``llm``, and how calls to all language models are made."""

    revision: str = setting("", "revision of the judge's weights, for signatures")
    """The weights' revision or digest, where known."""
    timeout_seconds: float = setting(120.0, "time for one call", low=0.1, high=86_400)
    """Time for one call."""
    attempts: int = setting(5, "calls for one answer, with retries", low=1, high=100)
    """Calls for one answer at most, the first included."""
    seed: int = setting(0, "seed that is sent to the judge")
    """Seed that is sent with every call."""

    __repr__ = masked_repr


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class FallbackSettings(ModelSettings):
    """The judge ``fallback``, which is asked where ``llm`` does not answer."""

    url: str = setting(
        "https://api.openai.com/v1",
        "base address of the fallback's server",
        variable="OPENAI_BASE_URL",
    )
    """Base address of the fallback; also from ``OPENAI_BASE_URL``."""
    model: str = setting("", "the fallback's model; empty: no fallback")
    """The fallback's model; empty for no fallback."""
    dialect: str = setting("openai", "vllm, openai or plain", choices=_DIALECTS)
    """Whose extensions the fallback's server understands."""
    # A fallback is paid by token, and each call repeats the scene graph.
    claims_per_call: int = setting(20, "claims in one fallback call", low=1, high=100)
    """Claims in one call of the fallback at most."""
    max_concurrency: int = setting(8, "calls to the fallback at the same time", low=1, high=4096)
    """Calls to the fallback at the same time at most."""
    max_calls: int = setting(-1, "calls to the fallback at most", low=-1)
    """Calls to the fallback at most, within ``max_calls``; -1: any number."""

    __repr__ = masked_repr


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class VllmSettings:
    """A vLLM server that is started here."""

    model: str = setting("", "model to serve with vllm; empty: none is started", option="vllm")
    """Model id or folder that ``vllm serve`` is started with."""
    tensor_parallel_size: int = setting(1, "GPUs for one layer", low=1, high=1024)
    """GPUs that a layer is spread over."""
    max_model_len: int = setting(0, "longest prompt in tokens; 0: the model's own, or what fits")
    """Longest prompt with its answer; 0 for the model's own limit, or what fits into memory."""
    quantization: str = setting("", "how vllm quantises the weights, such as fp8; empty: not")
    """How vLLM quantises 16-bit weights while it loads them, such as ``fp8``; empty: not at all.
    Quantised checkpoints need nothing here."""
    batch_invariant: int = setting(0, "1: replies do not depend on other calls; slower", high=1)
    """Whether vLLM uses kernels whose results do not depend on the batch: 0 or 1."""
    # The port is open to every user of the machine; the socket is not.
    socket: int = setting(1, "1: vllm listens on a private Unix socket; 0: at a port", high=1)
    """Whether vLLM listens on a Unix socket that only this user can reach: 1, or 0 for a port,
    which a ``vllm.command`` that starts a container needs."""
    command: str = setting("vllm", "the program, if it is not vllm on the path")
    """The program that is started, with what comes before ``serve``, with spaces between."""
    # Nothing is fetched unless someone says so: a run offline must not wait for a hub.
    download: int = setting(0, "1: let vllm fetch the model from its hub", high=1)
    """Whether vLLM may fetch the model from its hub: 0 or 1."""
    arguments: str = setting("", "more arguments for vllm serve")
    """More arguments for ``vllm serve``, with spaces between."""

    __repr__ = masked_repr


@dataclass(frozen=True, slots=True, kw_only=True)
class MatcherDownloads:
    """What the matcher may fetch; how it compares is chosen by each run."""

    download: int = setting(0, "1: models of the matcher may be fetched", high=1)
    """Whether models of the matcher that are not on this machine may be fetched: 0 or 1."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SmallSettings:
    """The small judges."""

    url: str = setting("", "base address of the server of a served small judge")
    """Base address of the server of ``bespoke-minicheck`` or ``granite-guardian``; its calls have
    the limits and prices of the llm judge."""
    api: str = setting(
        "chat",
        "chat; classify or score for a classifier behind vLLM",
        choices=("chat", "classify", "score"),
    )
    """How the server of ``small.url`` is asked: ``chat``, or ``classify`` and ``score`` for a
    classifier such as ``minicheck-roberta`` that vLLM serves."""
    models: str = setting("", "models of small judges, as JUDGE=FOLDER, with commas")
    """Models of small judges, such as ``minicheck-roberta=/models/minicheck``, with commas between;
    a small judge that is not listed has its authors' hub id, also as its name at a server."""

    __repr__ = masked_repr


@dataclass(frozen=True, slots=True, kw_only=True)
class AzureSettings:
    """How models at Azure are called."""

    deployment: str = setting("", "deployment at Azure; empty: called like the model")
    """The deployment of a model at Azure; empty if it is called like the model."""
    api_version: str = setting("", "version of Azure's API", variable="OPENAI_API_VERSION")
    """The version of Azure's API, such as ``2024-10-21``; also from ``OPENAI_API_VERSION``."""
    entra: int = setting(0, "1: a token of Microsoft Entra in place of a key", high=1)
    """Whether calls to Azure have a token of Microsoft Entra in place of a key: 0 or 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSettings:
    """Files in place of the language models' servers."""

    requests: str = setting("", "file for requests, which are then not sent")
    """File that requests are written to instead of being sent; empty to send them."""
    replies: str = setting("", "file of replies to such requests; nothing is sent")
    """File of replies to such requests, which is asked in place of a server."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class JudgeSettings:
    """Which judges there are, and what they may cost."""

    # The local judge goes first, since the fallback costs money for each call.
    judge_order: str = setting("llm,fallback", "judges of the router, the preferred one first")
    """Judges that the router asks, in order: some of matcher, small judges, llm, fallback."""
    max_calls: int = setting(-1, "calls to language models at most; -1: any number", low=-1)
    """Calls to all language models at most, retries included; -1: any number."""
    max_cost: float = setting(-1.0, "money for language models at most; -1: any amount", low=-1)
    """Money that all language models may cost at most; needs the prices; -1: any amount."""
    give_up_after: float = setting(300.0, "seconds without an answer that end a run", high=1e6)
    """Seconds without any answer of a judge after which a run ends."""
    outage_seconds: float = setting(90.0, "seconds that a claim waits for a judge", high=1e6)
    """Seconds for which a claim waits for a judge that is down, before the fallback is asked."""
    verdict_cache: str = setting(
        "", "file that keeps verdicts; empty: a server with jobs has one in data_folder"
    )
    """SQLite file that keeps answers; with jobs, by default in ``data_folder``."""
    known_verdicts: str = setting(
        "", "files of verdicts that are looked up too, separated as in PATH, never written"
    )
    """More files of answers, which are only read."""
    data_folder: str = setting("", "folder for jobs, verdicts and logs; empty: the server's own")
    """Folder for jobs, verdicts, and the logs of processes that are started."""
    llm: LlmSettings = field(default_factory=LlmSettings)
    """The llm judge."""
    fallback: FallbackSettings = field(default_factory=FallbackSettings)
    """The fallback."""
    vllm: VllmSettings = field(default_factory=VllmSettings)
    """A vLLM server that is started here."""
    matcher: MatcherDownloads = field(default_factory=MatcherDownloads)
    """What the matcher may fetch."""
    small: SmallSettings = field(default_factory=SmallSettings)
    """The small judges."""
    azure: AzureSettings = field(default_factory=AzureSettings)
    """Models at Azure."""
    batch: BatchSettings = field(default_factory=BatchSettings)
    """Files in place of servers."""

    __repr__ = masked_repr

    def language_model(self, judge: str) -> ModelSettings:
        """Return the settings of ``llm`` or ``fallback``."""
        return self.fallback if judge == "fallback" else self.llm


JUDGES = tuple(definitions(JudgeSettings, "judges"))
"""The settings of the judges."""


def judge_values(settings: JudgeSettings) -> dict[str, object]:
    """Return the values of the settings by name, such as ``llm.url``."""
    return {each.name: reduce(getattr, each.name.split("."), settings) for each in JUDGES}


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeKeys:
    """The judges' API keys."""

    llm: Secret = field(default_factory=lambda: Secret(""))
    """The judge's, from ``HALLUJUDGE_LLM_API_KEY`` or the file ``HALLUJUDGE_LLM_API_KEY_FILE``; at
    OpenAI and Azure also from ``OPENAI_API_KEY`` and ``AZURE_OPENAI_API_KEY``."""
    small: Secret = field(default_factory=lambda: Secret(""))
    """That of a small judge's server, from ``HALLUJUDGE_SMALL_API_KEY`` or ``…_FILE``."""
    fallback: Secret = field(default_factory=lambda: Secret(""))
    """The fallback's, from ``HALLUJUDGE_FALLBACK_API_KEY`` or ``…_FILE``, or from those."""


def load_judge_keys(environ: Mapping[str, str], settings: JudgeSettings | None = None) -> JudgeKeys:
    """Return the keys from the environment, or from the files that it names.

    Args:
        environ: The environment, from the one module that reads it.
        settings: The judges' addresses. OpenAI's and Azure's variables are read for their own
            addresses only, so that no other server gets such a key.

    Raises:
        InvalidInputError: A file cannot be read, or both a key and a file are given.
    """
    names = (entry.name for entry in fields(JudgeKeys))
    own = {name: read_secret(environ, f"HALLUJUDGE_{name.upper()}_API_KEY") for name in names}
    for name in ("llm", "fallback"):
        # Without settings, it is unknown to whom a provider's key would be sent, so that none is
        # read.
        url = settings.language_model(name).url if settings else ""
        own[name] = own[name] or _providers_key(url, environ)
    return JudgeKeys(**own)


def _providers_key(url: str, environ: Mapping[str, str]) -> Secret:
    host = hosted_by(url)
    if host == "azure":
        return read_secret(environ, "AZURE_OPENAI_API_KEY")
    # OpenAI's variables belong together: its key goes to its own address or to that in its variable
    # alone.
    if host == "openai" or (url and url == environ.get("OPENAI_BASE_URL")):
        return read_secret(environ, "OPENAI_API_KEY")
    return Secret("")
