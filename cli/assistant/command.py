"""``schedulerlog mcp``."""

from pathlib import Path
from typing import Annotated

import typer

from cli.terminal.exit_codes import USAGE
from cli.terminal.options import ApiConnection, with_api_options
from runtime.cli.cli import build_option_arguments, fail
from runtime.settings.addresses import HostPort, parse_listen_address

_LOOPBACK = ("127.0.0.1", "::1", "localhost")


@with_api_options
def mcp(
    connection: ApiConnection,
    http: Annotated[
        HostPort | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Serve streamable HTTP at /mcp instead of stdio, with each caller's token for the API.",
            **build_option_arguments(lambda text: parse_listen_address(text, "127.0.0.1:8765")),
        ),
    ] = None,
    cert_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Certificate for HTTPS; with --key-file.")
    ] = None,
    key_file: Annotated[Path | None, typer.Option(metavar="FILE", help="Private key of the certificate.")] = None,
) -> None:
    """Serve answers to assistants (MCP): over stdio, or over HTTP with the rights of each caller. It only reads.

    \b
    For a client of MCP, in its configuration:
      {"mcpServers": {"schedulerlog": {"command": "schedulerlog", "args": ["mcp"]}}}
    """
    from cli.assistant.callers import use_bearer_tokens, use_one_user
    from cli.assistant.server import create_server

    if http is None:
        create_server(use_one_user(connection.create_transport())).run()
        return
    if not connection.api_url:
        fail("--http: give --api-url too: kubectl's credentials are yours, not the callers'", USAGE)
    if connection.api_token_file:
        fail("--http: leave out --api-token-file: every caller sends a token of its own", USAGE)
    if bool(cert_file) != bool(key_file):
        fail("--cert-file and --key-file go together", USAGE)
    if http.host not in _LOOPBACK and not cert_file:
        fail("--http: tokens are not taken in plain text from other machines: give --cert-file and --key-file", USAGE)
    from cli.assistant.http_server import serve
    from runtime.http.server_tls import BrokenPairError, CertificatePair, Certificates

    try:
        certificates = Certificates(CertificatePair(cert_file, key_file)) if cert_file and key_file else None
    except BrokenPairError as error:
        fail(str(error), USAGE)
    callers = use_bearer_tokens(connection.api_url, str(connection.api_ca_file or ""))
    serve(create_server(callers, is_shared=True), http, certificates)
