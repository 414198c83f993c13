"""Rights of a question to the API.

Over stdio the server runs as its user: kubectl's credentials, or the token that the command was given. Over HTTP it has
no rights of its own: the bearer token of each request is passed on to the API, and only that one.
"""

from collections.abc import Callable, Mapping
from typing import Any

from mcp.server.mcpserver import Context

from cli.client.problems import NotAllowed, Problem
from cli.client.transport import Transport
from cli.client.url import UrlTransport

Callers = Callable[[Context[Any, Any]], Transport | Problem]
"""Transport for the caller of a tool, or the problem that prevents one."""
_BEARER = "bearer "


def use_one_user(transport: Transport) -> Callers:
    """Give every question the rights of the user who started the server."""
    return lambda _: transport


def use_bearer_tokens(url: str, ca_file: str) -> Callers:
    """Give each question the rights of the bearer token that came with it."""

    def create_transport(context: Context[Any, Any]) -> Transport | Problem:
        authorization = get_authorization(context)
        if authorization and not authorization.lower().startswith(_BEARER):
            return NotAllowed("the request's Authorization is not a bearer token", "Send one that the API accepts.")
        # Without a token the API says whether it answers everybody.
        return UrlTransport(url, authorization[len(_BEARER) :].strip(), ca_file)

    return create_transport


def get_authorization(context: Context[Any, Any]) -> str:
    """Return the header ``Authorization`` of the request; empty without one, as over stdio."""
    headers: Mapping[str, str] = getattr(context.request_context.request, "headers", {})
    return headers.get("authorization", "")
