"""The six tags of one operator's patch (v0.9.4): ``[GPU_FILTER]``, ``[GPU_FIT_CHECK]``, ``[IDLE_CHECK]``, …

Only the first line of a walk names the pod; the lines that follow belong to it by their node. The document that
describes the patch gives the layout of that first line and, for the others, only the names of their numbers; these are
looked up by name, in any order and spelling (``Total=40900``, ``TotalMemory: <40900 MB>``).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from ingest.readers.kai.attempt import DeviceChange, KaiAttempt, NodeOfAttempt
from ingest.readers.kai.devices import SharedDevice, cut_evidence
from ingest.readers.kai.grammar import GRAMMAR
from ingest.readers.kai.session import Session

TAGS: Final = ("[GPU_FILTER]", "[GPU_FIT_CHECK]", "[IDLE_CHECK]", "[RESOURCE_CHECK]", "[GPU_ALLOCATE]", "[GPU_SELECT]")
FIRST_BYTES: Final = tuple(tag.encode() for tag in TAGS)
FIRST_WORDS: Final = frozenset(tag.encode()[:-1] for tag in TAGS)

_LINE: Final = re.compile(r"\[(?P<tag>[A-Z_]+)\] (?:Node <(?P<node>[^>]*)>:? ?)?(?P<rest>.*)", re.DOTALL)
_DEVICE: Final = re.compile(r"GPU(?: group)? <(?P<group>[^>]*)>")
_FIELD: Final = re.compile(r"(?P<name>[A-Za-z][A-Za-z ]{0,40}?) ?[=:] ?<?(?P<value>-?\d+|true|false|\[[^\]]*\])")
_FIRST_LINE: Final = re.compile(GRAMMAR["tags"]["filter_begins"])
_POD: Final = re.compile(GRAMMAR["tags"]["allocated"])
_OF_TAG: Final[Mapping[str, Mapping[str, str]]] = GRAMMAR["tags"]["of_tag"]
_CHECKS: Final = ("fits", "enough_resources", "enough_idle", "in_use", "not_all_released", "allocatable",
                  "will_be_releasing")  # fmt: skip
"""Fields that say whether something holds of a device."""
_KIND: Final = re.compile(r"\b(?P<whole>whole)|shared\b", re.IGNORECASE)
_LIST: Final = re.compile(r"[^\s,\[\]<>]+")
_NAMES: Final = {name: field for field, names in GRAMMAR["tags"]["names"].items() for name in names}


@dataclass(slots=True)
class TagContext:
    """The pod whose walk was last begun on each node: lines without a pod are about it."""

    pods: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TaggedLine:
    tag: str
    node: str
    group: str
    """The group of the shared device; empty where the line is not about a device."""
    fields: dict[str, str]
    text: str

    def get_number(self, name: str) -> int | None:
        value = self.fields.get(name, "")
        return int(value[:15]) if value.lstrip("-").isdigit() else None

    def is_true(self, name: str) -> bool:
        return self.fields.get(name) == "true"

    def get_names(self, name: str) -> list[str]:
        """Get the entries of a list such as ``[grp-0 grp-1]``."""
        return _LIST.findall(self.fields.get(name, ""))

    def get_checks(self) -> dict[str, bool]:
        """Get the checks of the device in the line, by name."""
        values = {name: self.fields.get(name) for name in _CHECKS}
        results = {name: value == "true" for name, value in values.items() if value in ("true", "false")}
        if self.tag == "GPU_SELECT" and (kind := _KIND.search(self.text)):
            results["whole_device"] = kind["whole"] is not None
        return results


def parse_tagged(text: str) -> TaggedLine | None:
    """Parse a tagged line, with its fields under our names; None for a line with none of the six tags."""
    line = _LINE.match(text)
    if line is None or f"[{line['tag']}]" not in TAGS:
        return None
    device = _DEVICE.search(line["rest"])
    tail = line["rest"][: device.start()] + line["rest"][device.end() :] if device else line["rest"]
    # "UsedMemory != 0: true" is a condition, not the number of a field: it must not be read as UsedMemory.
    pairs = _FIELD.finditer(re.sub(r"!= ?0", "NotZero", tail))
    fields: dict[str, str] = {}
    for pair in pairs:
        if name := _resolve_name(pair["name"]):
            fields.setdefault(_OF_TAG.get(line["tag"], {}).get(name, name), pair["value"])
    return TaggedLine(line["tag"], line["node"] or "", device["group"] if device else "", fields, text)


def _resolve_name(text: str) -> str:
    """Resolve our name of a field, also after other words (``shared EnoughIdle``); empty if there is none."""
    words = text.lower().split(" ")
    spelled = (re.sub(r"[^a-z]", "", "".join(words[start:])) for start in range(len(words)))
    return next((_NAMES[name] for name in spelled if name in _NAMES), "")


def begins_walk(line: TaggedLine) -> bool:
    """Tell whether the line is the first one of a walk over a node's devices."""
    return _FIRST_LINE.search(line.text) is not None


def find_pod(line: TaggedLine) -> str:
    """Find the pod in the line; empty if it names none."""
    match = _POD.search(line.text)
    return match["pod"] if match else ""


def apply(session: Session, context: TagContext, line: TaggedLine, time: datetime) -> bool:
    """Add what the line says to the session; False where no attempt is known that it could be about."""
    if first := _FIRST_LINE.search(line.text):
        return _begin(session, context, line, time, first["pod"], int(first["memory"][:12]))
    attempt = session.attempts.get(find_pod(line) or context.pods.get(line.node, ""))
    if attempt is None:
        return False
    attempt.last_line_at = max(attempt.last_line_at, time)
    if line.tag == "GPU_ALLOCATE":
        _note_allocation(session, attempt, line, time)
    elif line.group:
        _note_device(attempt, session.find_or_add_node(attempt, line.node), line, time)
    else:
        _note_result(attempt, session.find_or_add_node(attempt, line.node), line)
    return True


def _begin(session: Session, context: TagContext, line: TaggedLine, time: datetime, pod: str, memory_mib: int) -> bool:
    attempt = session.find_or_open(pod, time)
    if attempt is None:
        return False
    # The patch prints the request for memory, which released versions print as 0 GPUs.
    attempt.has_tags, attempt.memory_mib = True, memory_mib
    attempt.levels.add(GRAMMAR["tags"]["level"])
    context.pods[line.node] = pod
    session.find_or_add_node(attempt, line.node)
    return True


def _note_result(attempt: KaiAttempt, node: NodeOfAttempt, line: TaggedLine) -> None:
    """Note a walk's result: the devices that passed the filter, or that were selected."""
    attempt.required_devices = line.get_number("required") or attempt.required_devices
    if "filtered" in line.fields:
        _note_members(node, "filtered", line.get_names("filtered"))
    if line.tag == "GPU_SELECT" and "groups" in line.fields:
        _note_members(node, "selected", line.get_names("groups"))


def _note_members(node: NodeOfAttempt, check: str, groups: Sequence[str]) -> None:
    for group in node.devices:
        node.note_checks(group, {check: group in groups})


def _note_device(attempt: KaiAttempt, node: NodeOfAttempt, line: TaggedLine, time: datetime) -> None:
    now = SharedDevice(
        line.get_number("allocated"), line.get_number("releasing"), line.get_number("used"), line.get_number("total"),
        cut_evidence(line.text),
    )  # fmt: skip
    previous = node.devices.get(line.group)
    if previous is None:
        node.devices = {**node.devices, line.group: now}
    else:
        _note_change(attempt, line, previous, now, time)
        for name in ("allocated_mib", "releasing_mib", "used_mib", "total_mib"):
            if getattr(previous, name) is None:
                setattr(previous, name, getattr(now, name))
        # A check that counts releasing memory is better evidence than one that doesn't.
        previous.line = now.line if now.releasing_mib else previous.line or now.line
    node.note_checks(line.group, line.get_checks())
    attempt.required_devices = line.get_number("required") or attempt.required_devices
    decides = {"GPU_FILTER": "fits", "RESOURCE_CHECK": "enough_resources"}.get(line.tag, "")
    if decides in line.fields:
        _note_fit(node, line.group, fits=line.is_true(decides))


def _note_fit(node: NodeOfAttempt, group: str, *, fits: bool) -> None:
    if fits and group not in node.fitting:
        node.fitting.append(group)
    elif not fits and group in node.fitting:
        node.fitting.remove(group)


def _note_change(
    attempt: KaiAttempt, line: TaggedLine, before: SharedDevice, after: SharedDevice, time: datetime
) -> None:
    if before.differs(after):
        lines = [text for text in (before.line, cut_evidence(line.text)) if text]
        # A copy: the numbers of ``before`` are completed afterwards.
        attempt.changes.append(DeviceChange(line.node, line.group, before.copy(), after, time, lines))


def _note_allocation(session: Session, attempt: KaiAttempt, line: TaggedLine, time: datetime) -> None:
    node = session.find_or_add_node(attempt, line.node)
    groups = line.get_names("groups")
    if "filtered" in line.fields:
        _note_members(node, "filtered", line.get_names("filtered"))
    # The line has one set of numbers: with several groups it is unknown whose they are.
    if len(groups) == 1 and "allocated" in line.fields:
        _note_device(attempt, node, TaggedLine(line.tag, line.node, groups[0], line.fields, line.text), time)
    attempt.is_allocation_over = True
    if line.is_true("success"):
        _note_members(node, "selected", groups)
        node.is_taken = attempt.is_committed = True
        attempt.chosen, attempt.groups = line.node, groups
        attempt.is_pipelined = line.is_true("pipelined")
        attempt.taking_line = cut_evidence(line.text)
    else:
        node.is_refused = node.is_gpu_refused = True
