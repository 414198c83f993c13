"""The tools. Each asks the API as its caller may, and answers with a short text and the ids of its evidence."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Final

from mcp.server.mcpserver import Context
from mcp.types import CallToolResult
from pydantic import Field

from assistant.answers import Json, ToolAnswer, items, refusal, result, sentences
from assistant.callers import Callers
from client.problems import Problem, WrongRequest
from client.requests import of_node, of_pod

Answer = Annotated[CallToolResult, ToolAnswer]
Pod = Annotated[str, Field(description="The pod's name.", max_length=253)]
Namespace = Annotated[str, Field(description="Its namespace; empty: the default one.", max_length=63)]
AttemptId = Annotated[str, Field(description="Of one attempt of the pod; empty: as it is now.")]
Since = Annotated[str, Field(description="15m, 2h or 7d ago, or a time in RFC 3339; empty: the API's default.")]
Asked = Context[Any, Any]

NO_DEVICE: Final = "The pod asks for no device: every node that kube-scheduler takes would do."
_WHO: Final = {"you": "the pod's owner", "administrator": "an administrator", "wait": "waiting"}


@dataclass(frozen=True, slots=True)
class ApiTools:
    """The tools that ask the API."""

    callers: Callers

    def why_pod(self, context: Asked, pod: Pod, namespace: Namespace = "", attempt: AttemptId = "") -> Answer:
        """Why a pod waits, or why it is where it is: the main obstacle with its numbers, its cause and its remedy."""
        return self._about_pod(context, namespace, pod, "diagnosis", {"attempt": attempt}, _diagnosis)

    def suggest(self, context: Asked, pod: Pod, namespace: Namespace = "", attempt: AttemptId = "") -> Answer:
        """The smallest changes after which the pod fits, the cheapest first; the scheduler's fit has checked each."""
        return self._about_pod(context, namespace, pod, "suggestions", {"attempt": attempt}, _suggestions)

    def pending(self, context: Asked, namespace: Namespace = "", reason: str = "") -> Answer:
        """The pods that wait, by what keeps them out. An empty namespace means all. ``reason`` is a reason code."""
        query = {"namespace": namespace, "reason": reason, "group_by": "obstacle"}
        return self._listed(context, "/pending", query, _pending)

    def node_at(
        self, context: Asked, node: str, at: Annotated[str, Field(description="2h, or RFC 3339; empty: now.")] = ""
    ) -> Answer:
        """The devices of a node at a time: totals, what is held of each, and which pods hold it."""
        return self._listed(context, of_node(node, "occupancy"), {"at": at}, _node)

    def search(
        self,
        context: Asked,
        words: Annotated[str, Field(description="All of them occur in the messages or reasons.")] = "",
        namespace: Namespace = "",
        node: str = "",
        reason: str = "",
        status: Annotated[str, Field(description="succeeded, failed or pending.")] = "",
        since: Since = "",
    ) -> Answer:
        """Attempts of all pods that fit every filter, the latest first. An empty namespace means all of them."""
        query = {"q": words, "namespace": namespace, "node": node, "reason": reason, "status": status, "since": since}
        return self._listed(context, "/schedulerlogs", query, _attempts)

    def trends(
        self,
        context: Asked,
        by: Annotated[str, Field(description="reason, namespace, pool, model, result, workload or queue.")] = "reason",
        namespace: Namespace = "",
        since: Since = "24h",
    ) -> Answer:
        """Attempts over time, counted apart: how many, how many before, and when that changed. Empty namespace: all."""
        return self._listed(context, "/trends", {"by": by, "namespace": namespace, "since": since}, _trends)

    def report(self, context: Asked, namespace: Namespace = "", since: Since = "7d") -> Answer:
        """The failures of a range: reasons with remedies, GPU-hours by cause. An empty namespace means all of them."""
        return self._listed(context, "/reports/failures", {"namespace": namespace, "since": since}, _report)

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
        text = sentences(_diagnosis(found["diagnosis"]), _suggestions(found["suggestions"]))
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
    from ingest.log_answers import absence, answers
    from ingest.log_pods import LogPods
    from ingest.read_log import read_log_text

    pods = LogPods()
    try:
        read_log_text(text, pods)
    except MistakeError as error:
        return refusal(WrongRequest(str(error)))
    wanted = pods.named(pod) if pod else list(pods.pods.values())
    if not wanted:
        return refusal(WrongRequest(absence("the log", pod, pods)))
    found = [each.diagnosis.model_dump(mode="json") for each in answers(wanted, pods.last_started_at)]
    if len(found) == 1:
        return result(_diagnosis(found[0]), found[0])
    lines = (f"{each['namespace']}/{each['name']}: {each['state']}. {each['sentence']['en']}" for each in found)
    return result(f"{len(found)} pods:\n{items(lines)}", {"items": [_without_steps(each) for each in found]})


def _shown(answer: Json | Problem, text: Callable[[Json], str]) -> CallToolResult:
    return refusal(answer) if isinstance(answer, Problem) else result(text(answer), _without_steps(answer))


def _without_steps(answer: Json) -> Json:
    """A diagnosis without the questions that led to it: they are long, and their evidence is that of the obstacle."""
    return {name: value for name, value in answer.items() if name != "steps"}


def _diagnosis(found: Json) -> str:
    obstacle = found["obstacle"]
    if not obstacle:
        return str(found["sentence"]["en"])
    who = " or ".join(_WHO[each] for each in obstacle["who_acts"])
    others = items(each["sentence"]["en"] for each in found["other_obstacles"])
    return sentences(
        f"{found['sentence']['en']} (state: {found['state']}, reason: {obstacle['code']})",
        f"Likely cause: {obstacle['likely_cause']['en']}",
        f"Remedy, by {who}: {obstacle['remedy']['en']}",
        f"Also in the way:\n{others}" if others else "",
    )


def _suggestions(found: Json) -> str:
    if found["state"] != "refused":
        return {"placed": "The pod has a node.", "fits": "The pod fits the cluster as it is."}[found["state"]]
    changes = [f"{each['sentence']['en']} Then it fits on {each['node']}." for each in found["items"]]
    unknown = items(each["en"] for each in found["not_known"])
    return sentences(
        f"It would fit after any one of these:\n{items(changes)}" if changes else "No change is known that would help.",
        f"Kept from every node by {', '.join(found['excluded_by'])} together." if found["excluded_by"] else "",
        f"Not known:\n{unknown}" if unknown else "",
    )


def _pending(found: Json) -> str:
    rows = (
        f"{each['pods']} pods of {each['workloads']} workloads since {each['first_judged_at']}, "
        f"{each['gpu_hours']:,.1f} GPU-hours: {each['obstacle']['sentence']['en'] if each['obstacle'] else 'not known'}"
        for each in found["items"]
    )
    return sentences(f"{found['pods']} pods wait, for {found['total']} obstacles.", items(rows, found["total"]))


def _trends(found: Json) -> str:
    head = (
        f"{found['count']} by {found['by']} from {found['since']} to {found['until']}; levels are means of "
        f"{found['interval_seconds']} s."
    )
    return sentences(head, items(map(_series, found["items"])))


def _report(found: Json) -> str:
    reasons = (f"{each['code']}: {each['attempts']} attempts. {each['remedy']}" for each in found["reasons"])
    causes = (
        f"{each['cause'] or 'not known'}: {each['pods']} pods, {each['gpu_hours']:,.1f} GPU-hours"
        for each in found["waiting"]["causes"]
    )
    waiting = f"{found['waiting']['pods']} pods wait now, {found['waiting']['gpu_hours']:,.1f} GPU-hours:"
    return sentences(
        f"{found['failed']} of {found['attempts']} attempts failed from {found['since']} to {found['until']}.",
        items(reasons),
        f"{waiting}\n{items(causes)}" if found["waiting"]["pods"] else "",
    )


def _series(series: Json) -> str:
    before = series["total_before"]
    changes = (f", from {each['before']:.1f} to {each['after']:.1f} at {each['at']}" for each in series["changes"][-3:])
    return f"{series['key']}: {series['total']}, before {'not known' if before is None else before}{''.join(changes)}"


def _node(found: Json) -> str:
    rows = (
        f"{each['uuid']} {each['model']}: memory {_of(each, 'memory', 'mib')} MiB, "
        f"cores {_of(each, 'cores', 'percent')} %, {each['slots_held']} slots, held by {_holders(each) or 'no pod'}"
        for each in found["devices"]
    )
    return sentences(f"{found['node']} at {found['at']}: {len(found['devices'])} devices.", items(rows))


def _of(device: Json, what: str, unit: str) -> str:
    held, total = device[f"{what}_held_{unit}"], device[f"{what}_total_{unit}"]
    return f"{'?' if held is None else held}/{'?' if total is None else total}"


def _holders(device: Json) -> str:
    names = (
        f"{each['namespace']}/{each['name']}" if each["name"] else "another namespace" for each in device["held_by"]
    )
    return ", ".join(dict.fromkeys(names))


def _attempts(found: Json) -> str:
    rows = (
        f"{each['started_at']} {each['namespace']}/{each['name']}: {each['status']}"
        + (f" on {each['chosen']}" if each["chosen"] else "")
        + f". {each['summary']}"
        for each in found["items"]
    )
    return sentences(f"{found['total']} attempts.", items(rows, found["total"]))
