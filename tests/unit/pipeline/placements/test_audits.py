"""Audits after a restart, and the binds that they find to be unreported."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import orjson

from engine.summaries.occupancy import Facts
from engine.summaries.pod_facts import BindFact, Fact, PodSighting
from pipeline.placements.audit_queries import BIND_REPORT_TIMEOUT
from pipeline.placements.audits import PlacementAudits
from pipeline.placements.occupancy_queries import PAGE
from pipeline.sinks.msearch import Search
from schemas.codec.records import encode_value, format_rfc3339
from schemas.documents.observations import Observed, build_observation_document
from schemas.documents.placements import build_placement_document
from schemas.events import DeviceAllocation, PodRef
from schemas.indices import ATTEMPTS, OBSERVATIONS, OCCUPANCY
from tests.support.builders.placements import a_check, a_pod, a_problem, a_registration, a_sighting, to_time

BOUND, LONG_AFTER = to_time(1), to_time(1_000)


class FakeIndex:
    """Holds documents by alias, and answers each search with all of its alias: filtering is OpenSearch's part,
    and tested there."""

    def __init__(self) -> None:
        self.hits: dict[str, list[dict[str, Any]]] = {}
        self.searches: list[str] = []

    def put(self, alias: str, source: dict[str, Any]) -> None:
        hits = self.hits.setdefault(alias, [])
        stored = orjson.loads(encode_value(source))
        hits.append({"_index": alias, "_id": str(len(hits)), "_version": 1, "_source": stored, "sort": [len(hits)]})

    def put_placement(self, pod: PodRef, *facts: Fact) -> None:
        for derived in Facts("default", pod.namespace, pod.name, facts).derive_placements():
            self.put(
                OCCUPANCY.alias,
                build_placement_document(derived.placement, {"binds": derived.binds, "sights": derived.sights}),
            )

    def put_observation(self, event: Observed) -> None:
        self.put(OBSERVATIONS.alias, build_observation_document(event, "digest"))

    def put_attempt(self, **fields: Any) -> None:
        plain = {
            "@timestamp": format_rfc3339(to_time(0)), "ended_at": format_rfc3339(BOUND), "attempt_id": "a1",
            "namespace": "ml",
            "cluster": "default",
            "pod": "trainer", "pod_uid": "uid-trainer", "scheduler": "hami-scheduler", "status": "pending",
            "chosen": "node1", "picked_devices": ["GPU-node1-0"], "sources": ["scheduler"],
        }  # fmt: skip
        self.put(ATTEMPTS.alias, plain | fields)

    async def search(self, searches: Sequence[Search]) -> list[list[dict[str, Any]]]:
        answers = []
        for header, body in searches:
            (alias,) = header["index"]
            self.searches.append(alias)
            start = body.get("search_after", [-1])[0] + 1
            answers.append(self.hits.get(alias, [])[start : start + body["size"]])
        return answers


def a_bind(node: str = "node1", **fields: Any) -> BindFact:
    plain: dict[str, Any] = {
        "attempt_id": "a1",
        "scheduler": "hami-scheduler",
        "started_at": to_time(0),
        "uid": "uid-trainer",
    }
    return BindFact(**(plain | {"node": node, "time": BOUND, "bound": True, "version": 1} | fields))


async def find_names(audits: PlacementAudits) -> list[str]:
    return [finding.finding for finding in await audits.find(LONG_AFTER)]


async def test_what_was_written_but_not_judged_before_a_restart_is_judged_after_it() -> None:
    index = FakeIndex()
    index.put_placement(a_pod(), a_bind())
    index.put_observation(a_sighting(70, ""))
    index.put_observation(a_check(-10, a_problem()))
    audits = PlacementAudits(None, index)
    await audits.load(LONG_AFTER)
    # Neither the devices nor the requests of this bind are known, so its node is not audited.
    assert await find_names(audits) == ["BoundNowhere"]
    assert await find_names(audits) == []


async def test_the_earlier_checks_of_a_node_are_loaded_once() -> None:
    index = FakeIndex()
    index.put_observation(a_check(-10, a_problem()))
    index.put_observation(a_registration(-10, {"GPU-1": 10}))
    index.put_placement(a_pod(), a_bind(held=(DeviceAllocation(uuid="GPU-1", container="main"),)))
    audits = PlacementAudits(None, index)
    await audits.load(LONG_AFTER)
    assert await find_names(audits) == ["StaleHandshake"]
    searches = index.searches.count(OBSERVATIONS.alias)
    index.put_placement(a_pod("other"), a_bind(attempt_id="a2", uid="uid-other"))
    await audits.load(LONG_AFTER)
    await find_names(audits)
    assert index.searches.count(OBSERVATIONS.alias) == searches + 1


async def test_more_than_a_page_is_loaded() -> None:
    index = FakeIndex()
    for number in range(PAGE + 10):
        index.put_placement(a_pod(f"pod{number}"), a_bind(attempt_id=f"a{number}", uid=f"uid-pod{number}"))
        index.put_observation(a_sighting(70, "", f"pod{number}"))
    audits = PlacementAudits(None, index)
    await audits.load(LONG_AFTER)
    assert len(await find_names(audits)) == PAGE + 10


async def test_a_pod_on_its_chosen_node_without_a_reported_bind_is_found_after_five_minutes() -> None:
    index = FakeIndex()
    index.put_attempt()
    index.put_placement(a_pod(), PodSighting("uid-trainer", "node1", "Running", to_time(5)))
    audits = PlacementAudits(None, index)
    assert await audits.find(to_time(5) + BIND_REPORT_TIMEOUT) == []
    (finding,) = await audits.find(to_time(66) + BIND_REPORT_TIMEOUT)
    assert (finding.finding, finding.attempt_id, finding.node) == ("BindUnreported", "a1", "node1")
    assert finding.found_at == BOUND
    assert finding.evidence[1].startswith(a_sighting(5).id)


async def test_a_bind_of_another_attempt_another_node_or_an_attempt_from_a_log_is_not_a_finding() -> None:
    sight = PodSighting("uid-trainer", "node1", "Running", to_time(5))
    for facts, fields in (
        ([sight, a_bind(attempt_id="another", started_at=to_time(2), time=to_time(3))], {}),
        ([PodSighting("uid-trainer", "node2", "Running", to_time(5))], {}),
        ([sight], {"sources": ["hami-log"]}),
    ):
        index = FakeIndex()
        index.put_attempt(**fields)
        index.put_placement(a_pod(), *facts)
        assert await find_names(PlacementAudits(None, index)) == []


async def test_attempts_without_a_bind_are_searched_for_once_a_minute() -> None:
    index = FakeIndex()
    audits = PlacementAudits(None, index)
    for second in range(120):
        await audits.find(LONG_AFTER + timedelta(seconds=second))
    assert index.searches.count(ATTEMPTS.alias) == 2


async def test_a_document_without_an_attempt_or_a_uid_is_passed_over() -> None:
    index = FakeIndex()
    index.put_attempt(attempt_id=None)
    index.put_attempt(pod_uid=None)
    assert await find_names(PlacementAudits(None, index)) == []
