"""Who calls: the caller of an RPC from its key, its certificate or its address."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from ..access.caller import Caller, Scope
from ..errors import UnauthenticatedError

if TYPE_CHECKING:
    import grpc

__all__ = ["Door"]

_Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"

_ANONYMOUS = frozenset({Scope.SCORE, Scope.EXTRACT, Scope.JUDGE})


class Door:
    """Tells who calls, and turns away those who may not.

    Args:
        anonymous: Whether callers without a key are served.
    """

    def __init__(self, *, anonymous: bool = True) -> None:
        self._anonymous = anonymous

    def caller_of(self, context: _Context) -> Caller:
        """Return the caller of an RPC.

        Raises:
            UnauthenticatedError: There is no key, or it is not valid.
        """
        if not self._anonymous:
            raise UnauthenticatedError(
                "this server needs an API key; set HALLUJUDGE_API_KEY, or HALLUJUDGE_API_KEY_FILE "
                "to a file that contains it",
                reason="KEY_MISSING",
            )
        return anonymous(context.peer())


def anonymous(peer: str) -> Caller:
    """Return the caller without a key at an address, such as ``ipv4:10.0.0.7:40312``."""
    host = peer.rpartition(":")[0] if peer.startswith(("ipv4:", "ipv6:")) else peer
    return Caller(id=f"peer:{host}", name=f"anonymous ({host})", scopes=_ANONYMOUS)
