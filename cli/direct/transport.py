"""The paths of the API answered from a live cluster: diagnosis of a pod or workload, pods that wait, nodes."""

import importlib
import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from cli.client.kubectl import INSTALL
from cli.client.problems import NotAllowed, NotFound, Problem, Unreachable
from cli.client.transport import NO_QUERY, Query, WatchedChange
from cli.direct.pod_case import (
    LiveCase,
    read_nodes_case,
    read_pending_case,
    read_pod_case,
    read_purchase_case,
    read_simulated_case,
    save_case,
)
from cli.direct.polled_changes import iterate_pod_changes, iterate_waiting_changes
from cli.direct.reader import ObjectReader
from cli.direct.rungs import describe_log, describe_rung
from cli.direct.workload_case import read_workload_case
from engine.cases.similar_names import list_similar_names
from engine.snapshot import kinds
from schemas.json_types import Json

# The judge is imported while the first lists are on their way (``import_judge``): both take half a second.
if TYPE_CHECKING:
    from ingest.cases.answers import PodAnswer
    from schemas.answers.diagnosis import Diagnosis

_POD: Final = re.compile(r"/namespaces/([^/]+)/pods/([^/]+)/(diagnosis|suggestions|scores|findings)")
_WORKLOAD: Final = re.compile(r"/namespaces/([^/]+)/workloads/([^/]+)/([^/]+)")
_WATCHED_POD: Final = re.compile(r"/namespaces/([^/]+)/pods/([^/]+)/schedulerlog")
_NODE: Final = re.compile(r"/nodes(?:/([^/]+)(/occupancy)?)?")
_DRAIN: Final = re.compile(r"/nodes/([^/]+)/drain")
_SIMULATE: Final = "/simulate"
_CAPACITY: Final = "/capacity"
_DEFRAGMENT: Final = "/defragmentation"
_PURCHASE: Final = "/purchase"
_PENDING: Final = "/pending"
ShowNote = Callable[[str], None]
"""Shows a person a note about the answer."""


def import_judge() -> None:
    """Import the modules that judge and explain pods."""
    importlib.import_module("ingest.cases.workload_answers")
    importlib.import_module("ingest.readers.kube.reader")


@dataclass(frozen=True, slots=True)
class DirectTransport:
    """Answers from the cluster's objects; the rest of the API's answers needs its records."""

    reader: ObjectReader
    namespace: Callable[[], str]
    show_note: ShowNote
    _diagnosed: "dict[tuple[str, str], tuple[LiveCase, Diagnosis]]" = field(default_factory=dict)
    """The latest case by namespace and name of its pod, for the question that follows its diagnosis."""
    _answers: "dict[tuple[str, str], PodAnswer]" = field(default_factory=dict)
    """The latest answer by namespace and name of its pod."""
    _nodes: dict[str, LiveCase] = field(default_factory=dict)
    """The latest case by the name of its node."""
    sleep: Callable[[float], None] = time.sleep
    """Pauses between two readings of a watch."""

    def get(self, path: str, query: Query = NO_QUERY) -> Json | Problem:
        """Answer a path of the API, or say that it needs the API."""
        if path == _PENDING:
            return self._list_waiting(query)
        if (match := _NODE.fullmatch(path)) and not query.get("at"):
            return self._describe_nodes(unquote(match[1] or ""), query.get("pool") or "", has_occupancy=bool(match[2]))
        if match := _DRAIN.fullmatch(path):
            from cli.direct.simulation import plan_drain_of

            live = read_simulated_case(self.reader)
            self.show_note(describe_rung(live.problems))
            return plan_drain_of(live.case.objects, unquote(match[1]))
        if path == _PURCHASE:
            from cli.direct.simulation import plan_purchase_of

            live = read_purchase_case(self.reader)
            self.show_note(describe_rung(live.problems))
            return plan_purchase_of(live)
        if match := _WORKLOAD.fullmatch(path):
            return self._diagnose_workload(*map(unquote, match.groups()))
        match = _POD.fullmatch(path)
        if match is None or query.get("attempt"):
            return Unreachable("this answer needs the records of schedulerlog", INSTALL)
        namespace, name = unquote(match[1]), unquote(match[2])
        match match[3]:
            case "suggestions":
                return self._suggest(namespace, name)
            case "scores" | "findings" as part:
                return self._describe_attempt(namespace, name, part)
        diagnosed = self._diagnose(namespace, name)
        if isinstance(diagnosed, Problem):
            return diagnosed
        live, answer = diagnosed
        self._keep(live, [answer.diagnosis])
        self._answers[namespace, name] = answer
        self.show_note(describe_rung(live.problems))
        return answer.diagnosis.model_dump(mode="json")

    def _describe_attempt(self, namespace: str, name: str, part: str) -> Json | Problem:
        """Describe the latest attempt that the scheduler's log reports: its scores, or findings about it."""
        answer = self._answers.get((namespace, name))
        if answer is None:
            diagnosed = self._diagnose(namespace, name)
            if isinstance(diagnosed, Problem):
                return diagnosed
            answer = diagnosed[1]
        if part == "findings":
            return {"total": len(answer.findings), "items": list(answer.findings)}
        if answer.scores is None:
            return NotFound("no log that may be read has the scores of the pod's nodes", INSTALL)
        return answer.scores.model_dump(mode="json")

    def _diagnose_workload(self, namespace: str, word: str, name: str) -> Json | Problem:
        read = read_workload_case(self.reader, namespace, word, name)
        if isinstance(read, Problem):
            return read
        from ingest.cases.workload_answers import diagnose_workload

        live, key = read
        answer = diagnose_workload(live.case, key)
        self._keep(live, [group.diagnosis for group in answer.groups if group.diagnosis])
        self.show_note(describe_rung(live.problems))
        return answer.model_dump(mode="json")

    def _keep(self, live: LiveCase, diagnoses: Iterable["Diagnosis"]) -> None:
        """Keep the latest case only: a process that answers for days would hold every cluster that it has read."""
        self._diagnosed.clear()
        self._answers.clear()
        self._diagnosed.update({(entry.namespace, entry.name): (live, entry) for entry in diagnoses})

    def _describe_nodes(self, name: str, pool: str, *, has_occupancy: bool) -> Json | Problem:
        # The state of a node is asked for right after what is held of it.
        live = self._nodes.pop(name, None) or read_nodes_case(self.reader)
        if problem := live.problems.get(kinds.NODE) or live.problems.get(kinds.POD):
            return NotAllowed(problem.cause, "Nodes are answered with the right to list nodes and pods.")
        from cli.direct.node_lists import list_nodes
        from engine.cases.node_answers import CaseNodes

        now = live.case.read_at or datetime.now(UTC)
        if not name:
            return list_nodes(live.case.objects, now, pool)
        nodes = CaseNodes(live.case.objects, now)
        answer = nodes.build_occupancy(name) if has_occupancy else nodes.build_state(name)
        if answer is None:
            similar = list_similar_names(live.case.objects.select(kinds.NODE), "", name)
            names = ", ".join(entry.removeprefix("/") for entry in similar)
            hint = f"Similar names: {names}." if names else "`schedulerlog nodes` lists the nodes."
            return NotFound(f"the node {name} does not exist", hint)
        if has_occupancy:
            self._nodes[name] = live
        return answer.model_dump(mode="json", by_alias=True)

    def _list_waiting(self, query: Query) -> Json | Problem:
        if query.get("reason") or query.get("since"):
            return Unreachable("reasons and times are searched for in the records of schedulerlog", INSTALL)
        from cli.direct.waiting_groups import group_waiting
        from cli.direct.waiting_pods import list_waiting

        live = read_pending_case(self.reader, query.get("namespace", ""))
        self.show_note(describe_rung(live.problems))
        limit, grouping = query.get("limit", ""), query.get("group_by", "pod")
        obstacle = query.get("obstacle")
        is_limited = limit.isdecimal() and grouping == "pod" and not obstacle
        waiting = list_waiting(live, int(limit)) if is_limited else list_waiting(live)
        if isinstance(waiting, Problem):
            return waiting
        if obstacle:
            decided = [pod for pod in waiting.items if pod.obstacle and pod.obstacle.code == obstacle]
            waiting = waiting.model_copy(update={"items": decided, "total": len(decided)})
        return group_waiting(waiting, grouping).model_dump(mode="json", by_alias=True)

    def get_text(self, path: str, query: Query = NO_QUERY) -> bytes | Problem:  # noqa: ARG002 - the protocol's
        return Unreachable("this answer needs the records of schedulerlog", INSTALL)

    def post(self, path: str, body: bytes, query: Query = NO_QUERY) -> Json | Problem:
        """Simulate pods on the cluster as it is now, count how many start, or plan the moves after which they do."""
        if path not in (_SIMULATE, _CAPACITY, _DEFRAGMENT):
            return Unreachable("this answer needs the records of schedulerlog", INSTALL)
        from cli.direct.simulation import count_starts, plan_moves_on_cluster, simulate_on_cluster

        live = read_simulated_case(self.reader)
        self.show_note(describe_rung(live.problems))
        if path == _CAPACITY:
            return count_starts(live.case.objects, body, self.namespace(), query)
        if path == _DEFRAGMENT:
            return plan_moves_on_cluster(live.case.objects, body, self.namespace(), query)
        count = int(query["count"]) if query.get("count", "").isdecimal() else None
        return simulate_on_cluster(live.case.objects, body, self.namespace(), count)

    def stream(self, path: str, query: Query = NO_QUERY) -> Iterator[WatchedChange | Problem]:
        """Stream the changes of a pod, or of the pods that wait, by reading the cluster again and again."""
        has_initial = query.get("sendInitialEvents") != "false"
        if path == _PENDING:
            waiting = {"namespace": query.get("namespace", "")}
            yield from iterate_waiting_changes(
                lambda: self._list_quietly(waiting), has_initial=has_initial, sleep=self.sleep
            )
        elif match := _WATCHED_POD.fullmatch(path):
            namespace, name = unquote(match[1]), unquote(match[2])
            yield from iterate_pod_changes(
                lambda: self._diagnose_quietly(namespace, name), has_initial=has_initial, sleep=self.sleep
            )
        else:
            yield Unreachable("these changes are followed by schedulerlog's API", INSTALL)

    def _diagnose_quietly(self, namespace: str, name: str) -> Json | Problem:
        live = self._read_case(namespace, name)
        if isinstance(live, Problem):
            return live
        from ingest.cases.answers import diagnose_pods

        # A watch shows the state and the sentence: it looks for no changes.
        return diagnose_pods(live.case, [f"{namespace}/{name}"])[0].diagnosis.model_dump(mode="json")

    def _list_quietly(self, query: Query) -> Json | Problem:
        from cli.direct.waiting_pods import list_waiting

        waiting = list_waiting(read_pending_case(self.reader, query["namespace"]))
        return waiting if isinstance(waiting, Problem) else waiting.model_dump(mode="json", by_alias=True)

    def get_namespace(self) -> str:
        return self.namespace()

    def save(self, file: Path) -> int:
        """Save the case of the latest answer with replaced names; returns the number of objects. Raises ``OSError``."""
        live, _ = next(iter(self._diagnosed.values()))
        return save_case(live, file)

    def _diagnose(self, namespace: str, name: str) -> "tuple[LiveCase, PodAnswer] | Problem":
        """Read a case about the pod as it is now, and diagnose it."""
        live = self._read_case(namespace, name)
        if isinstance(live, Problem):
            return live
        from ingest.cases.answers import explain_pod

        answer = explain_pod(live.case, f"{namespace}/{name}")
        differing = [difference.node for difference in answer.diagnosis.differences]
        if text := describe_log(live.log, len(answer.diagnosis.nodes or ()), differing):
            self.show_note(text)
        return live, answer

    def _read_case(self, namespace: str, name: str) -> LiveCase | Problem:
        live = read_pod_case(self.reader, namespace, name)
        if isinstance(live, Problem):
            return live
        is_absent = live.pod is None and f"{namespace}/{name}" not in live.case.pods.pods
        return _explain_absence(live, namespace, name) if is_absent else live

    def _suggest(self, namespace: str, name: str) -> Json | Problem:
        """Suggest what would let the pod in."""
        from ingest.cases.answers import suggest_for

        if answer := self._answers.get((namespace, name)):
            suggestions = answer.suggestions
        elif remembered := self._diagnosed.get((namespace, name)):
            # A pod of a workload, which is diagnosed without what would help.
            live, diagnosis = remembered
            suggestions = suggest_for(live.case, diagnosis)
        else:
            diagnosed = self._diagnose(namespace, name)
            if isinstance(diagnosed, Problem):
                return diagnosed
            suggestions = diagnosed[1].suggestions
        if suggestions is None:
            return NotFound("no change of pod or nodes is known after which the pod fits", "")
        return suggestions.model_dump(mode="json")


def _explain_absence(live: LiveCase, namespace: str, name: str) -> Problem:
    """Explain that the pod does not exist, with the most similar names, also in other namespaces."""
    similar = list_similar_names(live.case.objects.select(kinds.POD), namespace, name)
    hint = f"Similar names: {', '.join(similar)}" if similar else f"`kubectl get pods -n {namespace}` lists its pods"
    return NotFound(f"the pod {namespace}/{name} does not exist", f"{hint}.")
