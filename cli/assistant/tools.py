"""The tools. Each asks the API as its caller may, and answers with a short text and the ids of its evidence."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Final

from mcp.server.mcpserver import Context
from mcp.types import CallToolResult
from pydantic import Field

from cli.assistant import texts
from cli.assistant.answers import ToolAnswer, items, refusal, result, sentences
from cli.assistant.callers import Callers
from cli.client.problems import Problem, WrongRequest
from cli.client.requests import of_node, of_pod
from cli.terminal.words import asked_status
from schemas.json_types import Json

Answer = Annotated[CallToolResult, ToolAnswer]
Pod = Annotated[str, Field(description="The pod's name.", max_length=253)]
Namespace = Annotated[str, Field(description="Its namespace; empty: the default one.", max_length=63)]
AttemptId = Annotated[str, Field(description="Of one attempt of the pod; empty: as it is now.")]
Since = Annotated[str, Field(description="15m, 2h or 7d ago, or a time in RFC 3339; empty: the API's default.")]
Asked = Context[Any, Any]

NO_DEVICE: Final = "The pod asks for no device: every node that kube-scheduler takes would do."


@dataclass(frozen=True, slots=True)
class ApiTools:
    """The tools that ask the API."""

    callers: Callers

    def why_pod(self, context: Asked, pod: Pod, namespace: Namespace = "", attempt: AttemptId = "") -> Answer:
        """Why a pod waits, or why it is where it is: the main obstacle with its numbers, its cause and its remedy."""
        return self._about_pod(context, namespace, pod, "diagnosis", {"attempt": attempt}, texts.diagnosis)

    def suggest(self, context: Asked, pod: Pod, namespace: Namespace = "", attempt: AttemptId = "") -> Answer:
        """The smallest changes after which the pod fits, the cheapest first; the scheduler's fit has checked each."""
        return self._about_pod(context, namespace, pod, "suggestions", {"attempt": attempt}, texts.suggestions)

    def suggest_for_many(self, context: Asked, namespace: Namespace = "") -> Answer:
        """Which one change would let most of the waiting pods in, by the scheduler's fit. Empty namespace: all."""
        return self._listed(context, "/suggestions", {"namespace": namespace}, texts.changes_for_many)

    def pending(self, context: Asked, namespace: Namespace = "", reason: str = "") -> Answer:
        """The pods that wait, by what keeps them out. An empty namespace means all. ``reason`` is a reason code."""
        query = {"namespace": namespace, "reason": reason, "group_by": "obstacle"}
        return self._listed(context, "/pending", query, texts.pending)

    def node_at(
        self, context: Asked, node: str, at: Annotated[str, Field(description="2h, or RFC 3339; empty: now.")] = ""
    ) -> Answer:
        """The devices of a node at a time: totals, what is held of each, and which pods hold it."""
        return self._listed(context, of_node(node, "occupancy"), {"at": at}, texts.node)

    def search(
        self,
        context: Asked,
        words: Annotated[str, Field(description="All of them occur in the messages or reasons.")] = "",
        namespace: Namespace = "",
        node: str = "",
        reason: str = "",
        status: Annotated[str, Field(description="placed, refused or undecided.")] = "",
        since: Since = "",
    ) -> Answer:
        """Attempts of all pods that fit every filter, the latest first. An empty namespace means all of them."""
        query = {"q": words, "namespace": namespace, "node": node, "reason": reason, "since": since}
        query["status"] = asked_status(status)
        return self._listed(context, "/schedulerlogs", query, texts.attempts)

    def trends(
        self,
        context: Asked,
        by: Annotated[str, Field(description="reason, namespace, pool, model, result, workload or queue.")] = "reason",
        namespace: Namespace = "",
        since: Since = "24h",
    ) -> Answer:
        """Attempts over time, counted apart: how many, how many before, and when that changed. Empty namespace: all."""
        return self._listed(context, "/trends", {"by": by, "namespace": namespace, "since": since}, texts.trends)

    def report(self, context: Asked, namespace: Namespace = "", since: Since = "7d") -> Answer:
        """The failures of a range: reasons with remedies, GPU-hours by cause. An empty namespace means all of them."""
        return self._listed(context, "/reports/failures", {"namespace": namespace, "since": since}, texts.report)

    def simulate(
        self,
        context: Asked,
        pod: Annotated[str, Field(description="One object of kind Pod, in YAML or JSON.", max_length=64_000)],
    ) -> Answer:
        """Where a pod would go in the cluster as it is, or why it would wait and what would help. Nothing is made."""
        transport = self.callers(context)
        if isinstance(transport, Problem):
            return refusal(transport)
        found = transport.post("/simulate", pod.encode())
        if isinstance(found, Problem):
            return refusal(found)
        if not found["diagnosis"]:
            return result(NO_DEVICE, {})
        if found["node"]:
            fitting = found["schedulerlog"]["detail"]["fit_nodes"]
            text = f"It would go to node {found['node']}, one of {fitting:,} where it fits."
            return result(text, {"node": found["node"], "fit_nodes": fitting}, has_evidence=False)
        # The diagnosis has the constraints that exclude every node, so that the text names them once.
        changes = found["suggestions"] | {"excluded_by": []}
        text = sentences(texts.diagnosis(found["diagnosis"]), texts.suggestions(changes))
        answer = {"diagnosis": _without_steps(found["diagnosis"]), "suggestions": found["suggestions"]}
        return result(text, answer, has_evidence=False)

    def _about_pod(
        self, context: Asked, namespace: str, pod: str, answer: str, query: dict[str, str], text: Callable[[Json], str]
    ) -> CallToolResult:
        transport = self.callers(context)
        if isinstance(transport, Problem):
            return refusal(transport)
        path = of_pod(namespace or transport.namespace(), pod, answer)
        return _shown(transport.get(path, query), text)

    def _listed(self, context: Asked, path: str, query: dict[str, str], text: Callable[[Json], str]) -> CallToolResult:
        transport = self.callers(context)
        return refusal(transport) if isinstance(transport, Problem) else _shown(transport.get(path, query), text)


def explain_log(
    context: Asked,  # noqa: ARG001 - every tool has it
    text: Annotated[str, Field(description="Lines of HAMi's or KAI's scheduler log.", max_length=3_000_000)],
    pod: Annotated[str, Field(description="NAME or NAMESPACE/NAME; empty: all pods of the log.")] = "",
) -> Answer:
    """Why the pods of a scheduler's log wait, from its lines alone: no API and no cluster is asked."""
    from ingest.errors import MistakeError
    from ingest.log_answers.answers import diagnose_pods, explain_absence
    from ingest.log_answers.log_pods import LogPods
    from ingest.log_answers.read_log import read_log_text

    pods = LogPods()
    try:
        read_log_text(text, pods.add)
    except MistakeError as error:
        return refusal(WrongRequest(str(error)))
    matches = pods.select(pod)
    if not matches:
        return refusal(WrongRequest(explain_absence("the log", pod, pods)))
    answers = diagnose_pods(matches, pods.last_started_at)
    diagnoses = [answer.diagnosis.model_dump(mode="json") for answer in answers]
    if len(diagnoses) == 1:
        return result(texts.diagnosis(diagnoses[0]), diagnoses[0])
    lines = (f"{item['namespace']}/{item['name']}: {item['state']}. {item['sentence']['en']}" for item in diagnoses)
    return result(f"{len(diagnoses)} pods:\n{items(lines)}", {"items": [_without_steps(item) for item in diagnoses]})


def _shown(answer: Json | Problem, text: Callable[[Json], str]) -> CallToolResult:
    return refusal(answer) if isinstance(answer, Problem) else result(text(answer), _without_steps(answer))


def _without_steps(answer: Json) -> Json:
    """A diagnosis without the questions that led to it: they are long, and their evidence is that of the obstacle."""
    return {name: value for name, value in answer.items() if name != "steps"}
