"""Findings: reasons why a device is not picked for a request, with the values behind them in words."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from engine.claims.allocated import DeviceHolder
from engine.claims.capacity import Shortage, format_nano
from engine.claims.cel.parts import FailedPart
from engine.claims.cel.selector import Truth
from engine.claims.constraints import AttributeValue, Conflict
from engine.claims.counters import CounterShortage
from engine.claims.device_details import DeviceTaint
from engine.claims.device_facts import DeviceFacts, SelectorOutcome
from engine.claims.judgement import DeviceReason, to_line
from engine.claims.matching import DeviceMatcher
from engine.claims.requests import ClaimRequest
from engine.claims.reservations import Refusal, TakenDevice
from engine.claims.slices import Slice, SliceDevice


@dataclass(frozen=True, slots=True)
class SelectorFailure:
    """A selector that a device does not meet. parts: those of it that are not true."""

    selector: str
    expression: str
    parts: tuple[FailedPart, ...]
    error: str = ""
    truth: Truth = Truth.FALSE


@dataclass(frozen=True, slots=True)
class StatedFinding:
    """A finding with a text of its own (a key of `STATEMENTS`) and the values in it."""

    code: str
    values: tuple[tuple[str, object], ...] = ()


STATEMENTS: Final[Mapping[str, str]] = {
    "class_missing": "device class {class_name} does not exist",
    "pool_incomplete": "pool {pool} has {seen} of {expected} slices of generation {generation}",
    "pool_invalid": "pool {pool}: {cause}",
    "pool_outdated": "pool {pool} is of generation {generation}, which a newer one replaces",
    "not_on_node": "node {node} does not reach the device",
    "binding_conditions": "it has binding conditions",
    "too_few": "it fits, and {wanted} are asked for, but only {count} of the node's do",
    "not_together": "it fits, but not together with devices for everything else that the pod asks for",
    "taken_by_claim": "this claim has it already",
}
"""Texts of statements."""

Cause = (
    SelectorFailure
    | DeviceHolder
    | DeviceTaint
    | Shortage
    | CounterShortage
    | Conflict
    | TakenDevice
    | StatedFinding
    | None
)
"""The objects behind a finding."""


@dataclass(frozen=True, slots=True)
class DeviceFinding:
    """One reason why a device is not picked.

    text: with the values, such as ``memory 46068Mi, asked at least 80Gi``; one line that a terminal can show.
    """

    reason: DeviceReason
    text: str
    cause: Cause = None

    def __post_init__(self) -> None:
        """Make the text one line."""
        object.__setattr__(self, "text", to_line(self.text))


def describe_by_code(reason: DeviceReason, code: str, **values: object) -> DeviceFinding:
    """State a finding by the code of its text."""
    return DeviceFinding(reason, STATEMENTS[code].format_map(values), StatedFinding(code, tuple(values.items())))


_UNTRUE: Final[Mapping[Truth, DeviceReason]] = {
    Truth.RUN_ERROR: DeviceReason.SELECTOR_ERROR,
    Truth.COMPILE_ERROR: DeviceReason.SELECTOR_ERROR,
    Truth.UNJUDGED: DeviceReason.NOT_JUDGED,
}
_ERROR_WORDS: Final[Mapping[Truth, str]] = {
    Truth.RUN_ERROR: "fails",
    Truth.COMPILE_ERROR: "does not compile",
    Truth.UNJUDGED: "is not judged",
}


def describe_facts(
    matcher: DeviceMatcher, facts: DeviceFacts, request: ClaimRequest, slice_: Slice, device: SliceDevice
) -> Iterator[DeviceFinding]:
    """Describe the facts that keep a device from a request."""
    if facts.is_class_missing:
        yield describe_by_code(DeviceReason.CLASS_NOT_FOUND, "class_missing", class_name=request.class_name)
    for outcomes, reason in (
        (facts.of_class, DeviceReason.CLASS_NOT_MATCHED),
        (facts.of_request, DeviceReason.SELECTOR_NOT_MATCHED),
    ):
        for outcome in outcomes:
            if not outcome.outcome.is_true:
                yield _describe_selector(matcher, outcome, reason, slice_, device)
    if facts.shortage:
        yield describe_refusal(facts.shortage, request)
    for taint in facts.taints:
        yield describe_refusal(taint, request)
    if facts.holder:
        yield describe_holder(facts.holder)


def describe_holder(holder: DeviceHolder) -> DeviceFinding:
    """Describe the claim that has a device for itself."""
    return DeviceFinding(DeviceReason.IN_USE, f"in use by {holder.to_text()}", holder)


def _describe_selector(
    matcher: DeviceMatcher, failed: SelectorOutcome, reason: DeviceReason, slice_: Slice, device: SliceDevice
) -> DeviceFinding:
    selector, outcome = failed.origin.selector, failed.outcome
    parts = tuple(matcher.explain(selector, slice_, device))
    cause = SelectorFailure(failed.origin.text, selector.text, parts, outcome.text, outcome.truth)
    sentences = "; ".join(part.to_sentence() for part in parts)
    if outcome.truth is Truth.FALSE:
        return DeviceFinding(reason, f"{failed.origin.text}: {sentences or 'is false'}", cause)
    if outcome.truth is not Truth.RUN_ERROR or not sentences:
        sentences = outcome.text.partition("\n")[0]
    text = f"{failed.origin.text} {_ERROR_WORDS[outcome.truth]}: {sentences}"
    return DeviceFinding(_UNTRUE[outcome.truth], text, cause)


def describe_refusal(refusal: Refusal, request: ClaimRequest) -> DeviceFinding:
    """Describe why a search does not take a device."""
    match refusal:
        case DeviceTaint():
            origin = f" of DeviceTaintRule {refusal.rule}" if refusal.rule else ""
            return DeviceFinding(DeviceReason.TAINTED, f"taint {refusal}{origin} is not tolerated", refusal)
        case Shortage():
            return _describe_shortage(refusal)
        case CounterShortage():
            return describe_counter(refusal)
        case Conflict():
            return DeviceFinding(DeviceReason.CONSTRAINT_NOT_MET, _describe_conflict(refusal), refusal)
    if request.has_admin_access:
        return describe_by_code(DeviceReason.TAKEN_BY_POD, "taken_by_claim")
    return DeviceFinding(DeviceReason.TAKEN_BY_POD, f"taken for claim {refusal.title}", refusal)


def _describe_shortage(shortage: Shortage) -> DeviceFinding:
    name = shortage.name
    if shortage.is_undefined:
        return DeviceFinding(DeviceReason.CAPACITY_NOT_DEFINED, f"it has no capacity {name}", shortage)
    amount, left, total = (format_nano(nano) for nano in (shortage.amount, shortage.left, shortage.total))
    if shortage.breaks_policy:
        text = f"{name}: {amount} is no amount that the device hands out"
        return DeviceFinding(DeviceReason.CAPACITY_NOT_ALLOWED, text, shortage)
    if shortage.amount > shortage.total:
        text = f"{name} {total}, asked {amount}"
        return DeviceFinding(DeviceReason.CAPACITY_TOO_SMALL, text, shortage)
    return DeviceFinding(DeviceReason.CAPACITY_EXHAUSTED, f"{name}: {left} of {total} left, asked {amount}", shortage)


def describe_counter(shortage: CounterShortage) -> DeviceFinding:
    """Describe a counter that is used up, with the claims that use it where they are named."""
    reason = DeviceReason.COUNTERS_EXHAUSTED
    if not shortage.counter:
        text = "it shares counters with others, which the cluster does not support"
        return DeviceFinding(reason, text, shortage)
    if not shortage.needed:
        text = f"{shortage.counter} of {shortage.counter_set} is overbooked, so the pool gives no device with counters"
        return DeviceFinding(reason, text, shortage)
    left, needed = format_nano(max(0, shortage.left)), format_nano(shortage.needed)
    text = f"{shortage.counter} of {shortage.counter_set}: {left} left, the device needs {needed}"
    users = " and by ".join(holder.to_text() for holder in shortage.users)
    return DeviceFinding(reason, f"{text}; used by {users}" if users else text, shortage)


def _describe_conflict(conflict: Conflict) -> str:
    spec = conflict.spec
    if conflict.value is None:
        return f"{spec.kind} {spec.attribute}: the device does not have it"
    value, others = format_attribute(conflict.value), list(dict.fromkeys(map(format_attribute, conflict.others)))
    if spec.kind == "matchAttribute":
        return f"matchAttribute {spec.attribute}: {value}, the devices taken before it have {' and '.join(others)}"
    return f"distinctAttribute {spec.attribute}: {value}, which a device taken before it has as well"


def format_attribute(value: AttributeValue) -> str:
    """Format the value of an attribute that a constraint compares."""
    kind, content = value
    if not kind:
        return "a list, which constraints do not compare"
    return str(content).lower() if kind == "bool" else str(content)


def sort_findings(findings: Sequence[DeviceFinding]) -> tuple[DeviceFinding, ...]:
    """Sort findings in the order in which they are reported."""
    return tuple(sorted(findings, key=lambda finding: _RANKS[finding.reason]))


_RANKS: Final = {reason: rank for rank, reason in enumerate(DeviceReason)}
