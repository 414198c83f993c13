"""A decision in the words of HAMi's log, by klog level. Pure.

Spelling, keys and places in the source are HAMi v2.10's. Unlike there a line about a device names the node too, so that
lines of pods judged at the same time can be told apart, and one attempt's lines stand together.

    0    what is asked, and the events about the pod
    2    the score of every node that fits
    4    every node: `NodeUnfitPod` with its reasons, `NodeFitPod` with its score, `node unregistered`
    5    every device that was looked at
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

import numpy as np
import orjson

from hami.node_lock import is_contention
from hami.reason_codes import ReasonCode
from scheduler.devices.node_entry import NodeFragment
from scheduler.judge import verdict_codes
from scheduler.judge.decision import ContainerJudgement, Decision, Failed
from scheduler.judge.request import ContainerRequest
from scheduler.publish.attempt import AttemptRef
from schemas import events
from schemas.events import AttemptSummarized, BindOutcome
from summaries.messages import messages

SCORES: Final = 2
NODES: Final = 4
DEVICES: Final = 5

_WITHOUT_EVENT: Final = (ReasonCode.NODE_INSUFFICIENT_DEVICE.value, ReasonCode.NODE_UNREGISTERED.value)
"""Reasons that count no devices: HAMi has no event of their own for them."""


class LogLine(NamedTuple):
    """`place`: file and line of HAMi's source. `severity`: I or E."""

    source: str
    text: str
    severity: str = "I"


def quoted(text: str) -> str:
    """A text in double quotes, with everything escaped that could end it or the line."""
    written: bytes = orjson.dumps(text)
    return written.decode().replace("\x7f", "\\u007f")


def float_text(number: float) -> str:
    """A float32 as Go prints it: the shortest text that reads back as the same number."""
    value = np.float32(number)
    if not np.isfinite(value):
        return "NaN" if np.isnan(value) else f"{'+' if value > 0 else '-'}Inf"
    if value and abs(value) < 1e-4:
        return np.format_float_scientific(value, trim="-", exp_digits=2)
    return np.format_float_positional(value, trim="-")


def decided(attempt: AttemptRef, decision: Decision, ended_at: datetime, error: str, level: int) -> Iterator[LogLine]:
    """Everything about one filter call. `error`: why the decision could not be written to the pod."""
    pod = _pod(attempt)
    yield from _asked(attempt, decision.containers)
    if level >= DEVICES:
        yield from _devices(pod, decision)
    if level >= SCORES:
        yield from _scores(decision)
    if level >= NODES:
        yield from _nodes(pod, decision)
        if decision.chosen is None:
            name = quoted(attempt.pod.name)
            yield LogLine("scheduler.go:1110", f'"No available nodes meet the required scores" pod={name}')
    yield from _events(attempt, _summary(attempt, decision, ended_at, error))


def failed(attempt: AttemptRef, answer: Failed, ended_at: datetime) -> Iterator[LogLine]:
    """A filter call that ended before any node was judged."""
    yield from _asked(attempt, answer.containers)
    yield from _events(attempt, _said(attempt, ended_at=ended_at, error=answer.error))


def bound(attempt: AttemptRef, node: str, error: str, ended_at: datetime) -> Iterator[LogLine]:
    """A bind call; `error` is empty where it went well."""
    if is_contention(error):
        about = f"err={quoted(error)} node={quoted(node)} {_pod(attempt)}"
        yield LogLine("scheduler.go:1048", f'"Failed to lock node" {about}', "E")
    if not error:
        pod = attempt.pod
        about = f"pod={quoted(pod.name)} namespace={quoted(pod.namespace)} node={quoted(node)}"
        yield LogLine("scheduler.go:1063", f'"Successfully bound pod to node" {about}')
    outcome = BindOutcome(node=node, bound=not error, error=error, ended_at=ended_at)
    yield from _events(attempt, _said(attempt, bind=outcome))


def _pod(attempt: AttemptRef) -> str:
    return f"pod={quoted(str(attempt.pod))}"


def _asked(attempt: AttemptRef, containers: Sequence[ContainerRequest]) -> Iterator[LogLine]:
    pod = attempt.pod
    about = f"pod={quoted(pod.name)} uuid={quoted(pod.uid)} namespace={quoted(pod.namespace)}"
    yield LogLine("scheduler.go:1068", f'"Starting schedule filter process" {about}')
    for asked in containers:
        if asked.asks:
            request = (
                f'{{"Nums":{asked.count},"Type":{quoted(asked.vendor)},"Memreq":{asked.memory_mib},'
                f'"MemPercentagereq":{asked.memory_percentage},"Coresreq":{asked.cores}}}'
            )
            about = f"{_pod(attempt)} card request={request}"
            yield LogLine("device.go:719", f'"Allocating device for container request" {about}')


def _scores(decision: Decision) -> Iterator[LogLine]:
    for name, score in decision.fitting():
        yield LogLine("node_policy.go:129", f"node {quoted(name)[1:-1]} computer default score is {score:f}")


def _nodes(pod: str, decision: Decision) -> Iterator[LogLine]:
    reasons = [quoted(text) for text in decision.refusal_texts]
    unknown = (decision.node_verdict == verdict_codes.NODE_UNKNOWN).tolist()
    for index, refusal in enumerate(decision.refusal.tolist()):
        name = decision.node_names[index]
        node = f"{pod} node={quoted(name)}"
        if unknown[index]:
            cause = decision.unregistered_causes.get(name, f"node {name} not found")
            yield LogLine("scheduler.go:850", f'"{ReasonCode.NODE_UNREGISTERED}" {node} error={quoted(cause)}')
        elif refusal >= 0:
            yield LogLine("score.go:275", f'"{ReasonCode.NODE_UNFIT_POD}" {node} reason={reasons[refusal]}')
        else:
            yield LogLine(
                "score.go:343", f'"{ReasonCode.NODE_FIT_POD}" {node} score={float_text(decision.score[index])}'
            )


def _devices(pod: str, decision: Decision) -> Iterator[LogLine]:
    for judged in decision.judgements:
        rows = _Rows(decision, judged)
        for place, index in enumerate(judged.nodes.tolist()):
            fragment = decision.fragments[index]
            if fragment:
                yield from _node_devices(f"{pod} node={fragment.name_json.decode()}", rows, place, fragment)


def _node_devices(node: str, rows: "_Rows", place: int, fragment: NodeFragment) -> Iterator[LogLine]:
    start, stop = rows.offsets[place], rows.offsets[place + 1]
    if rows.has_too_few[place]:
        asked = f"request devices nums={rows.request.count} node device nums (type)={rows.devices[place]}"
        yield LogLine("score.go:100", f'"{ReasonCode.NODE_INSUFFICIENT_DEVICE}" {node} {asked} type={rows.vendor}')
    uuids = [quoted(uuid) for uuid in fragment.uuids]
    allocated = 0
    for row in range(start, stop):
        verdict = rows.verdict[row]
        if told := _LINE_OF_VERDICT.get(verdict):
            line, message, rest = told
            yield LogLine(line, f'"{message}" {node} device={uuids[rows.device[row]]}{rest(rows, row)}')
        allocated += verdict == verdict_codes.ALLOCATED_INSUFFICIENT
    if allocated:
        counted = f"request={rows.request.count} allocated={allocated}"
        yield LogLine("device.go:873", f'"{ReasonCode.ALLOCATED_CARDS_INSUFFICIENT_REQUEST}" {node} {counted}')


class _Rows:
    """One judgement with its columns as lists, which single rows are read from ten times as fast."""

    def __init__(self, decision: Decision, judged: ContainerJudgement) -> None:
        self.request = decision.containers[judged.container]
        self.vendor = quoted(self.request.vendor)
        self.models = [quoted(kind.model) for kind in decision.kinds]
        self.kinds = decision.kinds
        self.offsets: list[int] = judged.offsets.tolist()
        bare = np.array(
            [refusal.bare == ReasonCode.NODE_INSUFFICIENT_DEVICE.value for refusal in decision.refusals] + [False]
        )
        self.has_too_few: list[bool] = (~judged.passed & bare[decision.refusal[judged.nodes]]).tolist()
        self.devices: list[int] = judged.devices.tolist()
        self.device: list[int] = judged.device.tolist()
        self.kind: list[int] = judged.kind.tolist()
        self.numa: list[int] = judged.numa.tolist()
        self.verdict: list[int] = judged.verdict.tolist()
        self.asked_memory: list[int] = judged.requested_memory_mib.tolist()
        self.used_memory: list[int] = judged.used_memory_mib.tolist()
        self.used_cores: list[int] = judged.used_cores.tolist()
        self.used_slots: list[int] = judged.used_slots.tolist()


def _nothing(_rows: _Rows, _row: int) -> str:
    return ""


def _health(_rows: _Rows, _row: int) -> str:
    return " health=false"


def _type(rows: _Rows, row: int) -> str:
    return f" {rows.models[rows.kind[row]][1:-1]}={rows.vendor}"


def _numa(rows: _Rows, row: int) -> str:
    return f" k.nums={rows.request.count} numa=true device numa={rows.numa[row]}"


def _whole_device(rows: _Rows, row: int) -> str:
    kind = rows.kinds[rows.kind[row]]
    return (
        f' current device info is:={{"Index":{rows.device[row]},"Used":{rows.used_slots[row]},"Count":{kind.slots},'
        f'"Usedmem":{rows.used_memory[row]},"Totalmem":{kind.memory_mib},"Totalcore":{kind.cores},'
        f'"Usedcores":{rows.used_cores[row]},"Numa":{rows.numa[row]},"Type":{rows.models[rows.kind[row]]}}}'
    )


def _slots(rows: _Rows, row: int) -> str:
    return f" count={rows.kinds[rows.kind[row]].slots} used={rows.used_slots[row]}"


def _conflict(rows: _Rows, row: int) -> str:
    return f" device index={rows.device[row]} used={rows.used_slots[row]}"


def _quota(rows: _Rows, row: int) -> str:
    return f" memreq={rows.asked_memory[row]} coresreq={rows.request.cores}"


def _memory(rows: _Rows, row: int) -> str:
    return (
        f" device index={rows.device[row]} device total memory={rows.kinds[rows.kind[row]].memory_mib}"
        f" device used memory={rows.used_memory[row]} request memory={rows.asked_memory[row]}"
    )


def _cores(rows: _Rows, row: int) -> str:
    return (
        f" device index={rows.device[row]} device total core={rows.kinds[rows.kind[row]].cores}"
        f" device used core={rows.used_cores[row]} request cores={rows.request.cores}"
    )


def _index(rows: _Rows, row: int) -> str:
    return f" device index={rows.device[row]}"


_FOUND: Final = ("device.go:830", "find fit device", _nothing)

_LINE_OF_VERDICT: Final[dict[int, tuple[str, str, Callable[[_Rows, int], str]]]] = {
    verdict_codes.PICKED: _FOUND,
    verdict_codes.FITS: _FOUND,
    verdict_codes.ALLOCATED_INSUFFICIENT: _FOUND,
    verdict_codes.NOT_HEALTHY: ("device.go:732", ReasonCode.CARD_NOT_HEALTH, _health),
    verdict_codes.CORDONED: ("device.go:737", ReasonCode.CARD_CORDONED, _nothing),
    verdict_codes.TYPE_MISMATCH: ("device.go:743", ReasonCode.CARD_TYPE_MISMATCH, _type),
    verdict_codes.NUMA_NOT_FIT: ("device.go:749", ReasonCode.NUMA_NOT_FIT, _numa),
    verdict_codes.UUID_MISMATCH: ("device.go:757", ReasonCode.CARD_UUID_MISMATCH, _whole_device),
    verdict_codes.TIME_SLICING_EXHAUSTED: ("device.go:764", ReasonCode.CARD_TIME_SLICING_EXHAUSTED, _slots),
    verdict_codes.EXCLUSIVE_DEVICE_ALLOCATE_CONFLICT: (
        "device.go:769",
        ReasonCode.EXCLUSIVE_DEVICE_ALLOCATE_CONFLICT,
        _conflict,
    ),
    verdict_codes.RESOURCE_QUOTA_NOT_FIT: ("device.go:786", ReasonCode.RESOURCE_QUOTA_NOT_FIT, _quota),
    verdict_codes.INSUFFICIENT_MEMORY: ("device.go:791", ReasonCode.CARD_INSUFFICIENT_MEMORY, _memory),
    verdict_codes.INSUFFICIENT_CORE: ("device.go:796", ReasonCode.CARD_INSUFFICIENT_CORE, _cores),
    verdict_codes.COMPUTE_UNITS_EXHAUSTED: ("device.go:808", ReasonCode.CARD_COMPUTE_UNITS_EXHAUSTED, _index),
    verdict_codes.MIG_TOPOLOGY_INFEASIBLE: ("device.go:821", ReasonCode.CARD_MIG_TOPOLOGY_INFEASIBLE, _index),
}
"""By verdict: place in HAMi's source, message, and the keys behind the device. Not reached is not told."""


def _events(attempt: AttemptRef, summary: AttemptSummarized) -> Iterator[LogLine]:
    pod = quoted(str(attempt.pod))
    for said in messages(summary):
        if said.code in _WITHOUT_EVENT:
            continue
        about = f'object={pod} fieldPath="" kind="Pod" apiVersion="v1" type="{said.severity}" reason="{said.reason}"'
        yield LogLine("event.go:389", f'"Event occurred" {about} message={quoted(said.message)}')


def _summary(attempt: AttemptRef, decision: Decision, ended_at: datetime, error: str) -> AttemptSummarized:
    return _said(
        attempt,
        ended_at=ended_at,
        error=error,
        chosen=decision.chosen,
        node_policy=decision.node_policy,
        offered_nodes=len(decision.node_names),
        verdicts=list(verdict_codes.NODE_VERDICTS),
        refusals=[
            events.Refusal.model_construct(counts=dict(each.counts), devices=each.devices, bare=each.bare)
            for each in decision.refusals
        ],
        nodes=decision.node_names,
        verdict=decision.node_verdict,
        score=decision.score,
        refused_by=decision.refused_by,
        refusal=decision.refusal,
    )


def _said(attempt: AttemptRef, **known: Any) -> AttemptSummarized:
    return AttemptSummarized.model_construct(**attempt.common_fields, **known)
