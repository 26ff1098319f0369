"""How servers are reached: addresses, secrets, and the settings of a client's connection."""

from __future__ import annotations

import ipaddress
import os
import re
import stat
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, AnyStr, Literal
from urllib.parse import SplitResult, urlsplit

from ..errors import InvalidInputError

_PREFIX = "HALLUJUDGE_"
API_KEY = "HALLUJUDGE_API_KEY"
"""The environment variable of the API key; with ``_FILE``, of a file that contains it."""

SYSTEM = "system"
"""The value of ``tls_ca`` for the authorities that gRPC trusts by default."""

# Keys are short; a larger file is not a key file.
_MAX_KEY_BYTES = 16_384
# What is before the last @ of an address, or of a proxy's without a scheme. Passwords may have
# commas and quotes in them, which also stand between and around addresses.
_USER = re.compile(
    r"(?<=://)(?:(?!://)\S)*(?=@)"
    r"|(?<![^\s,/'\"])[^\s,/@:'\"]+:[^\s/@]{1,4000}"
    r"(?=@(?:[\w.-]+|\[[\da-f:.]+\])(?::\d+)?(?![^\s,'\"/]))"
    # Half of an address whose password has a comma.
    r"|(?<=://)[^\s,/?#@:\[\]'\"]+:(?!\d*(?:[\s,/?#'\":;.)]|$))[^\s,/?#@'\"]+",
    re.IGNORECASE,
)
# Services have many names for a secret. `code`, `pw` and `sas` only as a whole: `encode` ends so,
# too.
_IN_QUERY = re.compile(
    r"([?&;#](?:(?=[^\s=&?;#]*(?:key|token|secret|pass|pwd|sig|auth|cred|jwt))[^\s=&?;#]+"
    r"|code|pw|sas)=)(?:(?!,\w+://|['\"](?:[\s,;:.)]|$))[^\s&#])+",
    re.IGNORECASE,
)
# A key among the arguments or variables of a program.
_FOR_A_PROGRAM = re.compile(
    r"((?<![^\s'\"])(?:--?[\w-]*(?:api-key|password|secret)[ =]|\w*(?:KEY|TOKEN|PASSWORD|SECRET)=))"
    r"[^\s'\"]+"
)
# Azure's own clouds for governments and China have other domains than its public one.
_AZURE_HOSTS = (
    ".openai.azure.com",
    ".cognitiveservices.azure.com",
    ".services.ai.azure.com",
    ".openai.azure.us",
    ".openai.azure.cn",
)
# Underscores are not part of host names, but services of Compose have them.
_LABEL = r"[a-zA-Z0-9_]([\w-]*[a-zA-Z0-9_])?"
_HOST_NAME = re.compile(rf"{_LABEL}(\.{_LABEL})*\.?", re.ASCII)
# No part of a Host header, and read differently by different parsers.
_NO_HOST = re.compile(r"[^\w.:\[\]%~-]")


def web_address(text: str) -> SplitResult | None:
    """Return the parts of an address such as ``http://127.0.0.1:8000/v1``; None if it is not one.

    The host and the port of the parts can be read without an error.
    """
    try:
        parts = urlsplit(text)
        # Reading `port` raises a ValueError here, where it is caught, and not at each later reader.
        has_host = bool(parts.hostname) and parts.port != 0
    except ValueError:  # half of an IPv6 address, or a port above 65,535
        return None
    return parts if parts.scheme in ("http", "https") and has_host else None


def collector_address(endpoint: str, what: str, example: str) -> SplitResult:
    """Return the parts of a collector's address.

    Args:
        endpoint: The address.
        what: What it is the address of, for the error.
        example: Such an address, with what the collector takes.

    Raises:
        InvalidInputError: It is not such an address; OpenTelemetry's library would drop all later.
    """
    parts = web_address(endpoint)
    # Collectors take their credentials from headers; an address is logged and shown.
    if parts is None or "@" in parts.netloc or parts.query:
        raise InvalidInputError(
            f"{what} is {masked(endpoint)!r:.80}; write the address of a collector{example}"
        )
    return parts


# Environment variables and options hold texts only, so that lists are texts, too.
def listed(text: str) -> tuple[str, ...]:
    """Return the parts of a setting that have commas between them."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def environment_proxy(url: str, environ: Mapping[str, str] | None = None) -> str:
    """Return the proxy that the environment names for an address; empty for none.

    ``HTTPS_PROXY`` and ``HTTP_PROXY`` name it by the address's scheme, and ``NO_PROXY`` excepts
    hosts, each in lower case first. This machine's own addresses are never behind a proxy.

    Args:
        url: The address.
        environ: The environment; by default that of this process.
    """
    from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]  # untyped

    parts = web_address(url)
    environ = os.environ if environ is None else environ
    given = [
        environ.get(name, environ.get(name.upper(), ""))
        for name in (f"{parts.scheme if parts else ''}_proxy", "no_proxy")
    ]
    proxy, direct = given
    # urllib's rule below knows no loopback: without this, a local judge would be asked through the
    # proxy.
    if parts is None or not proxy or is_here(parts.netloc.rpartition("@")[2]):
        return ""
    if proxy_bypass_environment(parts.netloc.rpartition("@")[2], {"no": direct}):
        return ""
    # curl and others accept `HTTPS_PROXY=proxy:3128`; the senders need a scheme.
    return proxy if "://" in proxy else f"http://{proxy}"


def hosted_by(url: str) -> Literal["openai", "azure", ""]:
    """Return whose service an address belongs to; empty for any other server."""
    parts = web_address(url)
    # The dot also lets regional hosts such as `eu.api.openai.com` match, but not
    # `evilapi.openai.com`.
    host = f".{parts.hostname}" if parts else ""
    if host.endswith(".api.openai.com"):
        return "openai"
    return "azure" if host.endswith(_AZURE_HOSTS) else ""


def plain_host(host: str) -> str:
    """Return a host without the brackets that an IPv6 address has before a port."""
    return host[1:-1] if host.startswith("[") and host.endswith("]") else host


def is_ipv6(host: str) -> bool:
    """Return whether a host is an IPv6 address, with or without brackets."""
    address = _address(plain_host(host))
    return address is not None and address.version == 6


def with_port(host: str, port: int) -> str:
    """Return an address such as ``127.0.0.1:50051`` or ``[::1]:50051``."""
    return f"[{plain_host(host)}]:{port}" if is_ipv6(host) else f"{host}:{port}"


def is_host(text: str) -> bool:
    """Return whether a text is an IP address or the name of a host, without a port."""
    return _address(plain_host(text)) is not None or _HOST_NAME.fullmatch(text) is not None


OTHER_HOST = (
    "call localhost or an IP address, or add the name to the server's setting http.host_names"
)
"""What to do where a request's host is refused."""


def is_own_host(header: str, names: Collection[str] = ()) -> bool:
    """Return whether a request's Host header is one that no foreign web page can bring about.

    A page could resolve a name of its own to this machine, and read what browsers may reach (DNS
    rebinding). It has no such power over IP addresses, ``localhost`` and listed names. A request
    without the header is refused: HTTP/1.1 requires it.

    Args:
        header: The header; empty if there is none or more than one.
        names: Further names of the server.
    """
    try:
        host = (urlsplit(f"//{header}").hostname or "").removesuffix(".")
    except ValueError:  # half of an IPv6 address
        return False
    if _NO_HOST.search(header):
        return False
    return host in ("localhost", *map(str.lower, names)) or _address(host) is not None


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def masked(text: str) -> str:
    """Return a text with the user names, passwords and keys of addresses and programs masked."""
    return _FOR_A_PROGRAM.sub(r"\1***", _IN_QUERY.sub(r"\1***", _USER.sub("***", text)))


def masked_repr(settings: Any) -> str:
    """Return a dataclass as text, with the secrets in its web addresses masked."""
    pairs = (f"{entry.name}={shown(getattr(settings, entry.name))!r}" for entry in fields(settings))
    return f"{type(settings).__name__}({', '.join(pairs)})"


def shown(value: object) -> object:
    """Return a setting's value, with the secrets in its web addresses masked."""
    return masked(value) if isinstance(value, str) else value


class Secret:
    """A text that is shown only by :meth:`reveal`.

    Args:
        value: The secret; white space around it, such as a file's last line break, is dropped.
        reread: Reads its file again, where it comes from one.
    """

    __slots__ = ("_reread", "_value")

    def __init__(self, value: str, reread: Callable[[], Secret] | None = None) -> None:
        # Files of keys usually end with a newline, which a header must not have.
        self._value = value.strip()
        self._reread = reread

    def newest(self) -> Secret:
        """Return the secret that is in its file now; this one if there is none to be read."""
        try:
            return self._reread() if self._reread is not None else self
        except InvalidInputError:  # such as a file that is being replaced
            return self

    def reveal(self) -> str:
        """Return the secret. Pass it only to the request that needs it."""
        return self._value

    def scrubbed(self, text: AnyStr) -> AnyStr:
        """Return a text with every occurrence of the secret masked."""
        if not self._value:
            return text
        if isinstance(text, bytes):
            return text.replace(self._value.encode(), b"***")
        return text.replace(self._value, "***")

    def __bool__(self) -> bool:
        return bool(self._value)

    def __repr__(self) -> str:
        return "Secret('***')" if self._value else "Secret('')"

    __str__ = __repr__

    def __format__(self, _spec: str) -> str:
        return repr(self)

    # Settings that hold secrets are compared, to find out whether a client can be shared.
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._value == other._value

    # A hash of the text could be compared with those of guesses.
    def __hash__(self) -> int:
        return hash(type(self))

    # Otherwise what is sent to a worker process, or kept, could hold a key.
    def __reduce__(self) -> str:
        raise TypeError(
            "a secret is never pickled or copied; set it in the environment of each process, such "
            "as HALLUJUDGE_API_KEY or HALLUJUDGE_LLM_API_KEY"
        )


def read_secret(environ: Mapping[str, str], name: str) -> Secret:
    """Return a secret from the environment, or from the file that it names.

    Args:
        environ: The environment.
        name: The variable; with ``_FILE`` it names a file.

    Raises:
        InvalidInputError: The file cannot be read, or both are given.
    """
    file = environ.get(f"{name}_FILE", "")
    if not file:
        return Secret(environ.get(name, ""))
    # Which of two keys is meant can't be known, and a wrong one would bill someone else.
    if environ.get(name):
        raise InvalidInputError(f"both {name} and {name}_FILE are set; unset one of them")
    try:
        with Path(file).open("rb") as stream:
            # One byte more than allowed tells a larger file without reading all of it.
            data = stream.read(_MAX_KEY_BYTES + 1)
        text = data.decode().strip()
    except (OSError, UnicodeDecodeError) as err:
        # The error's text may hold bytes of the key.
        why = err.strerror if isinstance(err, OSError) else "it is not UTF-8 text"
        raise InvalidInputError(
            f"{name}_FILE: {file!r} cannot be read: {why}; give a file that contains only the key"
        ) from (err if isinstance(err, OSError) else None)
    if len(data) > _MAX_KEY_BYTES or not text or "\n" in text:
        raise InvalidInputError(f"{name}_FILE: {file!r} must contain only the key, in one line")
    return Secret(text, lambda: _read_again(file, name))


def _read_again(file: str, name: str) -> Secret:
    if never_ends(Path(file)):  # such as a pipe that could be read once
        raise InvalidInputError(f"{name}_FILE: {file!r} can be read only once")
    return read_secret({f"{name}_FILE": file}, name)


def never_ends(path: Path) -> bool:
    """Return whether reading a path may wait for ever: it is a pipe, a terminal or a socket.

    A file that a running server reads again must not be one. Some programs that hand out secrets
    put a pipe in a file's place.
    """
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """How a client connects to a server: over TLS or in plain text, and with which key.

    What is empty comes from the environment: ``HALLUJUDGE_TLS_CA``, ``HALLUJUDGE_TLS_CERT``,
    ``HALLUJUDGE_TLS_KEY``, and ``HALLUJUDGE_API_KEY`` or ``HALLUJUDGE_API_KEY_FILE``.
    """

    tls_ca: str = ""
    """PEM file of authorities that the server's certificate must be from, or ``system``."""
    tls_cert: str = ""
    """PEM file of the client's own certificate, if the server wants one."""
    tls_key: str = ""
    """PEM file of its private key."""
    api_key: Secret = field(default_factory=lambda: Secret(""))
    """What tells the server who calls, as ``hallujudge keys`` made it."""

    @property
    def is_tls(self) -> bool:
        """Whether the connection is encrypted."""
        return bool(self.tls_ca or self.tls_cert)


def load_connection(given: Connection | None, *, api_key_file: str = "") -> Connection:
    """Return a connection's settings from all sources.

    Args:
        given: Arguments.
        api_key_file: A file that contains the API key.

    Raises:
        InvalidInputError: A file can't be read, or a setting lacks another one.
    """
    given = given or Connection()
    values = {
        entry.name: getattr(given, entry.name)
        or os.environ.get(f"{_PREFIX}{entry.name.upper()}", "")
        for entry in fields(Connection)
        if entry.name != "api_key"
    }
    # The named file goes before the environment, like every other argument.
    key = given.api_key
    if api_key_file:
        key = read_secret({f"{API_KEY}_FILE": api_key_file}, API_KEY)
    found = Connection(**values, api_key=key or read_secret(os.environ, API_KEY))
    if bool(found.tls_cert) != bool(found.tls_key):
        names = ("tls_cert", "tls_key") if found.tls_cert else ("tls_key", "tls_cert")
        raise InvalidInputError(
            f"Connection({names[0]}=…) is given without Connection({names[1]}=…); give both or "
            "neither"
        )
    return found


def host_of(target: str) -> str:
    """Return the host of an address such as ``lab:50051`` or ``ipv6:[::1]:50051``."""
    # The forms of names that gRPC takes as targets.
    name = target.removeprefix("dns:").removeprefix("ipv4:").removeprefix("ipv6:").lstrip("/")
    host, colon, _ = name.rpartition(":")
    return (host if colon and (":" not in host or host.endswith("]")) else name).strip("[]")


def is_here(target: str) -> bool:
    """Return whether an address is of this machine, so that what is sent does not leave it."""
    # A socket in the file system is reached from this machine only.
    if target.startswith("unix:"):
        return True
    host = host_of(target)
    address = _address(host)
    return host == "localhost" or (address is not None and address.is_loopback)
