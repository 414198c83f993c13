"""The schedulerlog answer of one attempt: the proposal's JSON, field for field.

An answer about thousands of nodes holds few distinct stories, so the JSON is put together from bytes: what follows a
node's name is written once per distinct story and not once per node.
"""

from bisect import bisect_right
from collections.abc import Collection
from typing import Final, Literal, NamedTuple

import numpy as np
import orjson
from pydantic import BaseModel

from engine.summaries.messages import count_nodes_by_reason, summarize_bind, summarize_filter
from engine.summaries.text import NODE_UNREGISTERED, write_refusal
from schemas.answers.attempts import Detail, NodeScore, PhaseStatus, SchedulerLog
from schemas.codec.records import encode_value, format_rfc3339
from schemas.events import FITS, NOT_REACHED, PICKED, REFUSED, SCHEDULER, UNREGISTERED, AttemptSummarized

NodeStatus = Literal["passed", "failed"]

_NOT_REACHED_PHASE: Final[tuple[PhaseStatus, str]] = ("", "")


class NodePage(NamedTuple):
    """Nodes of an attempt that one page of an answer lists."""

    rows: list[int]
    """Positions in the summary's columns, in the order of the nodes' names."""
    total: int
    """Number of nodes before paging."""
    last: str | None
    """Name after which the next page begins; None on the last page."""


def build_schedulerlog(summary: AttemptSummarized) -> SchedulerLog:
    """Return the full answer as a model."""
    return SchedulerLog.model_validate_json(encode_schedulerlog(summary))


def select_nodes(
    summary: AttemptSummarized,
    *,
    nodes: Collection[str] | None = None,
    status: NodeStatus | None = None,
    after: str | None = None,
    limit: int | None = None,
) -> NodePage:
    """Select the judged nodes of a page, sorted by name.

    ``nodes`` keeps only these names, ``status`` only the nodes that passed or failed. A page begins after the name
    ``after`` and has at most ``limit`` nodes.
    """
    judged_codes = [
        code for code, word in enumerate(summary.verdicts) if word != NOT_REACHED and _is_wanted(word, status)
    ]
    names, verdict = summary.nodes, summary.verdict.tolist()
    codes = frozenset(judged_codes)
    rows = [row for row, code in enumerate(verdict) if code in codes]
    if nodes is not None:
        wanted = frozenset(nodes)
        rows = [row for row in rows if names[row] in wanted]
    # Pages continue after a name, so the order must be the same whichever version of the summary answers.
    rows.sort(key=names.__getitem__)
    # The page is found by name, not by number: the attempt may be written again, with more nodes, between two pages.
    start = 0 if after is None else bisect_right(rows, after, key=names.__getitem__)
    page = rows[start:] if limit is None else rows[start : start + limit]
    # A last page that is exactly full must not promise another.
    has_more = start + len(page) < len(rows)
    return NodePage(page, len(rows), names[page[-1]] if has_more and page else None)


def _is_wanted(verdict: str, status: NodeStatus | None) -> bool:
    return status is None or (verdict in (PICKED, FITS)) == (status == "passed")


def encode_schedulerlog(
    summary: AttemptSummarized, page: NodePage | None = None, additions: dict[str, BaseModel | object] | None = None
) -> bytes:
    """Encode the answer as JSON. ``page`` narrows the nodes; ``additions`` adds fields after those of the proposal."""
    rows = (page or select_nodes(summary)).rows
    filter_status, filter_text = describe_filter(summary)
    bind_status, bind_text = describe_bind(summary)
    nodes = orjson.Fragment(b"[" + b",".join(_encode_nodes(summary, rows)) + b"]")
    answer: dict[str, object] = {
        "status": summary.status,
        "filter": {"status": filter_status, "summary": filter_text, "nodes": nodes},
        "bind": {"status": bind_status, "summary": bind_text},
    }
    return encode_value(answer | (additions or {}))


def describe_filter(summary: AttemptSummarized) -> tuple[PhaseStatus, str]:
    """Derive the filter's status and text. An attempt of which only the bind is reported says nothing about its
    filter."""
    if summary.error:
        return "failed", summarize_filter(summary)
    if summary.ended_at is None and not summary.nodes:
        return _NOT_REACHED_PHASE
    # Without an end, a node that fits proves that the filter passed; refused ones prove nothing, others may follow.
    if summary.ended_at is None and summary.chosen is None:
        return ("passed" if summary.fit_nodes else ""), summarize_filter(summary)
    return ("passed" if summary.chosen is not None else "failed"), summarize_filter(summary)


def describe_bind(summary: AttemptSummarized) -> tuple[PhaseStatus, str]:
    if summary.bind is None:
        return _NOT_REACHED_PHASE
    return ("passed" if summary.bind.bound else "failed"), summarize_bind(summary)


def _encode_nodes(summary: AttemptSummarized, rows: list[int]) -> list[bytes]:
    verdict, score = summary.verdict.tolist(), summary.score.tolist()
    refused_by, refusal = summary.refused_by.tolist(), summary.refusal.tolist()
    fit = frozenset(code for code, word in enumerate(summary.verdicts) if word in (PICKED, FITS))
    passed = b',"containers":' + _encode_passed(summary) + b"}"
    failed: dict[tuple[int, int, int], bytes] = {}
    entries = []
    for row in rows:
        if verdict[row] in fit:
            fields = b',"status":"passed","score":' + _encode_score(score[row]) + passed
        else:
            # Only these three decide the other fields of a refused node: thousands of nodes have few distinct ones.
            key = verdict[row], refused_by[row], refusal[row]
            fields = failed.get(key) or failed.setdefault(key, _encode_failed(summary, *key))
        entries.append(b'{"name":' + orjson.dumps(summary.nodes[row]) + fields)
    return entries


def _encode_score(score: float) -> bytes:
    """Round to two decimals and write as Go writes a float: ``0`` and ``4`` rather than ``0.0`` and ``4.0``."""
    rounded = round(score, 2)
    # orjson writes integers of 64 bits only; a larger number is written as a float.
    return orjson.dumps(int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded)


def _encode_passed(summary: AttemptSummarized) -> bytes:
    return orjson.dumps([{"name": request.container, "status": "passed"} for request in summary.requests])


def _encode_failed(summary: AttemptSummarized, verdict: int, refused_by: int, refusal: int) -> bytes:
    """Encode the fields after the name of a node that refused."""
    names = [request.container for request in summary.requests]
    is_refused = summary.verdicts[verdict] == REFUSED
    if (
        is_refused
        and refused_by < 0
        and all(report.source != SCHEDULER for report in summary.reports)
        and sum(request.count > 0 for request in summary.requests) > 1
    ):
        names = []  # Several request devices, and the log does not say which of them was refused.
    # HAMi's bare reasons (``NodeInsufficientDevice``) name no container; the ones before the first request had passed.
    position = refused_by if refused_by >= 0 else _find_first_request(summary)
    containers: list[dict[str, str]] = [{"name": name, "status": "passed"} for name in names[:position]]
    refused = {"name": names[position] if position < len(names) else "", "status": "failed"}
    if reason := _write_reason(summary, verdict, refusal):
        refused["reason"] = reason
    return b',"status":"failed","score":0,"containers":' + orjson.dumps([*containers, refused]) + b"}"


def _find_first_request(summary: AttemptSummarized) -> int:
    """Return the position of the first container that requests devices.

    A refusal of a node without a container is that container's: containers without a request always pass.
    """
    return next((position for position, request in enumerate(summary.requests) if request.count), 0)


def _write_reason(summary: AttemptSummarized, verdict: int, refusal: int) -> str:
    if refusal >= 0:
        return write_refusal(summary.refusals[refusal])
    word = summary.verdicts[verdict]
    return {UNREGISTERED: NODE_UNREGISTERED, REFUSED: ""}.get(word, word)


def build_detail(summary: AttemptSummarized, nodes: Collection[str] = ()) -> Detail:
    """Build what ``?detail=full`` adds about the attempt, with the score terms of ``nodes``, else of the chosen
    node."""
    return Detail(
        attempt_id=summary.attempt_id,
        scheduler=summary.scheduler,
        pod_uid=summary.pod.uid,
        started_at=format_rfc3339(summary.started_at),
        ended_at=format_rfc3339(summary.ended_at) if summary.ended_at else None,
        complete=summary.complete,
        missing=summary.missing,
        reports=summary.reports,
        requests=summary.requests,
        node_policy=summary.node_policy,
        device_policy=summary.device_policy,
        offered_nodes=summary.offered_nodes,
        fit_nodes=summary.fit_nodes,
        not_reached_nodes=_count_not_reached(summary),
        judged_devices=summary.judged_devices,
        chosen=summary.chosen,
        picked_devices=summary.picked_devices,
        reasons=count_nodes_by_reason(summary),
        nominated=summary.nominated,
        scheduler_message=summary.scheduler_message,
        reconstruction=summary.reconstruction,
        may_duplicate=summary.may_duplicate,
        description=summary.description,
        constraints=summary.constraints,
        settings_digest=summary.settings_digest,
        first_judged_at=format_rfc3339(summary.first_judged_at) if summary.first_judged_at else None,
        bind=summary.bind,
        scores=_list_scores(summary, nodes or [summary.chosen]),
    )


def _list_scores(summary: AttemptSummarized, nodes: Collection[str | None]) -> list[NodeScore]:
    """List the score terms of those ``nodes`` that fit, by name of the node."""
    if not summary.score_terms:
        return []
    wanted = frozenset(nodes)
    verdict = summary.verdict.tolist()
    return [
        NodeScore(
            node=node,
            score=shorten_float(summary.score[row]),
            terms={name: shorten_float(column[row]) for name, column in summary.score_terms.items()},
        )
        for row, node in enumerate(summary.nodes)
        if node in wanted and summary.verdicts[verdict[row]] in (PICKED, FITS)
    ]


def shorten_float(number: np.float32) -> float:
    """Return the shortest number that equals a 32-bit float: 0.65 and not 0.6499999761581421."""
    return float(str(number))


def _count_not_reached(summary: AttemptSummarized) -> int:
    return sum(summary.verdicts[code] == NOT_REACHED for code in summary.verdict.tolist())
