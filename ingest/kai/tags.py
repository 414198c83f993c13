"""The six tags of one operator's patch (v0.9.4): ``[GPU_FILTER]``, ``[GPU_FIT_CHECK]``, ``[IDLE_CHECK]``, …

Only the first line names the pod that the lines behind it are about; they follow by node. The document that describes
the patch gives the layout of that one line and the names of the numbers in the others: they are looked up by name, in
whatever order and spelling (``Total=40900``, ``TotalMemory: <40900 MB>``).
"""

import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from ingest.kai.attempt import Attempt, Card, Change, JudgedNode, evidence
from ingest.kai.grammar import GRAMMAR
from ingest.kai.session import Session

TAGS: Final = ("[GPU_FILTER]", "[GPU_FIT_CHECK]", "[IDLE_CHECK]", "[RESOURCE_CHECK]", "[GPU_ALLOCATE]", "[GPU_SELECT]")
FIRST_BYTES: Final = tuple(tag.encode() for tag in TAGS)
FIRST_WORDS: Final = frozenset(tag.encode()[:-1] for tag in TAGS)

_LINE: Final = re.compile(r"\[(?P<tag>[A-Z_]+)\] (?:Node <(?P<node>[^>]*)>:? ?)?(?P<rest>.*)", re.DOTALL)
_CARD: Final = re.compile(r"GPU(?: group)? <(?P<group>[^>]*)>")
_FIELD: Final = re.compile(r"(?P<name>[A-Za-z][A-Za-z ]*?) ?[=:] ?<?(?P<value>-?\d+|true|false|\[[^\]]*\])")
_BEGINS: Final = re.compile(GRAMMAR["tags"]["filter_begins"])
_POD: Final = re.compile(GRAMMAR["tags"]["allocated"])
_NAMES: Final = {name: field for field, names in GRAMMAR["tags"]["names"].items() for name in names}


@dataclass(slots=True)
class TagFocus:
    """Whose cards the tagged lines are about, by node."""

    pods: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Tagged:
    tag: str
    node: str
    group: str
    fields: dict[str, str]
    text: str

    def number(self, name: str) -> int | None:
        value = self.fields.get(name, "")
        return int(value[:15]) if value.lstrip("-").isdigit() else None

    def is_true(self, name: str) -> bool:
        return self.fields.get(name) == "true"


def tagged(text: str) -> Tagged | None:
    """A tagged line's fields by our names; None for a line that is none of the six."""
    line = _LINE.match(text)
    if line is None or f"[{line['tag']}]" not in TAGS:
        return None
    card = _CARD.search(line["rest"])
    rest = line["rest"][card.end() :] if card else line["rest"]
    # "UsedMemory != 0" is a condition with a truth of its own, not a number of the card.
    pairs = _FIELD.finditer(re.sub(r"!= ?0", "NotZero", rest))
    fields: dict[str, str] = {}
    for pair in pairs:
        name = _NAMES.get(re.sub(r"[^a-z]", "", pair["name"].lower()))
        if name:
            fields.setdefault(name, pair["value"])
    return Tagged(line["tag"], line["node"] or "", card["group"] if card else "", fields, text)


def begins(said: Tagged) -> bool:
    """Does the walk over a node's cards begin here?"""
    return _BEGINS.search(said.text) is not None


def pod_of(said: Tagged) -> str:
    """Empty where the line names no pod."""
    found = _POD.search(said.text)
    return found["pod"] if found else ""


def take(session: Session, focus: TagFocus, said: Tagged, time: datetime) -> bool:
    """Did the line add to what is known?"""
    if begin := _BEGINS.search(said.text):
        return _begin(session, focus, said, time, begin["pod"], int(begin["memory"][:12]))
    attempt = session.attempts.get(pod_of(said) or focus.pods.get(said.node, ""))
    if attempt is None:
        return False
    attempt.last = max(attempt.last, time)
    if said.tag == "GPU_ALLOCATE":
        _allocated(session, attempt, said, time)
    elif said.group:
        _card(attempt, session.node(attempt, said.node), said, time)
    return True


def _begin(session: Session, focus: TagFocus, said: Tagged, time: datetime, pod: str, memory_mib: int) -> bool:
    attempt = session.attempt(pod, time)
    if attempt is None:
        return False
    attempt.is_told_by_tags, attempt.memory_mib = True, memory_mib
    attempt.levels.add(GRAMMAR["tags"]["level"])
    focus.pods[said.node] = pod
    session.node(attempt, said.node)
    return True


def _card(attempt: Attempt, node: JudgedNode, said: Tagged, time: datetime) -> None:
    now = Card(
        said.number("allocated"), said.number("releasing"), said.number("used"), said.number("total"),
        evidence(said.text),
    )  # fmt: skip
    known = node.cards.get(said.group)
    if known is None:
        node.cards = {**node.cards, said.group: now}
    else:
        _note_change(attempt, said, known, now, time)
        for name in ("allocated_mib", "releasing_mib", "used_mib", "total_mib"):
            if getattr(known, name) is None:
                setattr(known, name, getattr(now, name))
        # The check that counts releasing memory is the better proof.
        known.line = now.line if now.releasing_mib else known.line or now.line
    if "fits" in said.fields and said.tag in ("GPU_FILTER", "RESOURCE_CHECK"):
        _note_fit(node, said.group, said.is_true("fits"))


def _note_fit(node: JudgedNode, group: str, fits: bool) -> None:
    if fits and group not in node.fitting:
        node.fitting.append(group)
    elif not fits and group in node.fitting:
        node.fitting.remove(group)


def _note_change(attempt: Attempt, said: Tagged, before: Card, after: Card, time: datetime) -> None:
    pairs = (before.allocated_mib, after.allocated_mib), (before.releasing_mib, after.releasing_mib)
    if any(old is not None and new is not None and old != new for old, new in pairs):
        lines = [line for line in (before.line, evidence(said.text)) if line]
        attempt.changes.append(Change(said.node, said.group, before.copy(), after, time, lines))


def _allocated(session: Session, attempt: Attempt, said: Tagged, time: datetime) -> None:
    node = session.node(attempt, said.node)
    groups = said.fields.get("groups", "").strip("[]").replace(",", " ").split()
    if len(groups) == 1 and "allocated" in said.fields:
        _card(attempt, node, Tagged(said.tag, said.node, groups[0], said.fields, said.text), time)
    attempt.is_allocation_over = True
    if said.is_true("success"):
        node.is_taken = attempt.is_committed = True
        attempt.chosen, attempt.groups = said.node, groups
        attempt.is_pipelined = said.is_true("pipelined")
        attempt.taking_line = evidence(said.text)
    else:
        node.is_refused = node.is_gpu_refused = True
