"""The server over streamable HTTP: without sessions, so that no request finds the rights of another one."""

import asyncio
import socket
from typing import Any, Final

import uvicorn
from mcp.server.mcpserver import MCPServer

from cli.assistant.bounded_calls import BoundedCalls
from runtime.http.patient_http import PatientHttp
from runtime.http.server_tls import Certificates
from runtime.http.tls_listener import PatientServer
from runtime.settings.addresses import HostPort
from runtime.signals import end

PATH = "/mcp"
_MAX_CONNECTIONS: Final = 200


class _Protocol(PatientHttp):
    # A token, which the API bounds by 16 KiB, and what clients send beside it.
    max_head_bytes = 32 * 1024


def serve(server: MCPServer[Any], listen: HostPort, certificates: Certificates | None) -> None:
    """Serve until the process is stopped; over HTTPS with ``certificates``, whose files it follows."""
    app = server.streamable_http_app(
        streamable_http_path=PATH, json_response=True, stateless_http=True, host=listen.host
    )
    secured: dict[str, Any] = {"ssl_context_factory": lambda *_: certificates.context} if certificates else {}
    config = uvicorn.Config(
        BoundedCalls(app),
        listen.host,
        listen.port,
        http=_Protocol,
        loop="asyncio",
        ws="none",
        log_level="info",
        limit_concurrency=_MAX_CONNECTIONS,
        **secured,
    )
    asyncio.run(_serve(PatientServer(config), config.bind_socket(), certificates))


async def _serve(server: PatientServer, listening: socket.socket, certificates: Certificates | None) -> None:
    following = [asyncio.create_task(certificates.run())] if certificates else []
    try:
        await server.serve(sockets=[listening])
    finally:
        await end(following)
