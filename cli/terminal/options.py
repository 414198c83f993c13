"""The options that all commands share, each declared once."""

import contextlib
import dataclasses
import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, get_type_hints

import typer

from cli.client.transport import Transport
from cli.terminal.answers import Format
from cli.terminal.exit_codes import USAGE
from engine.cases.workload_words import Subject, parse_subject
from runtime.cli.cli import build_option_arguments, fail
from runtime.settings import addresses

if TYPE_CHECKING:
    from cli.client.kubectl import KubectlTransport
    from cli.direct.transport import DirectTransport

URL_VARIABLE: Final = "SCHEDULERLOG_API_URL"


def _refuse_flag(parameter: typer.CallbackParam, context: typer.Context, token: str) -> str:
    source = context.get_parameter_source(parameter.name or "")
    if source is not None and source.name == "COMMANDLINE":
        fail("--api-token: everyone on this machine can read a command line: give --api-token-file", USAGE)
    return token


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiConnection:
    """The connection to the API, and the namespace of the question."""

    namespace: Annotated[
        str,
        typer.Option("--namespace", "-n", metavar="NAME", help="Namespace of pods; default: the kubeconfig context's."),
    ] = ""
    context: Annotated[
        str, typer.Option(metavar="NAME", help="Context of the kubeconfig; default: its current one.")
    ] = ""
    kubeconfig: Annotated[
        str, typer.Option(metavar="FILE", help="Kubeconfig; default: the file that kubectl uses.")
    ] = ""
    api_url: Annotated[
        str | None,
        typer.Option(
            "--api-url",
            "--url",
            envvar=URL_VARIABLE,
            metavar="URL",
            help="Address of the API; default: kubectl asks the aggregated API, without one the cluster itself.",
            **build_option_arguments(
                lambda text: addresses.parse_url(text, "https://schedulerlog.example:9090") if text else ""
            ),
        ),
    ] = None
    api_token_file: Annotated[
        Path | None,
        typer.Option(
            envvar="SCHEDULERLOG_API_TOKEN_FILE",
            metavar="FILE",
            help="File with a bearer token for the API at the URL.",
        ),
    ] = None
    api_token: Annotated[
        str,
        typer.Option(
            envvar="SCHEDULERLOG_API_TOKEN",
            metavar="TEXT",
            hidden=True,
            help="The token itself; only by this variable.",
            callback=_refuse_flag,
        ),
    ] = ""
    api_ca_file: Annotated[
        Path | None,
        typer.Option(envvar="SCHEDULERLOG_API_CA_FILE", metavar="FILE", help="Authority of the API's certificate."),
    ] = None
    _open: contextlib.ExitStack = dataclasses.field(default_factory=contextlib.ExitStack, init=False, compare=False)
    """Ends what transports started, at the end of the command."""

    def close(self) -> None:
        """End what the transports of this command started."""
        self._open.close()

    def create_transport(self) -> Transport:
        """Create the transport that the options name; imports only that one."""
        if self.api_url:
            from cli.client.url import UrlTransport

            return UrlTransport(
                self.api_url, self._read_token(), str(self.api_ca_file or ""), self.namespace or "default"
            )
        from cli.client.fallback import FallbackTransport

        kubectl = self._create_kubectl()
        return FallbackTransport(kubectl, kubectl.has_api, lambda: self._create_direct(kubectl))

    def create_cluster_transport(self) -> "DirectTransport":
        """Create the transport that reads the cluster's objects, also where the API is installed."""
        return self._create_direct(self._create_kubectl())

    def _create_kubectl(self) -> "KubectlTransport":
        from cli.client.kubectl import KubectlTransport

        return KubectlTransport(self.context, self.kubeconfig, self.namespace)

    def _create_direct(self, kubectl: "KubectlTransport") -> "DirectTransport":
        from cli.client.proxy import ProxiedKubectl

        proxied = ProxiedKubectl(kubectl)
        # It starts while the modules below are imported.
        proxied.start()
        self._open.callback(proxied.stop)
        # Imported late: it brings the engine, which an answer of the API does without.
        from cli.direct.reader import ObjectReader
        from cli.direct.transport import DirectTransport, import_judge
        from cli.terminal.screen import complain
        from ingest.reading.protocol import collect_garbage_seldom

        collect_garbage_seldom()
        return DirectTransport(ObjectReader(proxied.read_raw, import_judge), kubectl.get_namespace, complain)

    def parse_pod(self, text: str) -> tuple[str, str]:
        """Parse ``NAME``, ``pod/NAME`` or ``NAMESPACE/NAME`` into namespace and name."""
        subject = self.parse_subject(text)
        if subject.word:
            fail(f"{text} is not a pod: `schedulerlog why {text}` answers about workloads", USAGE)
        return subject.namespace, subject.name

    def parse_subject(self, text: str) -> Subject:
        """Parse a pod, or a workload as ``job/NAME``; without a namespace in the words it has the default one."""
        subject = parse_subject(text)
        if self.namespace and subject.namespace not in ("", self.namespace):
            fail(f"{text} names another namespace than --namespace {self.namespace}", USAGE)
        return subject._replace(namespace=subject.namespace or self.create_transport().get_namespace())

    def _read_token(self) -> str:
        if not self.api_token_file:
            return self.api_token
        try:
            return self.api_token_file.read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            fail(f"--api-token-file: {self.api_token_file}: {error}", USAGE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking(ApiConnection):
    """The connection, and the form in which the command prints the answer."""

    output: Annotated[
        Format,
        typer.Option("--output", "-o", metavar="wide|json|yaml|name", help="More columns, or for programs."),
    ] = "text"


def with_api_options(command: Callable[..., None]) -> Callable[..., None]:
    """Decorate a command whose first parameter is an ``ApiConnection``: its fields become options as well."""
    first, *command_parameters = inspect.signature(command, eval_str=True).parameters.values()
    kind: type[ApiConnection] = first.annotation
    hints = get_type_hints(kind, include_extras=True)
    shared = [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name]
        )
        for field in dataclasses.fields(kind)
        if field.init
    ]
    parameters = [
        *(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in command_parameters),
        *shared,
    ]

    @functools.wraps(command)
    def call(**arguments: Any) -> None:
        asking = kind(**{parameter.name: arguments.pop(parameter.name) for parameter in shared})
        try:
            command(asking, **arguments)
        finally:
            asking.close()

    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return call
