"""Findings about the devices of claims in both languages: the value of a device, and what was asked."""

import re
from collections.abc import Mapping
from typing import Final

from engine.claims.allocated import DeviceHolder
from engine.claims.capacity import Shortage, format_nano
from engine.claims.cel.parts import FailedPart
from engine.claims.cel.selector import Truth
from engine.claims.constraints import Conflict
from engine.claims.counters import CounterShortage
from engine.claims.device_details import DeviceTaint
from engine.claims.findings import DeviceFinding, SelectorFailure, StatedFinding, format_attribute
from engine.claims.reservations import TakenDevice
from engine.diagnosis.cel_errors import write_cel_error
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
_FAILURES: Final = {
    Truth.RUN_ERROR: "求值出错",
    Truth.COMPILE_ERROR: "无法编译",
    Truth.UNJUDGED: "未作判断",
}
_SELECTOR: Final = re.compile(r"^(?P<kind>class|claim) (?P<name>\S+): selector #(?P<position>\d+)$")
_OWNERS: Final = {"class": "设备类", "claim": "声明"}
STATEMENTS_IN_CHINESE: Final[Mapping[str, str]] = {
    "class_missing": "设备类 {class_name} 不存在",
    "pool_incomplete": "池 {pool} 的第 {generation} 代有 {expected} 个 slice，目前只有 {seen} 个",
    "pool_invalid": "池 {pool} 无效：{cause}",
    "pool_outdated": "池 {pool} 为第 {generation} 代，已被更新的一代取代",
    "not_on_node": "节点 {node} 无法访问该设备",
    "binding_conditions": "该设备带有绑定条件",
    "too_few": "该设备符合，但申请 {wanted} 个，而节点上只有 {count} 个符合",
    "not_together": "该设备符合，但无法与 Pod 申请的其他设备同时满足",
    "taken_by_claim": "该声明已包含此设备",
}
"""Texts of statements; `engine.claims.findings` has the English."""
_STATES: Final = {"is not set": "未设置", "is set": "已设置"}


def write_finding(finding: DeviceFinding) -> InBothLanguages:
    """Write a finding; what only a driver words stays in English."""
    english = finding.text.rstrip(".")
    return InBothLanguages(en=english, zh=_write_chinese(finding) or english)


def _write_chinese(finding: DeviceFinding) -> str:
    match finding.cause:
        case SelectorFailure():
            return _write_selector(finding.cause)
        case StatedFinding():
            return STATEMENTS_IN_CHINESE[finding.cause.code].format_map(dict(finding.cause.values))
        case DeviceHolder():
            return _write_holder(finding.cause)
        case DeviceTaint():
            rule = f"（来自 DeviceTaintRule {finding.cause.rule}）" if finding.cause.rule else ""
            return f"请求不容忍污点 {finding.cause}{rule}"
        case Shortage():
            return _write_shortage(finding.cause)
        case CounterShortage():
            return _write_counter(finding.cause)
        case Conflict():
            return _write_conflict(finding.cause)
        case TakenDevice():
            return f"已用于声明 {finding.cause.title}"
    return ""


def _write_selector(failure: SelectorFailure) -> str:
    parts = "；".join(map(_write_part, failure.parts))
    selector = _SELECTOR.sub(_write_owner, failure.selector)
    if failure.truth is Truth.FALSE:
        return f"{selector}：{parts or '不成立'}"
    if failure.truth is not Truth.RUN_ERROR or not parts:
        parts = write_cel_error(failure.error)
    return f"{selector}{_FAILURES[failure.truth]}：{parts}"


def _write_owner(match: "re.Match[str]") -> str:
    return f"{_OWNERS[match['kind']]} {match['name']} 的选择器 #{match['position']}"


def _write_part(part: FailedPart) -> str:
    if part.alternatives:
        return "；或 ".join(map(_write_part, part.alternatives))
    if part.error:
        return f"{part.text}：{write_cel_error(part.error)}"
    if part.operator:
        return f"{part.subject} 为 {part.actual}，{_WANTED[part.operator].format(part.expected)}"
    if part.subject and part.actual in _STATES:
        return f"{part.subject} {_STATES[part.actual]}：{part.text} 不成立"
    if part.subject and part.actual in ("true", "false"):
        return f"{part.subject} 为 {part.actual}"
    return f"{part.subject} 为 {part.actual}：{part.text} 不成立" if part.subject else f"{part.text} 不成立"


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
    if not shortage.counter:
        return "该设备与其他设备共享计数器，而集群不支持"
    title = f"{shortage.counter_set} 的 {shortage.counter}"
    if not shortage.needed:
        return f"{title} 已超额占用，该池不再提供带计数器的设备"
    users = "；".join(map(_write_holder, shortage.users))
    amounts = f"{title}：剩余 {format_nano(max(0, shortage.left))}，设备需要 {format_nano(shortage.needed)}"
    return f"{amounts}；{users}" if users else amounts


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
