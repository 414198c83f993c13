"""Handlers of scores, nodes by refusal, and the differences of two nodes or two attempts."""

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from api.answers.attempt_lookup import AttemptLookup
from api.handlers.attempt_rights import find_readable_attempt, find_readable_attempt_or_latest
from api.http.cluster import Cluster
from api.http.errors import NotFoundError, to_json_response
from api.http.param_types import AttemptInPath, NamespaceInPath, PodInPath
from api.http.query_params import AttemptComparisonQuery, AttemptQuery, NodeComparisonQuery, refuse_repeated
from api.index.attempts.attempt_queries import PodName
from engine.summaries.comparison import (
    build_scores,
    list_changed_fields,
    list_changed_nodes,
    map_judged_nodes,
    subtract_scores,
)
from page.views.node_groups import NodeGroup
from page.views.summarized_nodes import group_summarized_nodes
from schemas.answers.comparisons import (
    AttemptComparison,
    NodeComparison,
    NodesAlike,
    PodNodeGroups,
    ReasonRange,
)
from schemas.codec.records import format_rfc3339
from schemas.events import AttemptSummarized


@dataclass(frozen=True, slots=True)
class ComparisonHandlers:
    attempts: AttemptLookup

    async def list_scores(
        self,
        request: Request,
        cluster: Cluster,
        namespace: NamespaceInPath,
        name: PodInPath,
        query: AttemptQuery,
    ) -> Response:
        """List every node that fitted in the pod's latest attempt, or in `attempt`, with the terms of its score.

        `runner_up` is the best node that the pod did not get, with the difference of its score.
        """
        refuse_repeated(request)
        summary = await self._read_summary(request, cluster, namespace, name, query)
        return to_json_response(200, build_scores(summary, cluster.link_attempt(summary.attempt_id)))

    async def group_nodes(
        self,
        request: Request,
        cluster: Cluster,
        namespace: NamespaceInPath,
        name: PodInPath,
        query: AttemptQuery,
    ) -> Response:
        """Group every node of the pod's latest attempt, or of `attempt`, by identical refusal.

        Page and terminal show this view: thousands of nodes are a handful of groups.
        """
        refuse_repeated(request)
        summary = await self._read_summary(request, cluster, namespace, name, query)
        body = PodNodeGroups(
            attempt_id=summary.attempt_id,
            attempt=cluster.link_attempt(summary.attempt_id),
            chosen=summary.chosen,
            groups=[_group(node) for node in group_summarized_nodes(summary)],
        )
        return to_json_response(200, body)

    async def compare_nodes(
        self,
        request: Request,
        cluster: Cluster,
        namespace: NamespaceInPath,
        name: PodInPath,
        query: NodeComparisonQuery,
    ) -> Response:
        """Compare two nodes as the pod's latest attempt, or `attempt`, judged them: verdict, reason, score."""
        refuse_repeated(request, "nodes")
        summary = await self._read_summary(request, cluster, namespace, name, query)
        judged = map_judged_nodes(summary)
        if missing := [node for node in query.nodes if node not in judged]:
            raise NotFoundError(
                f"attempt {summary.attempt_id} did not judge node {missing[0]}",
                f"GET {cluster.link_schedulerlog(namespace, name)} lists the nodes that it judged.",
            )
        first, second = (judged[node] for node in query.nodes)
        body = NodeComparison(
            attempt_id=summary.attempt_id,
            attempt=cluster.link_attempt(summary.attempt_id),
            chosen=summary.chosen,
            nodes=[first, second],
            difference=subtract_scores(first, second),
        )
        return to_json_response(200, body)

    async def compare_attempts(
        self,
        request: Request,
        cluster: Cluster,
        attempt_id: AttemptInPath,
        query: AttemptComparisonQuery,
    ) -> Response:
        """Compare two attempts, the earlier one first: nodes that they judged differently, and other differences."""
        refuse_repeated(request)
        attempts = [
            await find_readable_attempt(self.attempts, request, cluster, id_) for id_ in (attempt_id, query.with_)
        ]
        before, after = sorted((attempt.read_summary() for attempt in attempts), key=lambda summary: summary.started_at)
        nodes, unchanged = list_changed_nodes(before, after)
        body = AttemptComparison(
            before=cluster.link_attempt(before.attempt_id),
            after=cluster.link_attempt(after.attempt_id),
            before_started_at=format_rfc3339(before.started_at),
            after_started_at=format_rfc3339(after.started_at),
            fields=list_changed_fields(before, after),
            nodes=nodes,
            unchanged_nodes=unchanged,
        )
        return to_json_response(200, body)

    async def _read_summary(
        self, request: Request, cluster: Cluster, namespace: str, name: str, query: AttemptQuery
    ) -> AttemptSummarized:
        pod = PodName(cluster.name, namespace, name)
        return (
            await find_readable_attempt_or_latest(self.attempts, request, cluster, pod, query.attempt)
        ).read_summary()


def _group(group: NodeGroup) -> NodesAlike:
    return NodesAlike(
        verdict=group.verdict,
        is_refused=group.is_refused,
        container=group.container,
        reason=group.reason,
        counts=[ReasonRange(**count._asdict()) for count in group.counts],
        devices=group.refusal.devices if group.refusal else 0,
        nodes=group.nodes,
        scores=group.scores,
    )
