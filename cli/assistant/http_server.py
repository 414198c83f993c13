"""The server over streamable HTTP: without sessions, so that no request finds the rights of another one."""

from pathlib import Path
from typing import Any, Final

import uvicorn
from mcp.server.mcpserver import MCPServer

from cli.assistant.bounded_calls import BoundedCalls
from runtime.http.patient_http import PatientHttp
from runtime.http.tls_listener import PatientServer
from runtime.settings.addresses import HostPort

PATH = "/mcp"
_MAX_CONNECTIONS: Final = 200


class _Protocol(PatientHttp):
    # A token, which the API bounds by 16 KiB, and what clients send beside it.
    max_head_bytes = 32 * 1024


def serve(server: MCPServer[Any], listen: HostPort, pair: tuple[Path, Path] | None) -> None:
    """Serve until the process is stopped; ``pair`` is a certificate and its key, for HTTPS."""
    app = server.streamable_http_app(
        streamable_http_path=PATH, json_response=True, stateless_http=True, host=listen.host
    )
    certificate, key = pair or (None, None)
    config = uvicorn.Config(
        BoundedCalls(app),
        listen.host,
        listen.port,
        http=_Protocol,
        loop="asyncio",
        ws="none",
        ssl_certfile=certificate,
        ssl_keyfile=key,
        log_level="info",
        limit_concurrency=_MAX_CONNECTIONS,
    )
    PatientServer(config).run(sockets=[config.bind_socket()])
