"""A retry in the index is resolved with the attempt that it repeats; verdicts on devices with the nodes' states."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import orjson
import pytest

from api.index.attempts import attempt_queries
from api.index.attempts.attempt_queries import PodName
from api.index.attempts.attempt_reader import read_devices, read_latest_attempt, resolve_retries
from api.memory.cluster_devices import RecentStates
from schemas.answers.attempts import DeviceLog
from schemas.codec.records import encode, encode_value
from schemas.documents.attempts import build_attempt_document, build_repeated_document, read_summary
from schemas.documents.devices import build_devices_document, build_node_state_document
from schemas.events import AttemptSummarized, DevicesJudged, NodeStateChanged
from tests.support.builders.events import STARTED, a_repetition, a_summary, build_devices_judged
from tests.support.builders.node_states import EPOCH, a_node_state

INDEX_NAME = "schedulerlog-attempts-2026.11.21"
ORIGINAL = a_summary(attempt_id="1e" * 16, started_at=STARTED - timedelta(minutes=1))
RETRY = a_repetition()


def to_source(document: dict[str, Any]) -> dict[str, Any]:
    source: dict[str, Any] = orjson.loads(encode_value(document))
    return source


class Index:
    """Holds the retry and, unless it has expired, what it repeats."""

    def __init__(self, *, has_original: bool = True) -> None:
        self.sources = {RETRY.attempt_id: to_source(build_repeated_document(RETRY))}
        if has_original:
            self.sources[ORIGINAL.attempt_id] = to_source(build_attempt_document(ORIGINAL, ""))

    async def search_for(self, _alias: str, item: str, *_: object) -> dict[str, Any]:
        source = self.sources[RETRY.attempt_id]
        hit = {"_index": INDEX_NAME, "_id": RETRY.attempt_id, "_source": source, "fields": {"pod": [item]}}
        return {"hits": {"hits": [hit]}}

    async def read_documents(self, requested: list[dict[str, Any]]) -> list[dict[str, Any] | None]:
        return [self.sources.get(document["_id"]) for document in requested]


async def test_the_latest_attempt_of_a_pod_has_its_own_times_and_the_nodes_of_the_one_it_repeats() -> None:
    attempt = await read_latest_attempt(Index(), PodName("default", "llm", "deepseek-a"))  # type: ignore[arg-type]
    assert attempt is not None
    summary, original_id = attempt
    assert (summary.attempt_id, summary.started_at, original_id) == (RETRY.attempt_id, STARTED, ORIGINAL.attempt_id)
    assert summary.nodes == ORIGINAL.nodes


async def test_a_retry_whose_original_has_expired_is_left_out() -> None:
    index = Index(has_original=False)
    places = [(INDEX_NAME, RETRY.attempt_id)]
    summaries: dict[str, AttemptSummarized] = await resolve_retries(
        index,  # type: ignore[arg-type]
        places,
        index.sources,
        attempt_queries.FULL_SUMMARY,
        read_summary,
    )
    assert summaries == {}


class Devices:
    """Holds device records, and node states by the index of their day or month; ``end``: of their ids in it."""

    def __init__(self, *records: DevicesJudged, states: dict[str, Sequence[NodeStateChanged]], end: str = "") -> None:
        self.recent_states = RecentStates()
        self.states_in_memory = self.recent_states.find
        self._hits = [
            {"_id": record.id, "_source": to_source(build_devices_document(record, encode(record).value))}
            for record in records
        ]
        self._states = {
            (f"schedulerlog-node-states-{day}", state.id + end): to_source(
                build_node_state_document(state, state.observed_at)
            )
            for day, written in states.items()
            for state in written
        }

    async def search(self, index_name: str, _body: Any) -> dict[str, Any]:
        assert index_name == "schedulerlog-devices-2026.11.21,schedulerlog-devices-2026.11.00"
        return {"hits": {"hits": self._hits, "total": {"value": len(self._hits)}}}

    async def read_documents(self, requested: list[dict[str, Any]]) -> list[dict[str, Any] | None]:
        return [self._states.get((document["_index"], document["_id"])) for document in requested]


async def fetch_devices(index: Devices, *nodes: str) -> tuple[list[DeviceLog], str]:
    return await read_devices(index, "default", "0f" * 16, STARTED, nodes)  # type: ignore[arg-type]


async def test_a_state_in_memory_is_not_asked_for() -> None:
    record = build_devices_judged(["node1", "node2"], per_node=1, verdicts=["fits"], verdict=[0, 0])
    index = Devices(record, states={"2026.11.21": [a_node_state("node1", 1, memory_used_mib=[1])]})
    for state in (a_node_state("node2", 1, memory_used_mib=[2]), a_node_state("node2", 1, revision=99)):
        index.recent_states.put(state, encode(state).value)
    rows, note = await fetch_devices(index, "node1", "node2")
    # That of another revision is none that the verdict refers to.
    assert [row.memory_used_mib for row in rows] == [1, 2]
    assert note == ""


async def test_devices_have_their_verdicts_and_the_state_that_the_record_names() -> None:
    record = build_devices_judged(["node1", "node2"], per_node=2, verdicts=["fits", "NumaNotFit"], verdict=[0, 1, 1, 1])
    states = [a_node_state("node2", 2), a_node_state("node1", 2, memory_used_mib=[0, 4096])]
    rows, note = await fetch_devices(Devices(record, states={"2026.11.21": states}), "node1")
    assert [(row.node, row.uuid, row.verdict, row.memory_used_mib) for row in rows] == [
        ("node1", "GPU-node1-0", "fits", 0),
        ("node1", "GPU-node1-1", "NumaNotFit", 4096),
    ]
    assert (rows[0].container, rows[0].model, rows[0].memory_total_mib) == ("worker", "NVIDIA A100-SXM4-80GB", 81920)
    assert note == ""


@pytest.mark.parametrize(
    ("period", "end"),
    [("2026.11.20", ""), ("2026.11.22", ""), ("2026.11.00", "@20"), ("2026.11.00", "@21"), ("2026.11.00", "@22")],
)
async def test_the_state_may_be_written_the_day_before_or_at_midnight(period: str, end: str) -> None:
    index = Devices(build_devices_judged(["node1"], per_node=1), states={period: [a_node_state(devices=1)]}, end=end)
    ((row,), note) = await fetch_devices(index, "node1")
    assert (row.uuid, note) == ("GPU-node1-0", "")


async def test_a_state_that_is_not_in_the_index_is_named_and_the_verdict_is_shown() -> None:
    record = build_devices_judged(
        ["node1", "node2"], per_node=1, revision=[5, 6], verdicts=["CardCordoned"], verdict=[0, 0]
    )
    other_revision = a_node_state("node2", 1, revision=4)
    index = Devices(record, states={"2026.11.21": [a_node_state("node1", 1, revision=5), other_revision]})
    rows, note = await fetch_devices(index, "node1", "node2")
    assert [(row.uuid, row.verdict, row.model, row.memory_used_mib) for row in rows] == [
        ("GPU-node1-0", "CardCordoned", "NVIDIA A100-SXM4-80GB", 1024),
        ("", "CardCordoned", "", None),
    ]
    assert note.endswith(f"past their retention): default/hami-scheduler/node2/state/{EPOCH}/6")


async def test_a_node_of_which_the_source_reports_no_state_is_noted_too() -> None:
    index = Devices(build_devices_judged(["node1"], per_node=1, revision=[-1]), states={})
    ((row,), note) = await fetch_devices(index, "node1")
    assert (row.uuid, row.slots_used) == ("", None)
    assert note == "the verdicts are shown without their devices where the source reports no state of the node"
