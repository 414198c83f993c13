"""``python -m api serve``: the REST API as one process."""

import logging
import socket
import sys
from typing import Annotated, Any, NoReturn

import typer
import uvicorn
from prometheus_client import disable_created_metrics
from pydantic import ValidationError

from api.app import create_app
from api.http.json_protocol import JsonProtocol
from api.settings import PREFIX, Settings, Switch, problem
from process.cli import application

app = application("schedulerlog over HTTP.")


@app.callback()
def main() -> None:
    """schedulerlog over HTTP."""


@app.command()
def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on.", show_default="127.0.0.1")] = None,
    port: Annotated[int | None, typer.Option(help="Port; 0 takes a free one.", show_default="9090")] = None,
) -> None:
    """Answer until SIGTERM or Ctrl-C. Settings come from SCHEDULERLOG_ variables; docs/api.md lists them."""
    given: dict[str, Any] = {"api_host": host, "api_port": port}
    try:
        if not Switch().api_enabled:
            _end(f"the API is switched off ({PREFIX}API_ENABLED=false)", 0)
        settings = Settings(**{name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        _end(problem(error), 2)
    _listen_and_serve(settings)


def _listen_and_serve(settings: Settings) -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    # They repeat every failed connection, several times a second; the topic says it once.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    logging.getLogger("httpx").setLevel(logging.WARNING)
    disable_created_metrics()  # type: ignore[no-untyped-call]
    listening = _listen(settings.api_host, settings.api_port)
    host, port = listening.getsockname()[:2]
    typer.echo(f"schedulerlog API on http://{f'[{host}]' if ':' in host else host}:{port} (documentation: /docs)")
    sys.stdout.flush()
    config = uvicorn.Config(
        create_app(settings), http=JsonProtocol, access_log=False, log_level="error", timeout_graceful_shutdown=5
    )
    uvicorn.Server(config).run(sockets=[listening])


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listening = socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        cause = str(error.strerror).partition(" (while")[0]
        _end(f"can't listen on {host}:{port}: {cause}; --port chooses another", 1)
    return listening


def _end(line: str, status: int) -> NoReturn:
    typer.echo(line, err=bool(status))
    raise SystemExit(status)


if __name__ == "__main__":
    app()
