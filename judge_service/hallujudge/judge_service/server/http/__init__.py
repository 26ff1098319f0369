"""HTTP with JSON: the same methods, callers, limits and errors as over gRPC."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..tls import server_context
from .asgi_app import Handlers, HttpApp, routes_of
from .json_messages import JsonForm
from .listener import HttpListener

if TYPE_CHECKING:
    from ..services import Services


async def listener_of(services: Services) -> HttpListener:
    """Return the HTTP listener that the settings describe.

    Raises:
        InvalidInputError: The address cannot be listened on.
    """
    settings = services.settings
    handlers = Handlers()
    services.register(handlers)
    routes = await routes_of(
        handlers, json=services.interceptors(JsonForm), binary=services.interceptors()
    )
    app = HttpApp(routes, settings, services.authenticator, services.recorder)
    return HttpListener(
        app,
        settings,
        services.calls,
        services.recorder,
        services.connections,
        tls=server_context(settings.tls),
    )
