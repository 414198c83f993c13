"""A decision as lines of HAMi's log, by klog level. Pure.

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
from engine.summaries.messages import build_messages
from scheduler.hami_compat.klog.device_lines import container_key, device_lines, has_several_requests
from scheduler.hami_compat.klog.log_line import LogLine, float_text, quoted
from schemas import events
from schemas.events import SCHEDULER, AttemptSummarized, BindOutcome, Report

SCORES: Final = 2
NODES: Final = 4
DEVICES: Final = 5

_WITHOUT_EVENT: Final = (ReasonCode.NODE_INSUFFICIENT_DEVICE.value, ReasonCode.NODE_UNREGISTERED.value)
"""Reasons that count no devices: HAMi has no event of their own for them."""


def decided(attempt: AttemptRef, decision: Decision, ended_at: datetime, error: str, level: int) -> Iterator[LogLine]:
    """All lines about one filter call, up to `level`. error: why the decision could not be written to the pod."""
    pod = _pod(attempt)
    yield from _asked(attempt, decision.containers, level)
    if level >= DEVICES:
        yield from device_lines(pod, decision)
    if level >= SCORES:
        yield from _scores(decision)
    if level >= NODES:
        yield from _nodes(pod, decision)
        if decision.chosen is None:
            # Without the namespace, as HAMi writes this line.
            name = quoted(attempt.pod.name)
            yield LogLine("scheduler.go:1110", f'"No available nodes meet the required scores" pod={name}')
    if decision.allocation and not error:
        yield _chosen(attempt, decision, decision.allocation)
    yield from _events(attempt, _summary(attempt, decision, ended_at, error))


def failed(attempt: AttemptRef, answer: Failed, ended_at: datetime, level: int) -> Iterator[LogLine]:
    """The lines about a filter call that ended before any node was judged."""
    yield from _asked(attempt, answer.containers, level)
    yield from _events(attempt, _partial_summary(attempt, ended_at=ended_at, error=answer.error))


def bound(attempt: AttemptRef, node: str, error: str, ended_at: datetime) -> Iterator[LogLine]:
    """The lines about a bind call. error: empty where the pod was bound."""
    # HAMi logs a lock that is held as an error of its own, before the event about the bind.
    if is_contention(error):
        about = f"err={quoted(error)} node={quoted(node)} {_pod(attempt)}"
        yield LogLine("scheduler.go:1048", f'"Failed to lock node" {about}', "E")
    if not error:
        pod = attempt.pod
        about = f"pod={quoted(pod.name)} namespace={quoted(pod.namespace)} node={quoted(node)}"
        yield LogLine("scheduler.go:1063", f'"Successfully bound pod to node" {about}')
    outcome = BindOutcome(node=node, bound=not error, error=error, ended_at=ended_at)
    yield from _events(attempt, _partial_summary(attempt, bind=outcome))


def _pod(attempt: AttemptRef) -> str:
    return f"pod={quoted(str(attempt.pod))}"


def _asked(attempt: AttemptRef, containers: Sequence[VendorRequest], level: int) -> Iterator[LogLine]:
    pod = attempt.pod
    about = f"pod={quoted(pod.name)} uuid={quoted(pod.uid)} namespace={quoted(pod.namespace)}"
    yield LogLine("scheduler.go:1068", f'"Starting schedule filter process" {about}')
    yield from _containers(_pod(attempt), containers, level)
    for asked in containers:
        if asked.asks:
            about = f"{_pod(attempt)} card request={_request(asked)}"
            yield LogLine("device.go:719", f'"Allocating device for container request" {about}')


def _containers(pod: str, containers: Sequence[VendorRequest], level: int) -> Iterator[LogLine]:
    """What each container requests, in one line, and from level 5 on the containers' names."""
    own = [asked for asked in containers if not asked.is_further]
    init = sum(asked.is_init for asked in own)
    if level >= NODES:
        counts = f"initContainerCount={init} containerCount={len(own) - init} totalContainers={len(own)}"
        yield LogLine("devices.go:643", f'"Processing resource requirements" {pod} {counts}')
    if level >= DEVICES:
        for index, asked in enumerate(own):
            what = "init container" if asked.is_init else "container"
            # Counted from 0 again after the init containers.
            place = f"containerIndex={index if asked.is_init else index - init} containerName={quoted(asked.name)}"
            yield LogLine("devices.go:673", f'"Processing {what} resources" {pod} {place}')
    if level >= NODES:
        requests = ",".join(_by_vendor(containers))
        yield LogLine("devices.go:688", f'"Resource requirements collected" {pod} requests=[{requests}]')


def _by_vendor(containers: Sequence[VendorRequest]) -> Iterator[str]:
    """An object for each container, with its requests by vendor."""
    for start, asked in enumerate(containers):
        if not asked.is_further:
            more = itertools.takewhile(lambda other: other.is_further, containers[start + 1 :])
            requests = [f"{quoted(request.vendor)}:{_request(request)}" for request in (asked, *more) if request.asks]
            yield f"{{{','.join(requests)}}}"


def _request(asked: VendorRequest) -> str:
    return (
        f'{{"Nums":{asked.count},"Type":{quoted(asked.vendor)},"Memreq":{asked.memory_mib},'
        f'"MemPercentagereq":{asked.memory_percentage},"Coresreq":{asked.cores}}}'
    )


def _chosen(attempt: AttemptRef, decision: Decision, allocation: Allocation) -> LogLine:
    """The chosen node with the devices of each container."""
    lists: dict[str, list[str]] = {asked.vendor: [] for asked in decision.containers if asked.asks}
    for asked, grants in zip(decision.containers, allocation.containers, strict=True):
        for vendor, entries in lists.items():
            if asked.is_further and vendor != asked.vendor:
                continue
            taken = grants if vendor == asked.vendor else ()
            devices = ",".join(
                f'{{"UUID":{quoted(grant.uuid)},"Type":{quoted(vendor)},"Usedmem":{grant.memory_mib},'
                f'"Usedcores":{grant.cores}}}'
                for grant in taken
            )
            entries.append(f"[{devices}]")
    by_vendor = ",".join(f"{quoted(vendor)}:[{','.join(entries)}]" for vendor, entries in lists.items())
    pod = f"podNamespace={quoted(attempt.pod.namespace)} podName={quoted(attempt.pod.name)}"
    about = f"{pod} nodeID={quoted(allocation.node)} devices={{{by_vendor}}}"
    return LogLine("scheduler.go:1119", f'"Scheduling pod to node" {about}')


def _scores(decision: Decision) -> Iterator[LogLine]:
    for name, score in decision.list_fitting():
        yield LogLine("node_policy.go:129", f"node {quoted(name)[1:-1]} computer default score is {score:f}")


def _nodes(pod: str, decision: Decision) -> Iterator[LogLine]:
    reasons = [quoted(text) for text in decision.refusal_texts]
    is_ambiguous = has_several_requests(decision)
    unknown = (decision.node_verdict == verdict_codes.NODE_UNKNOWN).tolist()
    for index, refusal in enumerate(decision.refusal.tolist()):
        name = decision.node_names[index]
        node = f"{pod} node={quoted(name)}"
        if unknown[index]:
            cause = decision.unregistered_causes.get(name, f"node {name} not found")
            yield LogLine("scheduler.go:850", f'"{ReasonCode.NODE_UNREGISTERED}" {node} error={quoted(cause)}')
        elif refusal >= 0:
            by = container_key(decision, int(decision.refused_by[index])) if is_ambiguous else ""
            yield LogLine("score.go:275", f'"{ReasonCode.NODE_UNFIT_POD}" {node} reason={reasons[refusal]}{by}')
        else:
            yield LogLine(
                "score.go:343", f'"{ReasonCode.NODE_FIT_POD}" {node} score={float_text(decision.score[index])}'
            )


def _events(attempt: AttemptRef, summary: AttemptSummarized) -> Iterator[LogLine]:
    pod = quoted(str(attempt.pod))
    for message in build_messages(summary):
        if message.code in _WITHOUT_EVENT:
            continue
        about = (
            f'object={pod} fieldPath="" kind="Pod" apiVersion="v1" type="{message.severity}" reason="{message.reason}"'
        )
        yield LogLine("event.go:389", f'"Event occurred" {about} message={quoted(message.message)}')


def _summary(attempt: AttemptRef, decision: Decision, ended_at: datetime, error: str) -> AttemptSummarized:
    return _partial_summary(
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


def _partial_summary(attempt: AttemptRef, **known: Any) -> AttemptSummarized:
    """A summary with the fields that messages are made from; it is never written."""
    report = Report.model_construct(source=SCHEDULER, attempt_id=attempt.id, started_at=attempt.started_at)
    return AttemptSummarized.model_construct(**attempt.common_fields, reports=[report], **known)
