"""The aggregated API by kubectl, which reads the kubeconfig, runs its plugins for logging in, and knows proxies."""

import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from cli.client.problems import NotAllowed, NotFound, Problem, Unreachable, WrongRequest
from cli.client.requests import AGGREGATED, to_aggregated, with_query
from cli.client.transport import NO_QUERY, TIMEOUT_SECONDS, Query, WatchedChange, parse_changes, read_json
from cli.client.wording import to_terminal_words
from schemas.json_types import Json

KUBECTL: Final = os.environ.get("KUBECTL", "kubectl")
_SERVER: Final = re.compile(r"Error from server(?: \((?P<reason>\w+)\))?: (?P<message>.*)", re.DOTALL)
_NOT_INSTALLED: Final = ("could not find the requested resource", "page not found")
INSTALL: Final = (
    "The cluster has no aggregated API of schedulerlog (component aggregated-api, docs/deploy.md): install it, or give "
    "--api-url."
)


_NAME_A_CLUSTER: Final = "Set KUBECONFIG, or name a file with --kubeconfig, or an API of schedulerlog with --api-url."


@dataclass(frozen=True, slots=True)
class KubectlTransport:
    context: str = ""
    """A context of the kubeconfig; empty: its current one."""
    kubeconfig: str = ""
    """A file; empty: kubectl's own choice."""
    default_namespace: str = ""
    """Empty: the namespace of the context."""
    program: str = KUBECTL

    def get(self, path: str, query: Query = NO_QUERY) -> Json | Problem:
        return _parse_json(self.get_text(path, query))

    def get_text(self, path: str, query: Query = NO_QUERY) -> bytes | Problem:
        return self._run(["get", *self._to_arguments(path, query)])

    def post(self, path: str, body: bytes, query: Query = NO_QUERY) -> Json | Problem:
        return _parse_json(self._run(["create", *self._to_arguments(path, query), "-f", "-"], body))

    def read_raw(self, path: str) -> bytes | Problem:
        """Read what the API server itself answers to a path."""
        return self._run(["get", "--raw", path])

    def has_api(self) -> bool:
        """Tell whether the cluster has the aggregated API; every user may read which groups there are."""
        return not isinstance(self.read_raw(AGGREGATED.rpartition("/")[0]), NotFound | Unreachable)

    def stream(self, path: str, query: Query = NO_QUERY) -> Iterator[WatchedChange | Problem]:
        command = self.build_command("get", *self._to_arguments(path, query))
        try:
            running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        except OSError as error:
            yield self._to_problem(error)
            return
        with running:
            try:
                yield from parse_changes(running.stdout or ())
                errors = running.stderr.read() if running.stderr else b""
                if running.wait():
                    yield parse_kubectl_problem(errors.decode("utf-8", "replace"))
            finally:
                running.terminate()

    def get_namespace(self) -> str:
        """Get the default namespace, else the one of the context, as kubectl does."""
        if self.default_namespace:
            return self.default_namespace
        command = self.build_command("config", "view", "--minify", "-o", "jsonpath={..namespace}")
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=10)
        except (OSError, subprocess.TimeoutExpired):
            return "default"
        return done.stdout.strip() or "default"

    def _to_arguments(self, path: str, query: Query) -> list[str]:
        return ["--raw", with_query(*to_aggregated(path, query))]

    def build_command(self, *arguments: str) -> list[str]:
        """Build the command line of kubectl for the same cluster and user."""
        return [self.program, *self._options(), *arguments]

    def _options(self) -> list[str]:
        options = (("--context", self.context), ("--kubeconfig", self.kubeconfig))
        return [f"{flag}={value}" for flag, value in options if value]

    def _run(self, arguments: Sequence[str], stdin: bytes = b"") -> bytes | Problem:
        command = self.build_command(*arguments)
        try:
            # Never this process's own standard input, which may be a protocol (``schedulerlog mcp``).
            done = subprocess.run(command, capture_output=True, check=False, timeout=TIMEOUT_SECONDS, input=stdin)
        except OSError as error:
            return self._to_problem(error)
        except subprocess.TimeoutExpired:
            return Unreachable(f"kubectl has not answered within {TIMEOUT_SECONDS} s", "Does `kubectl get ns` answer?")
        if done.returncode:
            return parse_kubectl_problem(done.stderr.decode("utf-8", "replace"))
        return done.stdout

    def _to_problem(self, error: OSError) -> Problem:
        return Unreachable(
            f"{self.program} can't be started: {error.strerror}", "Install kubectl, or give the API's --api-url."
        )


def _parse_json(body: bytes | Problem) -> Json | Problem:
    return body if isinstance(body, Problem) else read_json(body, "the API server")


def parse_kubectl_problem(errors: str) -> Problem:
    """Parse the problem that kubectl prints to its standard error."""
    # Warnings stand on lines of their own before it.
    text = errors[errors.find("Error from server") :].strip() if "Error from server" in errors else errors.strip()
    match = _SERVER.match(text)
    if not match:
        return _parse_client_problem(text)
    # Our own errors are `cause. next step`.
    cause, _, next_step = map(to_terminal_words, match["message"].strip().partition(". "))
    match match["reason"]:
        case "NotFound" if any(words in cause for words in _NOT_INSTALLED):
            return Unreachable(cause, INSTALL)
        case "UnknownPath":
            return Unreachable(cause, "The API is older than this command.")
        case "NotFound":
            return NotFound(cause, next_step)
        case "Forbidden" | "Unauthorized":
            return NotAllowed(
                cause, next_step or "An administrator of the cluster can give the right (docs/deploy.md)."
            )
        case "ServiceUnavailable" | "ObjectsNotRead" | "InternalError" | "Timeout" | None:
            return Unreachable(cause, next_step or "Is schedulerlog's API ready? `kubectl get apiservices` shows it.")
    return WrongRequest(cause, next_step)


def _parse_client_problem(text: str) -> Problem:
    cause = (text.splitlines() or ["kubectl ended without a message"])[-1].removeprefix("error: ")
    if "Unauthorized" in cause or "must be logged in" in cause:
        return NotAllowed(cause, "Log in as for `kubectl get pods`.")
    if "getting credentials" in cause:
        return NotAllowed(
            cause, "The kubeconfig's login command failed: log in again, until `kubectl get pods` answers."
        )
    if "localhost:8080 was refused" in cause:
        # kubectl's address where it has no kubeconfig.
        return Unreachable("kubectl has no kubeconfig, or one without a cluster", _NAME_A_CLUSTER)
    if cause.startswith("context ") and cause.endswith(" does not exist"):
        return WrongRequest(cause, "`kubectl config get-contexts` lists those of the kubeconfig.")
    return Unreachable(cause, "Does `kubectl get pods` answer? --context names another cluster, --api-url an API.")
