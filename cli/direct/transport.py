"""The paths of the API answered from a live cluster: diagnosis of a pod, pods that wait."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final
from urllib.parse import unquote

from cli.client.changes import WatchedChange
from cli.client.kubectl import INSTALL
from cli.client.problems import NotFound, Problem, Unreachable
from cli.client.transport import NO_QUERY, Query
from cli.direct.pod_case import LiveCase, read_pod_case
from cli.direct.reader import ObjectReader
from engine.snapshot import kinds
from ingest.cases.answers import diagnose_pods
from schemas.json_types import Json

_DIAGNOSIS: Final = re.compile(r"/namespaces/([^/]+)/pods/([^/]+)/diagnosis")
MAX_SIMILAR: Final = 5
_RUNGS: Final = (
    (frozenset((kinds.NODE, kinds.POD)), "which node or device refuses the pod, and what would help"),
    (frozenset(("Event",)), "what the scheduler wrote about the pod"),
    (frozenset((kinds.VOLUME_CLAIM, kinds.VOLUME, kinds.STORAGE_CLASS)), "whether its volumes can be used"),
)
"""Kinds, and what the answer would say with them."""

ShowNote = Callable[[str], None]
"""Shows a person a note about the answer."""


@dataclass(frozen=True, slots=True)
class DirectTransport:
    """Answers from the cluster's objects; the rest of the API's answers needs its records."""

    reader: ObjectReader
    namespace: Callable[[], str]
    show_note: ShowNote

    def get(self, path: str, query: Query = NO_QUERY) -> Json | Problem:
        """Answer a path of the API, or say that it needs the API."""
        if (match := _DIAGNOSIS.fullmatch(path)) and not query.get("attempt"):
            return self._diagnose(unquote(match[1]), unquote(match[2]))
        return Unreachable("this answer needs the records of schedulerlog", INSTALL)

    def get_text(self, path: str, query: Query = NO_QUERY) -> bytes | Problem:  # noqa: ARG002 - the protocol's
        return Unreachable("this answer needs the records of schedulerlog", INSTALL)

    def post(self, path: str, body: bytes, query: Query = NO_QUERY) -> Json | Problem:  # noqa: ARG002 - the protocol's
        return Unreachable("this answer needs schedulerlog's API, or --cluster FILE", INSTALL)

    def stream(self, path: str, query: Query = NO_QUERY) -> Iterator[WatchedChange | Problem]:  # noqa: ARG002
        yield Unreachable("changes are followed by schedulerlog's API", INSTALL)

    def get_namespace(self) -> str:
        return self.namespace()

    def _diagnose(self, namespace: str, name: str) -> Json | Problem:
        live = read_pod_case(self.reader, namespace, name)
        if isinstance(live, Problem):
            return live
        if live.pod is None and f"{namespace}/{name}" not in live.case.pods.pods:
            return _explain_absence(live, namespace, name)
        self.show_note(describe_rung(live.problems))
        (answer,) = diagnose_pods(live.case, [f"{namespace}/{name}"])
        return answer.diagnosis.model_dump(mode="json")


def describe_rung(problems: Mapping[str, Problem]) -> str:
    """Describe what the answer stands on, and what it would say with further rights."""
    text = "Read from the cluster's objects, without schedulerlog's records (history needs its API)."
    if not problems:
        return text
    names = ", ".join(sorted(kind.partition(".")[0] for kind in problems))
    missing = [gain for needed, gain in _RUNGS if needed & problems.keys()]
    gains = f"; with the right to list them it would say {' and '.join(missing)}" if missing else ""
    return f"{text} You may not read: {names}{gains}."


def _explain_absence(live: LiveCase, namespace: str, name: str) -> Problem:
    """Explain that the pod does not exist, with the most similar names, also in other namespaces."""
    keys = list(live.case.objects.tables.get(kinds.POD, {}))
    elsewhere = [f"{other}/{name}" for other, pod in keys if pod == name and other != namespace]
    neighbours = [pod for other, pod in keys if other == namespace]
    nearest = get_close_matches(name, neighbours, MAX_SIMILAR, cutoff=0.5)
    similar = [*elsewhere[:MAX_SIMILAR], *(f"{namespace}/{pod}" for pod in nearest)]
    hint = f"Similar names: {', '.join(similar)}" if similar else f"`kubectl get pods -n {namespace}` lists its pods"
    return NotFound(f"the pod {namespace}/{name} does not exist", f"{hint}.")
