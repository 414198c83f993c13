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

from ingest.readers.kai.attempt import DeviceChange, JudgedNode, KaiAttempt
from ingest.readers.kai.devices import SharedDevice, evidence
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

    def number(self, name: str) -> int | None:
        value = self.fields.get(name, "")
        return int(value[:15]) if value.lstrip("-").isdigit() else None

    def is_true(self, name: str) -> bool:
        return self.fields.get(name) == "true"

    def names(self, name: str) -> list[str]:
        """The entries of a list, as ``[grp-0 grp-1]``."""
        return _LIST.findall(self.fields.get(name, ""))

    def checks(self) -> dict[str, bool]:
        """What the line says was checked of its device, by name."""
        values = {name: self.fields.get(name) for name in _CHECKS}
        found = {name: value == "true" for name, value in values.items() if value in ("true", "false")}
        if self.tag == "GPU_SELECT" and (kind := _KIND.search(self.text)):
            found["whole_device"] = kind["whole"] is not None
        return found


def parse_tagged(text: str) -> TaggedLine | None:
    """A tagged line with its fields under our names; None for a line with none of the six tags."""
    line = _LINE.match(text)
    if line is None or f"[{line['tag']}]" not in TAGS:
        return None
    device = _DEVICE.search(line["rest"])
    rest = line["rest"][: device.start()] + line["rest"][device.end() :] if device else line["rest"]
    # "UsedMemory != 0: true" is a condition, not the number of a field: it must not be read as UsedMemory.
    pairs = _FIELD.finditer(re.sub(r"!= ?0", "NotZero", rest))
    fields: dict[str, str] = {}
    for pair in pairs:
        if name := _name_of(pair["name"]):
            fields.setdefault(_OF_TAG.get(line["tag"], {}).get(name, name), pair["value"])
    return TaggedLine(line["tag"], line["node"] or "", device["group"] if device else "", fields, text)


def _name_of(text: str) -> str:
    """Our name of a field, also behind other words (``shared EnoughIdle``); empty where there is none."""
    words = text.lower().split(" ")
    spelled = (re.sub(r"[^a-z]", "", "".join(words[start:])) for start in range(len(words)))
    return next((_NAMES[name] for name in spelled if name in _NAMES), "")


def begins_walk(line: TaggedLine) -> bool:
    """True for the first line of a walk over a node's devices."""
    return _FIRST_LINE.search(line.text) is not None


def pod_of(line: TaggedLine) -> str:
    """Empty where the line names no pod."""
    found = _POD.search(line.text)
    return found["pod"] if found else ""


def apply(session: Session, context: TagContext, line: TaggedLine, time: datetime) -> bool:
    """Add what the line says to the session; False where no attempt is known that it could be about."""
    if first := _FIRST_LINE.search(line.text):
        return _begin(session, context, line, time, first["pod"], int(first["memory"][:12]))
    attempt = session.attempts.get(pod_of(line) or context.pods.get(line.node, ""))
    if attempt is None:
        return False
    attempt.last_line_at = max(attempt.last_line_at, time)
    if line.tag == "GPU_ALLOCATE":
        _allocated(session, attempt, line, time)
    elif line.group:
        _device(attempt, session.node(attempt, line.node), line, time)
    else:
        _whole_node(attempt, session.node(attempt, line.node), line)
    return True


def _begin(session: Session, context: TagContext, line: TaggedLine, time: datetime, pod: str, memory_mib: int) -> bool:
    attempt = session.attempt(pod, time)
    if attempt is None:
        return False
    # The patch prints the request for memory, which released versions print as 0 GPUs.
    attempt.has_tags, attempt.memory_mib = True, memory_mib
    attempt.levels.add(GRAMMAR["tags"]["level"])
    context.pods[line.node] = pod
    session.node(attempt, line.node)
    return True


def _whole_node(attempt: KaiAttempt, node: JudgedNode, line: TaggedLine) -> None:
    """A line about a walk's result: the devices that passed the filter, or those that were selected."""
    attempt.required_devices = line.number("required") or attempt.required_devices
    if "filtered" in line.fields:
        _note_members(node, "filtered", line.names("filtered"))
    if line.tag == "GPU_SELECT" and "groups" in line.fields:
        _note_members(node, "selected", line.names("groups"))


def _note_members(node: JudgedNode, check: str, groups: Sequence[str]) -> None:
    for group in node.devices:
        node.note_checks(group, {check: group in groups})


def _device(attempt: KaiAttempt, node: JudgedNode, line: TaggedLine, time: datetime) -> None:
    now = SharedDevice(
        line.number("allocated"), line.number("releasing"), line.number("used"), line.number("total"),
        evidence(line.text),
    )  # fmt: skip
    known = node.devices.get(line.group)
    if known is None:
        node.devices = {**node.devices, line.group: now}
    else:
        _note_change(attempt, line, known, now, time)
        for name in ("allocated_mib", "releasing_mib", "used_mib", "total_mib"):
            if getattr(known, name) is None:
                setattr(known, name, getattr(now, name))
        # A check that counts releasing memory is better evidence than one that doesn't.
        known.line = now.line if now.releasing_mib else known.line or now.line
    node.note_checks(line.group, line.checks())
    attempt.required_devices = line.number("required") or attempt.required_devices
    decides = {"GPU_FILTER": "fits", "RESOURCE_CHECK": "enough_resources"}.get(line.tag, "")
    if decides in line.fields:
        _note_fit(node, line.group, fits=line.is_true(decides))


def _note_fit(node: JudgedNode, group: str, *, fits: bool) -> None:
    if fits and group not in node.fitting:
        node.fitting.append(group)
    elif not fits and group in node.fitting:
        node.fitting.remove(group)


def _note_change(
    attempt: KaiAttempt, line: TaggedLine, before: SharedDevice, after: SharedDevice, time: datetime
) -> None:
    if before.differs(after):
        lines = [text for text in (before.line, evidence(line.text)) if text]
        # A copy: the numbers of ``before`` are completed afterwards.
        attempt.changes.append(DeviceChange(line.node, line.group, before.copy(), after, time, lines))


def _allocated(session: Session, attempt: KaiAttempt, line: TaggedLine, time: datetime) -> None:
    node = session.node(attempt, line.node)
    groups = line.names("groups")
    if "filtered" in line.fields:
        _note_members(node, "filtered", line.names("filtered"))
    # The line has one set of numbers: with several groups it is unknown whose they are.
    if len(groups) == 1 and "allocated" in line.fields:
        _device(attempt, node, TaggedLine(line.tag, line.node, groups[0], line.fields, line.text), time)
    attempt.is_allocation_over = True
    if line.is_true("success"):
        _note_members(node, "selected", groups)
        node.is_taken = attempt.is_committed = True
        attempt.chosen, attempt.groups = line.node, groups
        attempt.is_pipelined = line.is_true("pipelined")
        attempt.taking_line = evidence(line.text)
    else:
        node.is_refused = node.is_gpu_refused = True
