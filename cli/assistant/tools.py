"""The tools. Each asks the API with the caller's rights, and answers with a short text and the ids of its evidence."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from mcp.server.mcpserver import Context
from mcp.types import CallToolResult
from pydantic import Field

from cli.assistant import texts
from cli.assistant.answers import ToolAnswer, join_sentences, to_refusal, to_result, without_steps
from cli.assistant.callers import Callers, get_authorization
from cli.assistant.log_process import LogProcesses
from cli.client.problems import Problem
from cli.client.requests import build_node_path, build_pod_path, build_workload_path
from cli.terminal.pod_answer import fetch_pod_answer
from cli.terminal.values import to_status
from schemas.json_types import Json

Answer = Annotated[CallToolResult, ToolAnswer]
Pod = Annotated[str, Field(description="The pod's name.", max_length=253)]
Namespace = Annotated[str, Field(description="The pod's namespace; empty: the default one.", max_length=63)]
AttemptId = Annotated[str, Field(description="Id of one attempt of the pod; empty: the present state.")]
Manifest = Annotated[
    str, Field(description="A Pod, or a workload with a pod template, in YAML or JSON.", max_length=64_000)
]
Since = Annotated[str, Field(description="15m, 2h or 7d ago, or a time in RFC 3339; empty: the API's default.")]
ToolContext = Context[Any, Any]


@dataclass(frozen=True, slots=True)
class ApiTools:
    """The tools that ask the API."""

    callers: Callers

    def why_pod(self, context: ToolContext, pod: Pod, namespace: Namespace = "", attempt: AttemptId = "") -> Answer:
        """Explain why a pod waits, or why it is where it is: the main obstacle with its numbers, cause and remedy."""
        transport = self.callers(context)
        if isinstance(transport, Problem):
            return to_refusal(transport)
        answer = fetch_pod_answer(transport, namespace or transport.get_namespace(), pod, attempt)
        return _to_tool_result(answer, texts.describe_diagnosis)

    def why_workload(
        self,
        context: ToolContext,
        kind: Annotated[str, Field(description="job, deployment, vcjob, workload, podgroup, …", max_length=63)],
        name: Annotated[str, Field(description="The workload's name.", max_length=253)],
        namespace: Namespace = "",
    ) -> Answer:
        """Explain why the pods of a Job or another workload wait, by what keeps them; also where none exists."""
        transport = self.callers(context)
        if isinstance(transport, Problem):
            return to_refusal(transport)
        path = build_workload_path(namespace or transport.get_namespace(), kind, name)
        return _to_tool_result(transport.get(path), texts.describe_workload)

    def suggest(self, context: ToolContext, pod: Pod, namespace: Namespace = "", attempt: AttemptId = "") -> Answer:
        """Suggest the smallest changes that make the pod fit, cheapest first; the scheduler's fit has checked each."""
        return self._answer_about_pod(
            context, namespace, pod, "suggestions", {"attempt": attempt}, texts.describe_suggestions
        )

    def suggest_for_many(self, context: ToolContext, namespace: Namespace = "") -> Answer:
        """Suggest the one change that lets most waiting pods in, by the scheduler's fit. Empty namespace: all."""
        return self._answer_list(context, "/suggestions", {"namespace": namespace}, texts.describe_changes_for_many)

    def pending(self, context: ToolContext, namespace: Namespace = "", reason: str = "") -> Answer:
        """List the pods that wait, by obstacle. An empty namespace means all. ``reason`` is a reason code."""
        query = {"namespace": namespace, "reason": reason, "group_by": "obstacle"}
        return self._answer_list(context, "/pending", query, texts.describe_pending)

    def node_at(
        self,
        context: ToolContext,
        node: str,
        at: Annotated[str, Field(description="2h, or RFC 3339; empty: now.")] = "",
    ) -> Answer:
        """List the devices of a node at a time: totals, what pods hold of each, and which pods."""
        return self._answer_list(context, build_node_path(node, "occupancy"), {"at": at}, texts.describe_node)

    def plan_drain(self, context: ToolContext, node: str) -> Answer:
        """Plan the drain of a node: where each pod would go, which would wait, the commands. Nothing is carried out."""
        return self._answer_list(context, build_node_path(node, "drain"), {}, texts.describe_drain)

    def plan_purchase(self, context: ToolContext) -> Answer:
        """Plan nodes to add so that waiting pods start: how many of which kind, and which pods no node would help."""
        return self._answer_list(context, "/purchase", {}, texts.describe_purchase)

    def plan_moves(
        self,
        context: ToolContext,
        pod: Manifest,
    ) -> Answer:
        """Plan the fewest pods to move to other nodes so that a pod starts. Nothing is carried out."""
        transport = self.callers(context)
        if isinstance(transport, Problem):
            return to_refusal(transport)
        return _to_tool_result(transport.post("/defragmentation", pod.encode()), texts.describe_moves)

    def search(
        self,
        context: ToolContext,
        words: Annotated[str, Field(description="Words that all occur in the messages or reasons.")] = "",
        namespace: Namespace = "",
        node: str = "",
        reason: str = "",
        status: Annotated[str, Field(description="placed, refused or undecided.")] = "",
        since: Since = "",
    ) -> Answer:
        """Search the attempts of all pods by filters, the latest first. An empty namespace means all of them."""
        query = {"q": words, "namespace": namespace, "node": node, "reason": reason, "since": since}
        query["status"] = to_status(status)
        return self._answer_list(context, "/schedulerlogs", query, texts.describe_attempts)

    def trends(
        self,
        context: ToolContext,
        by: Annotated[
            str, Field(description="obstacle, reason, namespace, pool, model, result, workload or queue.")
        ] = "obstacle",
        namespace: Namespace = "",
        since: Since = "24h",
    ) -> Answer:
        """Count attempts over time: how many, how many before, and when that changed. An empty namespace means all."""
        return self._answer_list(
            context, "/trends", {"by": by, "namespace": namespace, "since": since}, texts.describe_trends
        )

    def report(self, context: ToolContext, namespace: Namespace = "", since: Since = "7d") -> Answer:
        """Report the failures of a range: reasons with remedies, GPU-hours by cause. An empty namespace means all."""
        return self._answer_list(
            context, "/reports/failures", {"namespace": namespace, "since": since}, texts.describe_report
        )

    def simulate(
        self,
        context: ToolContext,
        pod: Manifest,
    ) -> Answer:
        """Simulate where a pod would go in the present cluster, or why it would wait and what would help."""
        transport = self.callers(context)
        if isinstance(transport, Problem):
            return to_refusal(transport)
        simulation = transport.post("/simulate", pod.encode())
        if isinstance(simulation, Problem):
            return to_refusal(simulation)
        notes = [note["text"]["en"] for note in simulation["notes"]]
        if simulation["state"] != "refused":
            filtered = [group["sentence"]["en"] for group in simulation["filtered"]]
            text = join_sentences(simulation["sentence"]["en"], *filtered, *notes)
            answer = {name: simulation[name] for name in ("node", "state", "fit_nodes", "devices")}
            return to_result(text, answer, has_evidence=False)
        # The diagnosis has the constraints that exclude every node, so that the text names them once.
        changes = simulation["suggestions"] | {"excluded_by": []}
        diagnosis = texts.describe_diagnosis(simulation["diagnosis"])
        text = join_sentences(diagnosis, texts.describe_suggestions(changes), *notes)
        answer = {"diagnosis": without_steps(simulation["diagnosis"]), "suggestions": simulation["suggestions"]}
        return to_result(text, answer, has_evidence=False)

    def _answer_about_pod(
        self,
        context: ToolContext,
        namespace: str,
        pod: str,
        answer: str,
        query: dict[str, str],
        text: Callable[[Json], str],
    ) -> CallToolResult:
        transport = self.callers(context)
        if isinstance(transport, Problem):
            return to_refusal(transport)
        path = build_pod_path(namespace or transport.get_namespace(), pod, answer)
        return _to_tool_result(transport.get(path, query), text)

    def _answer_list(
        self, context: ToolContext, path: str, query: dict[str, str], text: Callable[[Json], str]
    ) -> CallToolResult:
        transport = self.callers(context)
        return (
            to_refusal(transport)
            if isinstance(transport, Problem)
            else _to_tool_result(transport.get(path, query), text)
        )


def _to_tool_result(answer: Json | Problem, text: Callable[[Json], str]) -> CallToolResult:
    return to_refusal(answer) if isinstance(answer, Problem) else to_result(text(answer), without_steps(answer))


@dataclass(frozen=True, slots=True)
class LogTool:
    """The tool that reads a log which its caller sends."""

    callers: Callers
    is_shared: bool
    """True if everybody who reaches the server may call it: then the API has to know the caller."""
    processes: LogProcesses

    async def explain_log(
        self,
        context: ToolContext,
        text: Annotated[str, Field(description="Lines of HAMi's or KAI's scheduler log.", max_length=3_000_000)],
        pod: Annotated[str, Field(description="NAME or NAMESPACE/NAME; empty: all pods of the log.")] = "",
    ) -> Answer:
        """Explain why the pods in a scheduler's log wait, from its lines only: reads nothing of the cluster."""
        transport = self.callers(context)
        if isinstance(transport, Problem):
            return to_refusal(transport)
        if self.is_shared:
            # The list of clusters is for every caller whom the API knows.
            clusters = await asyncio.to_thread(transport.get, "/clusters")
            if isinstance(clusters, Problem):
                return to_refusal(clusters)
        return await self.processes.explain(text, pod, get_authorization(context))
