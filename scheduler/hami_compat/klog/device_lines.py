"""Lines of HAMi's log about single devices (level 5), and the spelling of values in all lines. Pure."""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import numpy as np
import orjson

from engine.fit.devices.node_entry import NodeFragment
from engine.fit.judge.checks import verdict_codes
from engine.fit.judge.decision import Decision
from engine.fit.judge.judgement import ContainerJudgement
from engine.hami.reason_codes import ReasonCode


class LogLine(NamedTuple):
    """A line without klog's header. source: file and line of HAMi's source. severity: I, W or E."""

    source: str
    text: str
    severity: str = "I"


def quote(text: str) -> str:
    """Quote a text, with everything escaped that could end it or the line."""
    # orjson escapes what JSON demands, and DEL is not among it.
    written: bytes = orjson.dumps(text)
    return written.decode().replace("\x7f", "\\u007f")


def format_float(number: float) -> str:
    """Format a float32 as Go prints it: the shortest text that reads back as the same number."""
    value = np.float32(number)
    if not np.isfinite(value):
        return "NaN" if np.isnan(value) else f"{'+' if value > 0 else '-'}Inf"
    # Go's %v changes to exponents below 1e-4, numpy does not by itself.
    if value and abs(value) < 1e-4:
        return np.format_float_scientific(value, trim="-", exp_digits=2)
    return np.format_float_positional(value, trim="-")


def list_device_lines(pod: str, decision: Decision) -> Iterator[LogLine]:
    """List a line for every device that was tried. pod: its key and value, as they begin each line."""
    for judged in decision.judgements:
        rows = _Rows(decision, judged)
        for position, index in enumerate(judged.nodes.tolist()):
            fragment = decision.get_fragment(index)
            if fragment:
                name = quote(fragment.name)
                plain = pod.removeprefix("pod=")[1:-1]
                yield LogLine("filter.go:125", f"Filtering node {name[1:-1]} for pod {plain}")
                yield from _list_node_devices(f"{pod} node={name}", rows, position, fragment)
                if not judged.passed[position]:
                    reason = decision.refusal_texts[int(decision.refusal[index])]
                    why = quote(reason)[1:-1] + rows.describe_shortage(position)
                    yield LogLine("filter.go:150", f"Node {name[1:-1]} filtered out: {why}")


def has_several_requests(decision: Decision) -> bool:
    """Tell whether several containers request devices: then lines name the container, which HAMi's do not."""
    return sum(request.asks for request in decision.containers) > 1


def to_container_key(decision: Decision, request: int) -> str:
    """Return the key of the request's container, counted over init containers and containers."""
    earlier = decision.containers[: request + 1]
    return f" containerIndex={sum(not vendor_request.is_further for vendor_request in earlier) - 1}"


def _list_node_devices(node: str, rows: "_Rows", position: int, fragment: NodeFragment) -> Iterator[LogLine]:
    start, stop = rows.offsets[position], rows.offsets[position + 1]
    if rows.has_too_few[position]:
        numbers = f"request devices nums={rows.request.count} node device nums (type)={rows.devices[position]}"
        yield LogLine("score.go:100", f'"{ReasonCode.NODE_INSUFFICIENT_DEVICE}" {node} {numbers} type={rows.vendor}')
    uuids = [quote(uuid) for uuid in fragment.uuids]
    allocated = 0
    for row in range(start, stop):
        verdict = rows.verdict[row]
        if line_of_verdict := _LINE_OF_VERDICT.get(verdict):
            line, message, describe = line_of_verdict
            yield LogLine(
                line, f'"{message}" {node} device={uuids[rows.device[row]]}{describe(rows, row)}{rows.of_container}'
            )
        # Found in vain: HAMi counts these devices in one more line (device.go:873).
        allocated += verdict == verdict_codes.ALLOCATED_INSUFFICIENT
    if allocated:
        counted = f"request={rows.request.count} allocated={allocated}"
        yield LogLine("device.go:873", f'"{ReasonCode.ALLOCATED_CARDS_INSUFFICIENT_REQUEST}" {node} {counted}')


class _Rows:
    """One judgement with its columns as lists: single elements of a numpy array are slow to read."""

    def __init__(self, decision: Decision, judged: ContainerJudgement) -> None:
        self.request = decision.containers[judged.container]
        self.vendor = quote(self.request.vendor)
        self.of_container = to_container_key(decision, judged.container) if has_several_requests(decision) else ""
        self.models = [quote(kind.model) for kind in decision.kinds]
        self.kinds = decision.kinds
        self.offsets: list[int] = judged.offsets.tolist()
        # The False at the end is for index -1, the refusal of nodes that fit.
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

    def describe_shortage(self, position: int) -> str:
        """Describe the requested memory and the largest free one, on a node whose devices had too little."""
        short = [
            row
            for row in range(self.offsets[position], self.offsets[position + 1])
            if self.verdict[row] == verdict_codes.INSUFFICIENT_MEMORY
        ]
        if not short:
            return ""
        left = {row: self.kinds[self.kind[row]].memory_mib - self.used_memory[row] for row in short}
        best = max(short, key=lambda row: left[row])
        return f", requested {self.asked_memory[best]}Mi but available {max(left[best], 0)}Mi"


def _describe_nothing(_rows: _Rows, _row: int) -> str:
    return ""


def _describe_health(_rows: _Rows, _row: int) -> str:
    return " health=false"


def _describe_type(rows: _Rows, row: int) -> str:
    # HAMi writes the model in the place of a key, blanks included.
    return f" {rows.models[rows.kind[row]][1:-1]}={rows.vendor}"


def _describe_numa(rows: _Rows, row: int) -> str:
    return f" k.nums={rows.request.count} numa=true device numa={rows.numa[row]}"


def _describe_device(rows: _Rows, row: int) -> str:
    kind = rows.kinds[rows.kind[row]]
    return (
        f' current device info is:={{"Index":{rows.device[row]},"Used":{rows.used_slots[row]},"Count":{kind.slots},'
        f'"Usedmem":{rows.used_memory[row]},"Totalmem":{kind.memory_mib},"Totalcore":{kind.cores},'
        f'"Usedcores":{rows.used_cores[row]},"Numa":{rows.numa[row]},"Type":{rows.models[rows.kind[row]]}}}'
    )


def _describe_slots(rows: _Rows, row: int) -> str:
    return f" count={rows.kinds[rows.kind[row]].slots} used={rows.used_slots[row]}"


def _describe_conflict(rows: _Rows, row: int) -> str:
    return f" device index={rows.device[row]} used={rows.used_slots[row]}"


def _describe_quota(rows: _Rows, row: int) -> str:
    return f" memreq={rows.asked_memory[row]} coresreq={rows.request.cores}"


def _describe_memory(rows: _Rows, row: int) -> str:
    return (
        f" device index={rows.device[row]} device total memory={rows.kinds[rows.kind[row]].memory_mib}"
        f" device used memory={rows.used_memory[row]} request memory={rows.asked_memory[row]}"
    )


def _describe_cores(rows: _Rows, row: int) -> str:
    return (
        f" device index={rows.device[row]} device total core={rows.kinds[rows.kind[row]].cores}"
        f" device used core={rows.used_cores[row]} request cores={rows.request.cores}"
    )


def _describe_index(rows: _Rows, row: int) -> str:
    return f" device index={rows.device[row]}"


_FITTING: Final = ("device.go:830", "find fit device", _describe_nothing)

_LINE_OF_VERDICT: Final[dict[int, tuple[str, str, Callable[[_Rows, int], str]]]] = {
    verdict_codes.PICKED: _FITTING,
    verdict_codes.FITS: _FITTING,
    verdict_codes.ALLOCATED_INSUFFICIENT: _FITTING,
    verdict_codes.NOT_HEALTHY: ("device.go:732", ReasonCode.CARD_NOT_HEALTH, _describe_health),
    verdict_codes.CORDONED: ("device.go:737", ReasonCode.CARD_CORDONED, _describe_nothing),
    verdict_codes.TYPE_MISMATCH: ("device.go:743", ReasonCode.CARD_TYPE_MISMATCH, _describe_type),
    verdict_codes.NUMA_NOT_FIT: ("device.go:749", ReasonCode.NUMA_NOT_FIT, _describe_numa),
    verdict_codes.UUID_MISMATCH: ("device.go:757", ReasonCode.CARD_UUID_MISMATCH, _describe_device),
    verdict_codes.TIME_SLICING_EXHAUSTED: ("device.go:764", ReasonCode.CARD_TIME_SLICING_EXHAUSTED, _describe_slots),
    verdict_codes.EXCLUSIVE_DEVICE_ALLOCATE_CONFLICT: (
        "device.go:769",
        ReasonCode.EXCLUSIVE_DEVICE_ALLOCATE_CONFLICT,
        _describe_conflict,
    ),
    verdict_codes.RESOURCE_QUOTA_NOT_FIT: ("device.go:786", ReasonCode.RESOURCE_QUOTA_NOT_FIT, _describe_quota),
    verdict_codes.INSUFFICIENT_MEMORY: ("device.go:791", ReasonCode.CARD_INSUFFICIENT_MEMORY, _describe_memory),
    verdict_codes.INSUFFICIENT_CORE: ("device.go:796", ReasonCode.CARD_INSUFFICIENT_CORE, _describe_cores),
    verdict_codes.COMPUTE_UNITS_EXHAUSTED: ("device.go:808", ReasonCode.CARD_COMPUTE_UNITS_EXHAUSTED, _describe_index),
    verdict_codes.MIG_TOPOLOGY_INFEASIBLE: ("device.go:821", ReasonCode.CARD_MIG_TOPOLOGY_INFEASIBLE, _describe_index),
}
"""Position in HAMi's source, message, and the keys after the device, by verdict. NOT_REACHED has no line."""
