"""Findings about the devices of claims in both languages: the value of a device, and what was asked."""

from collections.abc import Mapping
from typing import Final

from engine.claims.allocated import DeviceHolder
from engine.claims.capacity import Shortage, format_nano
from engine.claims.cel.parts import FailedPart
from engine.claims.constraints import Conflict
from engine.claims.counters import CounterShortage
from engine.claims.device_details import DeviceTaint
from engine.claims.findings import DeviceFinding, SelectorFailure, format_attribute
from engine.claims.reasons import DeviceReason
from engine.claims.reservations import TakenDevice
from schemas.answers.diagnosis import InBothLanguages

_WANTED: Final[Mapping[str, str]] = {
    "==": "要求 {}",
    "!=": "要求不是 {}",
    ">=": "要求至少 {}",
    ">": "要求大于 {}",
    "<=": "要求至多 {}",
    "<": "要求小于 {}",
    "in": "要求是 {} 之一",
    "not in": "要求不在 {} 之中",
    "startsWith": "要求以 {} 开头",
    "endsWith": "要求以 {} 结尾",
    "contains": "要求包含 {}",
    "matches": "要求匹配 {}",
    "includes": "要求其中有 {}",
}
"""Words for an operator of a selector with the value that is asked for; `engine.claims.cel.parts` has the English."""
_STATES: Final = {"is not set": "未设置", "is set": "已设置"}


def write_finding(finding: DeviceFinding) -> InBothLanguages:
    """Write a finding; what only a driver or CEL words stays in English."""
    english = finding.text.rstrip(".")
    return InBothLanguages(en=english, zh=_write_chinese(finding) or english)


def _write_chinese(finding: DeviceFinding) -> str:
    match finding.cause:
        case SelectorFailure(error=""):
            parts = "；".join(map(_write_part, finding.cause.parts))
            return f"{finding.cause.selector}：{parts}" if parts else ""
        case DeviceHolder():
            return _write_holder(finding.cause)
        case DeviceTaint():
            rule = f"（来自 DeviceTaintRule {finding.cause.rule}）" if finding.cause.rule else ""
            return f"请求不容忍污点 {finding.cause}{rule}"
        case Shortage():
            return _write_shortage(finding.cause)
        case CounterShortage(counter=counter) if counter:
            return _write_counter(finding.cause)
        case Conflict():
            return _write_conflict(finding.cause)
        case TakenDevice() if finding.reason is DeviceReason.TAKEN_BY_POD:
            return f"已用于声明 {finding.cause.title}"
    return ""


def _write_part(part: FailedPart) -> str:
    if part.alternatives:
        return "；或 ".join(map(_write_part, part.alternatives))
    if part.operator:
        return f"{part.subject} 为 {part.actual}，{_WANTED[part.operator].format(part.expected)}"
    if part.subject and part.actual in _STATES:
        return f"{part.subject} {_STATES[part.actual]}：{part.text} 不成立"
    return part.to_sentence()


def _write_holder(holder: DeviceHolder) -> str:
    pods = [consumer.name for consumer in holder.claim.reserved_for]
    more = f" 等 {len(pods)} 个" if len(pods) > 3 else ""
    names = f"预留给 {'、'.join(pods[:3])}{more}" if pods else "没有为任何 Pod 预留"
    return f"被声明 {holder.claim.title} 占用，{names}"


def _write_shortage(shortage: Shortage) -> str:
    name = shortage.name
    amount, left, total = (format_nano(nano) for nano in (shortage.amount, shortage.left, shortage.total))
    if shortage.is_undefined:
        return f"没有容量项 {name}"
    if shortage.breaks_policy:
        return f"{name}：设备不提供 {amount} 这样的量"
    if shortage.amount > shortage.total:
        return f"{name} 为 {total}，申请 {amount}"
    return f"{name}：{total} 剩余 {left}，申请 {amount}"


def _write_counter(shortage: CounterShortage) -> str:
    title = f"{shortage.counter_set} 的 {shortage.counter}"
    if not shortage.needed:
        return f"{title} 已超额占用，该池不再提供带计数器的设备"
    return f"{title}：剩余 {format_nano(max(0, shortage.left))}，设备需要 {format_nano(shortage.needed)}"


def _write_conflict(conflict: Conflict) -> str:
    spec = conflict.spec
    title = f"{spec.kind} {spec.attribute}"
    if conflict.value is None:
        return f"{title}：设备没有该属性"
    value = format_attribute(conflict.value)
    if spec.kind == "matchAttribute":
        others = " 和 ".join(dict.fromkeys(map(format_attribute, conflict.others)))
        return f"{title}：{value}，先选中的设备为 {others}"
    return f"{title}：{value}，先选中的设备也是该值"
