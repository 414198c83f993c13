"""The states in the ledger: each was accepted before the verdicts that name it, and is visible as it was accepted."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from schemas.json_types import Json
from tests.chaos.ledger import DEVICES, Entry, Verdict

STATE = "io.schedulerlog.node.state.changed.v1"


SHOWN_NODE = "node1"
"""Of this node the API is asked for single devices."""


class SchedulerRun(NamedTuple):
    """One run of a scheduler process: revisions are counted within it."""

    scheduler: str
    epoch: int


@dataclass(frozen=True, slots=True)
class SeenStates:
    """What is visible of states; those of other runs of the scheduler may be among them."""

    published: Mapping[str, Sequence[bytes]] = field(default_factory=dict)
    """By ce_id, every value on the topic."""
    documents: Sequence[tuple[str, str, Json]] = ()
    """Index, id and state of every document."""
    dead_letters: Sequence[str] = ()
    """The ce_id of every dead letter that was a state."""
    shown: Mapping[str, Sequence[tuple[str, str]]] = field(default_factory=dict)
    """By the key of a pod, UUID and verdict of the devices of ``SHOWN_NODE`` in the API's answer."""


class Reference(NamedTuple):
    """A node of a record of verdicts, with the state that it names."""

    state: str
    node: str
    entry: Entry
    started_at: datetime
    rows: Sequence[tuple[int, str]]
    """Position in the state, and the verdict."""

    @property
    def devices(self) -> int:
        """At least so many devices the state has to have."""
        return 1 + max(device for device, _ in self.rows)


def judging_runs(decisions: Sequence[Entry]) -> set[SchedulerRun]:
    """Those that judged."""
    return {SchedulerRun(value["scheduler"], value["epoch"]) for _, value in _verdicts(decisions)}


def compare(
    accepted: Sequence[Entry], decisions: Sequence[Entry], seen: SeenStates, verdict: Verdict, *, may_be_more: bool
) -> None:
    """Add every difference in the states of the scheduler runs that made ``decisions``.

    ``accepted`` is the whole ledger. ``may_be_more``: a scheduler was killed, perhaps before it noted what its spool
    had accepted.
    """
    own = judging_runs(decisions)
    states = [entry for entry in accepted if entry.type == STATE and _run_of(entry.id) in own]
    _references(states, list(_named(decisions)), seen, verdict)
    _visible(states, seen, verdict)
    _shown(states, decisions, seen, verdict)
    known = {entry.id for entry in states}
    found = {*seen.published, *(name for _, name, _ in seen.documents)}
    if not may_be_more:
        verdict.extra += [f"state {name}" for name in sorted(found - known) if _run_of(name) in own]
    verdict.different += [f"state {name} is a dead letter" for name in seen.dead_letters if _run_of(name) in own]


def _references(states: Sequence[Entry], references: Sequence[Reference], seen: SeenStates, verdict: Verdict) -> None:
    """Every verdict's state was accepted before it, has its devices, and is in an index where readers look."""
    first = {entry.id: entry for entry in reversed(states)}
    indexed = {(index, name) for index, name, _ in seen.documents}
    for reference in references:
        state, entry = reference.state, reference.entry
        if (known := first.get(state)) is None:
            verdict.missing.append(f"state {state}, which record {entry.id} names")
            continue
        if known.place > entry.place:
            verdict.different.append(f"state {state} was accepted after record {entry.id}, which names it")
        if reference.devices > (count := len(json.loads(known.value)["uuid"])):
            verdict.different.append(
                f"record {entry.id} names device {reference.devices - 1} of {count} of state {state}"
            )
        if not any((index, state) in indexed for index in _indices_near(reference.started_at)):
            verdict.missing.append(f"document of state {state} near the day of record {entry.id}")


def _visible(states: Sequence[Entry], seen: SeenStates, verdict: Verdict) -> None:
    """Each state is on the topic and in the index, and says the same wherever and however often it is there."""
    contents: dict[str, set[str]] = {}
    for entry in states:
        contents.setdefault(entry.id, set()).add(_content(json.loads(entry.value)))
    documents = [(name, state) for _, name, state in seen.documents]
    verdict.missing += [f"state {name}" for name in contents.keys() - seen.published.keys()]
    verdict.missing += [f"document of state {name}" for name in contents.keys() - dict(documents).keys()]
    published = [(name, json.loads(value)) for name, values in seen.published.items() for value in values]
    verdict.different += [f"state {name} has two contents" for name, known in contents.items() if len(known) > 1]
    for what, found in (("state", published), ("document of state", documents)):
        verdict.different += [
            f"{what} {name}" for name, state in found if name in contents and _content(state) not in contents[name]
        ]


def _shown(states: Sequence[Entry], decisions: Sequence[Entry], seen: SeenStates, verdict: Verdict) -> None:
    """Of the latest attempt of a pod, the API gives every verdict on a device with the device's UUID."""
    devices = {entry.id: json.loads(entry.value)["uuid"] for entry in states}
    latest = {entry.key: entry.attempt for entry, _ in _verdicts(decisions)}
    judged: dict[str, list[tuple[str, str]]] = {pod: [] for pod in seen.shown}
    for reference in _named(decisions):
        pod = reference.entry.key
        if reference.node == SHOWN_NODE and pod in judged and reference.entry.attempt == latest[pod]:
            # A state that was never accepted is reported above.
            uuids = dict(enumerate(devices.get(reference.state, [])))
            judged[pod] += [(uuids.get(device, ""), word) for device, word in reference.rows]
    verdict.different += [
        f"devices of {pod} in the API" for pod, rows in judged.items() if list(seen.shown[pod]) != rows
    ]


def _named(decisions: Sequence[Entry]) -> Iterator[Reference]:
    for entry, value in _verdicts(decisions):
        positions, words = (
            iter(value.get("device", ())),
            (value["verdicts"][ord(code) - 48] for code in value["verdict"]),
        )
        started_at = datetime.fromisoformat(value["started_at"])
        for node, revision, count in zip(
            value["nodes"], value["revision"], value["rows"] or value["devices"], strict=True
        ):
            state = f"{value['cluster']}/{value['scheduler']}/{node}/state/{value['epoch']}/{revision}"
            rows = [(next(positions, row), next(words)) for row in range(count)]
            # Without rows the node offers nothing, and needs no state.
            if rows:
                yield Reference(state, node, entry, started_at, rows)


def _verdicts(decisions: Sequence[Entry]) -> Iterator[tuple[Entry, Json]]:
    return ((entry, json.loads(entry.value)) for entry in decisions if entry.type == DEVICES)


def _run_of(state: str) -> SchedulerRun:
    _, scheduler, _, _, epoch, _ = state.rsplit("/", 5)
    return SchedulerRun(scheduler, int(epoch))


def _content(state: Json) -> str:
    # A state that is written again has another time, and nothing else may be other.
    return json.dumps({name: value for name, value in state.items() if name != "observed_at"}, sort_keys=True)


def _indices_near(started_at: datetime) -> Iterator[str]:
    """Where a reader looks for the states of an attempt: on its day, on the day before, and on that after, because an
    attempt may last past midnight."""
    for days in (-1, 0, 1):
        yield f"schedulerlog-node-states-{started_at + timedelta(days=days):%Y.%m.%d}"
