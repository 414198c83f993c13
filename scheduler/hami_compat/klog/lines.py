"""Lines of HAMi's log about a decision, by klog level. Pure.

Spelling, keys and source positions are HAMi v2.10's. Unlike there, a line about a device names the node too, so that
the lines of pods that are judged at the same time can be distinguished, and the lines of one attempt come together.

    0    the requests of the pod, the chosen node and its devices, and the events about it
    2    the score of every node that fits
    4    every node: `NodeUnfitPod` with its reasons, `NodeFitPod` with its score, `node unregistered`
    5    every device that was tried, the containers' names, and the words `Filtering node` and `filtered out`
"""

import itertools
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final

from engine.fit.events.attempt import AttemptRef
from engine.fit.judge.checks import verdict_codes
from engine.fit.judge.decision import Allocation, Decision, Failed
from engine.fit.judge.request.pod_request import VendorRequest
from engine.hami.node_lock import is_contention
from engine.hami.reason_codes import ReasonCode
from engine.summaries.messages import list_messages
from scheduler.hami_compat.klog.device_lines import (
    LogLine,
    format_float,
    has_several_requests,
    list_device_lines,
    quote,
    to_container_key,
)
from schemas import events
from schemas.events import SCHEDULER, AttemptSummarized, BindOutcome, Report

SCORES: Final = 2
NODES: Final = 4
DEVICES: Final = 5

_WITHOUT_EVENT: Final = (
    ReasonCode.NODE_INSUFFICIENT_DEVICE.value,
    ReasonCode.NODE_UNREGISTERED.value,
    ReasonCode.NODE_OF_ANOTHER_SCHEDULER.value,
)
"""Reasons that count no devices: HAMi has no event of their own for them."""


def render_decision(
    attempt: AttemptRef, decision: Decision, ended_at: datetime, error: str, level: int
) -> Iterator[LogLine]:
    """Render all lines about one filter call, up to `level`. error: why the decision could not be written to the
    pod."""
    pod = _to_pod_key(attempt)
    yield from _render_requests(attempt, decision.containers, level)
    if level >= DEVICES:
        yield from list_device_lines(pod, decision)
    if level >= SCORES:
        yield from _render_scores(decision)
    if level >= NODES:
        yield from _render_nodes(pod, decision)
        if decision.chosen is None:
            # Without the namespace, as HAMi writes this line.
            name = quote(attempt.pod.name)
            yield LogLine("scheduler.go:1110", f'"No available nodes meet the required scores" pod={name}')
    if decision.allocation and not error:
        yield _render_chosen(attempt, decision, decision.allocation)
    yield from _render_events(attempt, _build_summary(attempt, decision, ended_at, error))


def render_failure(attempt: AttemptRef, answer: Failed, ended_at: datetime, level: int) -> Iterator[LogLine]:
    """Render the lines about a filter call that ended before any node was judged."""
    yield from _render_requests(attempt, answer.containers, level)
    yield from _render_events(attempt, _build_partial_summary(attempt, ended_at=ended_at, error=answer.error))


def render_bind(attempt: AttemptRef, node: str, error: str, ended_at: datetime) -> Iterator[LogLine]:
    """Render the lines about a bind call. error: empty where the pod was bound."""
    # HAMi logs a lock that is held as an error of its own, before the event about the bind.
    if is_contention(error):
        fields = f"err={quote(error)} node={quote(node)} {_to_pod_key(attempt)}"
        yield LogLine("scheduler.go:1048", f'"Failed to lock node" {fields}', "E")
    if not error:
        pod = attempt.pod
        fields = f"pod={quote(pod.name)} namespace={quote(pod.namespace)} node={quote(node)}"
        yield LogLine("scheduler.go:1063", f'"Successfully bound pod to node" {fields}')
    outcome = BindOutcome(node=node, bound=not error, error=error, ended_at=ended_at)
    yield from _render_events(attempt, _build_partial_summary(attempt, bind=outcome))


def _to_pod_key(attempt: AttemptRef) -> str:
    return f"pod={quote(str(attempt.pod))}"


def _render_requests(attempt: AttemptRef, containers: Sequence[VendorRequest], level: int) -> Iterator[LogLine]:
    pod = attempt.pod
    fields = f"pod={quote(pod.name)} uuid={quote(pod.uid)} namespace={quote(pod.namespace)}"
    yield LogLine("scheduler.go:1068", f'"Starting schedule filter process" {fields}')
    yield from _render_containers(_to_pod_key(attempt), containers, level)
    for vendor_request in containers:
        if vendor_request.asks:
            fields = f"{_to_pod_key(attempt)} card request={_request(vendor_request)}"
            yield LogLine("device.go:719", f'"Allocating device for container request" {fields}')


def _render_containers(pod: str, containers: Sequence[VendorRequest], level: int) -> Iterator[LogLine]:
    """Render the requests of the containers in one line, and from level 5 on the containers' names."""
    own_requests = [vendor_request for vendor_request in containers if not vendor_request.is_further]
    init = sum(vendor_request.is_init for vendor_request in own_requests)
    if level >= NODES:
        counts = (
            f"initContainerCount={init} containerCount={len(own_requests) - init} totalContainers={len(own_requests)}"
        )
        yield LogLine("devices.go:643", f'"Processing resource requirements" {pod} {counts}')
    if level >= DEVICES:
        for index, vendor_request in enumerate(own_requests):
            what = "init container" if vendor_request.is_init else "container"
            # Counted from 0 again after the init containers.
            number = index if vendor_request.is_init else index - init
            position = f"containerIndex={number} containerName={quote(vendor_request.name)}"
            yield LogLine("devices.go:673", f'"Processing {what} resources" {pod} {position}')
    if level >= NODES:
        requests = ",".join(_group_by_vendor(containers))
        yield LogLine("devices.go:688", f'"Resource requirements collected" {pod} requests=[{requests}]')


def _group_by_vendor(containers: Sequence[VendorRequest]) -> Iterator[str]:
    """Group the requests of each container by vendor, as an object."""
    for start, first in enumerate(containers):
        if not first.is_further:
            more = itertools.takewhile(lambda other: other.is_further, containers[start + 1 :])
            requests = [f"{quote(request.vendor)}:{_request(request)}" for request in (first, *more) if request.asks]
            yield f"{{{','.join(requests)}}}"


def _request(vendor_request: VendorRequest) -> str:
    return (
        f'{{"Nums":{vendor_request.count},"Type":{quote(vendor_request.vendor)},"Memreq":{vendor_request.memory_mib},'
        f'"MemPercentagereq":{vendor_request.memory_percentage},"Coresreq":{vendor_request.cores}}}'
    )


def _render_chosen(attempt: AttemptRef, decision: Decision, allocation: Allocation) -> LogLine:
    """Render the chosen node with the devices of each container."""
    lists: dict[str, list[str]] = {
        vendor_request.vendor: [] for vendor_request in decision.containers if vendor_request.asks
    }
    for vendor_request, grants in zip(decision.containers, allocation.containers, strict=True):
        for vendor, entries in lists.items():
            if vendor_request.is_further and vendor != vendor_request.vendor:
                continue
            taken = grants if vendor == vendor_request.vendor else ()
            devices = ",".join(
                f'{{"UUID":{quote(grant.uuid)},"Type":{quote(vendor)},"Usedmem":{grant.memory_mib},'
                f'"Usedcores":{grant.cores}}}'
                for grant in taken
            )
            entries.append(f"[{devices}]")
    by_vendor = ",".join(f"{quote(vendor)}:[{','.join(entries)}]" for vendor, entries in lists.items())
    pod = f"podNamespace={quote(attempt.pod.namespace)} podName={quote(attempt.pod.name)}"
    fields = f"{pod} nodeID={quote(allocation.node)} devices={{{by_vendor}}}"
    return LogLine("scheduler.go:1119", f'"Scheduling pod to node" {fields}')


def _render_scores(decision: Decision) -> Iterator[LogLine]:
    for name, score in decision.list_fitting():
        yield LogLine("node_policy.go:129", f"node {quote(name)[1:-1]} computer default score is {score:f}")


def _render_nodes(pod: str, decision: Decision) -> Iterator[LogLine]:
    reasons = [quote(text) for text in decision.refusal_texts]
    is_ambiguous = has_several_requests(decision)
    unknown = (decision.node_verdict == verdict_codes.NODE_UNKNOWN).tolist()
    for index, refusal in enumerate(decision.refusal.tolist()):
        name = decision.node_names[index]
        node = f"{pod} node={quote(name)}"
        if unknown[index]:
            cause = decision.node_causes.get(name, f"node {name} not found")
            yield LogLine("scheduler.go:850", f'"{ReasonCode.NODE_UNREGISTERED}" {node} error={quote(cause)}')
        elif refusal >= 0:
            container = to_container_key(decision, int(decision.refused_by[index])) if is_ambiguous else ""
            yield LogLine("score.go:275", f'"{ReasonCode.NODE_UNFIT_POD}" {node} reason={reasons[refusal]}{container}')
        else:
            yield LogLine(
                "score.go:343", f'"{ReasonCode.NODE_FIT_POD}" {node} score={format_float(decision.score[index])}'
            )


def _render_events(attempt: AttemptRef, summary: AttemptSummarized) -> Iterator[LogLine]:
    pod = quote(str(attempt.pod))
    for message in list_messages(summary):
        if message.code in _WITHOUT_EVENT:
            continue
        fields = (
            f'object={pod} fieldPath="" kind="Pod" apiVersion="v1" type="{message.severity}" reason="{message.reason}"'
        )
        yield LogLine("event.go:389", f'"Event occurred" {fields} message={quote(message.message)}')


def _build_summary(attempt: AttemptRef, decision: Decision, ended_at: datetime, error: str) -> AttemptSummarized:
    return _build_partial_summary(
        attempt,
        ended_at=ended_at,
        error=error,
        chosen=decision.chosen,
        node_policy=decision.node_policy,
        offered_nodes=len(decision.node_names),
        verdicts=list(verdict_codes.NODE_VERDICTS),
        refusals=[
            events.Refusal.model_construct(counts=dict(refusal.counts), devices=refusal.devices, bare=refusal.bare)
            for refusal in decision.refusals
        ],
        nodes=decision.node_names,
        verdict=decision.node_verdict,
        score=decision.score,
        refused_by=decision.refused_by,
        refusal=decision.refusal,
    )


def _build_partial_summary(attempt: AttemptRef, **fields: Any) -> AttemptSummarized:
    """Build a summary with the fields that messages are made from; it is never written."""
    report = Report.model_construct(source=SCHEDULER, attempt_id=attempt.id, started_at=attempt.started_at)
    return AttemptSummarized.model_construct(**attempt.common_fields, reports=[report], **fields)
