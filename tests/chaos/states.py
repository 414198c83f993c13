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
"""Node whose single devices the API is asked for."""


class SchedulerRun(NamedTuple):
    """One run of a scheduler process: revisions are counted within it."""

    scheduler: str
    epoch: int


@dataclass(frozen=True, slots=True)
class SeenStates:
    """Everything that is visible of states; those of other runs of the scheduler may be among them."""

    published: Mapping[str, Sequence[bytes]] = field(default_factory=dict)
    """By ce_id, every value on the topic."""
    documents: Sequence[tuple[str, str, Json]] = ()
    """Index, id and state of every document."""
    dead_letters: Sequence[str] = ()
    """The ce_id of every dead letter that was a state."""
    device_rows: Mapping[str, Sequence[tuple[str, str]]] = field(default_factory=dict)
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


def list_judging_runs(decisions: Sequence[Entry]) -> set[SchedulerRun]:
    """List the runs of the scheduler that made ``decisions``."""
    return {SchedulerRun(value["scheduler"], value["epoch"]) for _, value in _list_verdicts(decisions)}


def compare(
    accepted: Sequence[Entry],
    decisions: Sequence[Entry],
    seen: SeenStates,
    verdict: Verdict,
    *,
    accepted_meanwhile: Sequence[Entry] = (),
    may_be_more: bool,
) -> None:
    """Add every difference in the states of the scheduler runs that made ``decisions``.

    ``accepted`` is the whole ledger before ``seen`` was read, ``accepted_meanwhile`` the ledger after it.
    ``may_be_more``: a scheduler was killed, perhaps before it noted what its spool had accepted.
    """
    runs = list_judging_runs(decisions)
    states = [entry for entry in accepted if entry.type == STATE and _run_of(entry.id) in runs]
    _check_references(states, list(_list_references(decisions)), seen, verdict)
    _check_visible(states, seen, verdict)
    _check_answers(states, decisions, seen, verdict)
    accepted_ids = {entry.id for entry in (*states, *accepted_meanwhile)}
    visible_ids = {*seen.published, *(name for _, name, _ in seen.documents)}
    if not may_be_more:
        verdict.extra += [f"state {name}" for name in sorted(visible_ids - accepted_ids) if _run_of(name) in runs]
    verdict.different += [f"state {name} is a dead letter" for name in seen.dead_letters if _run_of(name) in runs]


def _check_references(
    states: Sequence[Entry], references: Sequence[Reference], seen: SeenStates, verdict: Verdict
) -> None:
    """Check that a verdict's state was accepted before it, has its devices, and is in an index where readers look."""
    first = {entry.id: entry for entry in reversed(states)}
    indexed = {(index, name) for index, name, _ in seen.documents}
    for reference in references:
        state, entry = reference.state, reference.entry
        if (first_entry := first.get(state)) is None:
            verdict.missing.append(f"state {state}, which record {entry.id} names")
            continue
        if first_entry.number > entry.number:
            verdict.different.append(f"state {state} was accepted after record {entry.id}, which names it")
        if reference.devices > (count := len(json.loads(first_entry.value)["uuid"])):
            verdict.different.append(
                f"record {entry.id} names device {reference.devices - 1} of {count} of state {state}"
            )
        if not any((index, state) in indexed for index in _list_indices(reference.started_at)):
            verdict.missing.append(f"document of state {state} near the day of record {entry.id}")


def _check_visible(states: Sequence[Entry], seen: SeenStates, verdict: Verdict) -> None:
    """Check that each state is on the topic and in the index, with the same content in every copy."""
    contents: dict[str, set[str]] = {}
    for entry in states:
        contents.setdefault(entry.id, set()).add(_get_content(json.loads(entry.value)))
    documents = [(name, state) for _, name, state in seen.documents]
    verdict.missing += [f"state {name}" for name in contents.keys() - seen.published.keys()]
    verdict.missing += [f"document of state {name}" for name in contents.keys() - dict(documents).keys()]
    published = [(name, json.loads(value)) for name, values in seen.published.items() for value in values]
    verdict.different += [f"state {name} has two contents" for name, copies in contents.items() if len(copies) > 1]
    for what, contents_by_name in (("state", published), ("document of state", documents)):
        verdict.different += [
            f"{what} {name}"
            for name, state in contents_by_name
            if name in contents and _get_content(state) not in contents[name]
        ]


def _check_answers(states: Sequence[Entry], decisions: Sequence[Entry], seen: SeenStates, verdict: Verdict) -> None:
    """Check that the API gives the verdicts of a pod's latest attempt with the UUIDs of the devices."""
    devices = {entry.id: json.loads(entry.value)["uuid"] for entry in states}
    latest = {entry.key: entry.attempt for entry, _ in _list_verdicts(decisions)}
    judged: dict[str, list[tuple[str, str]]] = {pod: [] for pod in seen.device_rows}
    for reference in _list_references(decisions):
        pod = reference.entry.key
        if reference.node == SHOWN_NODE and pod in judged and reference.entry.attempt == latest[pod]:
            # A state that was never accepted is reported above.
            uuids = dict(enumerate(devices.get(reference.state, [])))
            judged[pod] += [(uuids.get(device, ""), word) for device, word in reference.rows]
    verdict.different += [
        f"devices of {pod} in the API" for pod, rows in judged.items() if list(seen.device_rows[pod]) != rows
    ]


def _list_references(decisions: Sequence[Entry]) -> Iterator[Reference]:
    for entry, value in _list_verdicts(decisions):
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


def _list_verdicts(decisions: Sequence[Entry]) -> Iterator[tuple[Entry, Json]]:
    return ((entry, json.loads(entry.value)) for entry in decisions if entry.type == DEVICES)


def _run_of(state: str) -> SchedulerRun:
    _, scheduler, _, _, epoch, _ = state.rsplit("/", 5)
    return SchedulerRun(scheduler, int(epoch))


def _get_content(state: Json) -> str:
    # A state that is written again has another time, and nothing else may be other.
    return json.dumps({name: value for name, value in state.items() if name != "observed_at"}, sort_keys=True)


def _list_indices(started_at: datetime) -> Iterator[str]:
    """List the indices with the states of an attempt: of its day, the day before, and the day after, because an
    attempt may last past midnight."""
    for days in (-1, 0, 1):
        yield f"schedulerlog-node-states-{started_at + timedelta(days=days):%Y.%m.%d}"
