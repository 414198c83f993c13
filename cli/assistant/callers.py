"""Whose rights a question has.

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
"""The transport for the caller of a tool, or why there is none."""
_BEARER = "bearer "


def one_user(transport: Transport) -> Callers:
    """Every question has the same rights: those of the user who started the server."""
    return lambda _: transport


def bearers(url: str, ca_file: str) -> Callers:
    """Each question has the rights of the token that it came with."""

    def of(context: Context[Any, Any]) -> Transport | Problem:
        request = context.request_context.request
        headers: Mapping[str, str] = getattr(request, "headers", {})
        given = headers.get("authorization", "")
        if given and not given.lower().startswith(_BEARER):
            return NotAllowed("the request's Authorization is not a bearer token", "Send one that the API accepts.")
        # Without a token the API says whether it answers everybody.
        return UrlTransport(url, given[len(_BEARER) :].strip(), ca_file)

    return of
