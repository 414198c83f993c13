"""Command lines that behave alike: plain help, the options that several have, one line for the caller's mistakes."""

import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, NoReturn, TypeVar, get_type_hints

import typer
from typer.core import TyperGroup

from process import addresses, variables
from process.addresses import HostPort
from process.cluster_name import cluster_name
from process.pod_labels import label_names

T = TypeVar("T")


def application(about: str, *, cls: type[TyperGroup] | None = None, add_completion: bool = False) -> typer.Typer:
    """A command line that shows its help when it is called without a command; ``about`` is that help's first line."""
    return typer.Typer(
        help=about,
        cls=cls,
        add_completion=add_completion,
        pretty_exceptions_enable=False,
        no_args_is_help=True,
        # As markup, NAMESPACE/NAME[/CONTAINER] in a help text is a closing tag, and rich ends with a traceback.
        rich_markup_mode=None,
    )


def fail(message: str, status: int) -> NoReturn:
    """End the command with one line on stderr. Exit codes: 2 for a mistake of the caller, 1 for the world's."""
    typer.echo(message, err=True)
    raise typer.Exit(status)


@contextmanager
def one_line_for(*mistakes: type[Exception], status: int = 2) -> Iterator[None]:
    """Show these exceptions by their message alone, without a traceback."""
    try:
        yield
    except mistakes as error:
        fail(str(error), status)


def reads(read: Callable[[str], T]) -> dict[str, Any]:
    """Arguments of ``typer.Option`` for a text that ``read`` understands.

    The message of its ``ValueError`` is one line that names the flag, or the variable where the text came from there.
    """

    def convert(context: typer.Context, parameter: typer.CallbackParam, text: str | None) -> T | None:
        if text is None:
            return None
        try:
            return read(text)
        except ValueError as error:
            source = context.get_parameter_source(parameter.name or "")
            is_variable = source is not None and source.name == "ENVIRONMENT"
            fail(f"{parameter.envvar if is_variable else parameter.opts[0]}: {error}", 2)

    # A callback and not a parser: only it knows whether the text came from the flag or from the variable.
    return {"parser": str, "callback": convert}


_KAFKA = typer.Option(
    "--kafka",
    envvar=variables.KAFKA,
    metavar="HOST:PORT,…",
    help="Addresses of any of Kafka's brokers.",
    **reads(addresses.bootstrap_servers),
)
Kafka = Annotated[str, _KAFKA]
"""For commands that can't do without it."""
KafkaIfGiven = Annotated[str | None, _KAFKA]

ClusterName = Annotated[
    str,
    typer.Option(
        "--cluster-name",
        envvar=variables.CLUSTER_NAME,
        metavar="NAME",
        help="Of the Kubernetes cluster, where several share Kafka and OpenSearch.",
        **reads(cluster_name),
    ),
]
"""With the default ``process.cluster_name.DEFAULT_CLUSTER``."""

PodLabels = Annotated[
    str,
    typer.Option(
        "--pod-labels",
        envvar=variables.POD_LABELS,
        metavar="NAME,…",
        help="Labels of pods that are kept with their attempts.",
        **reads(lambda text: ",".join(label_names(text))),
    ),
]
"""Names between commas, as ``process.pod_labels.label_names`` reads them."""

MetricsAddress = Annotated[
    HostPort | None,
    typer.Option(
        "--metrics-address",
        envvar=variables.METRICS_ADDRESS,
        metavar="HOST:PORT",
        help="Serve /metrics, /healthz and /readyz there; a port alone is one of 127.0.0.1.",
        **reads(addresses.listen_address),
    ),
]


def takes(options: type[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A decorator for a command: its first parameter is an instance of the dataclass ``options``, whose fields become
    options of the command line, before those of the command's own parameters.

    A field is declared as a parameter would be: ``Annotated[int, typer.Option(help="…")] = 5``.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        _, *own = inspect.signature(command, eval_str=True).parameters.values()
        names = {field.name for field in dataclasses.fields(options)}

        @functools.wraps(command)
        def call(**given: Any) -> None:
            chosen = {name: given.pop(name) for name in names}
            command(options(**chosen), **given)

        shared = _parameters(options)
        parameters = [*shared, *(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own)]
        # typer reads parameters from the signature, and their types from the annotations: both have to be replaced.
        call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return call

    return decorate


def _parameters(options: type[Any]) -> list[inspect.Parameter]:
    hints = get_type_hints(options, include_extras=True)
    return [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=_default(field), annotation=hints[field.name]
        )
        for field in dataclasses.fields(options)
    ]


def _default(field: dataclasses.Field[Any]) -> Any:
    return inspect.Parameter.empty if field.default is dataclasses.MISSING else field.default
