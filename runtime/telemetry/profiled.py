"""``--profiling`` for a command that runs for long: profiles of it under ``/debug/pprof/`` while it runs."""

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Annotated, Any, Final

import typer

from runtime.cli.cli import one_line_for, reads
from runtime.errors import SettingError
from runtime.settings import addresses, variables
from runtime.settings.addresses import LOOPBACK, HostPort

DEFAULT_ADDRESS: Final = HostPort(LOOPBACK, 6060)

_Switch = Annotated[
    bool,
    typer.Option(
        "--profiling/--no-profiling",
        envvar=variables.PROFILING,
        help="Serve CPU and memory profiles under /debug/pprof/.",
    ),
]
_Address = Annotated[
    HostPort,
    typer.Option(
        "--profiling-address",
        envvar=variables.PROFILING_ADDRESS,
        metavar="HOST:PORT",
        help="Where profiles are served. They show the program's insides to everyone who can reach the address.",
        **reads(addresses.listen_address),
    ),
]


def profiled(command: Callable[..., None]) -> Callable[..., None]:
    """A decorator that adds ``--profiling`` and ``--profiling-address`` to a command of typer."""

    @functools.wraps(command)
    def call(*, profiling: bool, profiling_address: HostPort, **given: Any) -> None:
        with one_line_for(SettingError), serving_profiles(profiling_address if profiling else None, _to_stderr):
            command(**given)

    parameters = [
        *inspect.signature(command, eval_str=True).parameters.values(),
        _parameter("profiling", _Switch, default=False),
        # As text: typer reads a default as it reads an argument.
        _parameter("profiling_address", _Address, default=str(DEFAULT_ADDRESS)),
    ]
    keywords = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
    # typer reads parameters from the signature, and their types from the annotations: both have to be replaced.
    call.__signature__ = inspect.Signature(keywords)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in keywords}
    return call


def _to_stderr(line: str) -> None:
    # To stderr, as the log: what a command answers may be piped. The log itself is configured later, by the command.
    typer.echo(line, err=True)


@contextmanager
def serving_profiles(address: HostPort | None, say: Callable[[str], object]) -> Iterator[None]:
    """Serve profiles within this context, and say where; without an address nothing.

    Raises ``SettingError`` where the address can't be listened on.
    """
    if address is None:
        yield
        return
    # Imported here: what profiles need (tracemalloc, an HTTP server of its own) is absent where they are off.
    from runtime.telemetry.profiling.server import ProfilingServer

    try:
        server = ProfilingServer(*address)
    except OSError as error:
        cause = error.strerror or error
        raise SettingError(f"--profiling-address: can't listen on {address}: {cause}, give another address") from None
    with closing(server):
        say(f"profiles are at http://{server.address}/debug/pprof/")
        yield


def _parameter(name: str, annotation: Any, default: object) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
