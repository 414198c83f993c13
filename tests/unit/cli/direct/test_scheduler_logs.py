"""The scheduler's log as a rung of a live answer: what HAMi decided, and where the judge differs now."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from cli.client.problems import Problem
from cli.direct.reader import ObjectReader
from cli.direct.transport import DirectTransport
from schemas.json_types import Json
from tests.support.builders.hami_lines import an_event, write_fit, write_request, write_start
from tests.support.fakes.logging_cluster import LOG, POD, SCHEDULER, LoggingCluster


def ask(log: bytes | None, pods: list[Json]) -> tuple[Json, list[str], LoggingCluster]:
    server, notes = LoggingCluster(log, pods), list[str]()
    answer = DirectTransport(ObjectReader(server.fetch), lambda: "ml", notes.append).get(
        "/namespaces/ml/pods/trainer/diagnosis"
    )
    assert isinstance(answer, dict), answer
    return answer, notes, server


def test_what_the_scheduler_decided_is_the_answer_and_the_judges_difference_is_named() -> None:
    answer, notes, server = ask(LOG, [POD, SCHEDULER])
    assert answer["obstacle"]["code"] == "CardInsufficientMemory"
    assert {node["name"] for node in answer["nodes"]} == {"n0", "n1"}
    # Both devices are free now.
    (text,) = [note for note in notes if "kube-system/hami-scheduler-5d4" in note]
    assert "2 nodes differ: n0, n1" in text
    assert server.options["container"] == ["vgpu-scheduler-extender"]
    assert {"tailLines", "limitBytes", "sinceSeconds"} <= server.options.keys()


def test_a_log_that_may_not_be_read_is_a_further_rung() -> None:
    _, notes, _ = ask(None, [POD, SCHEDULER])
    assert any("pods/log in kube-system" in note for note in notes)


def test_a_log_without_the_pod_is_named_and_adds_nothing() -> None:
    answer, notes, _ = ask(b"no line of a scheduler", [POD, SCHEDULER])
    assert any("has no attempt of the pod" in note for note in notes)
    assert answer["nodes"]


@pytest.mark.parametrize("namespace", ["ml"])
def test_a_scheduler_in_the_pods_namespace_is_not_believed(namespace: str) -> None:
    disguised = {**SCHEDULER, "metadata": {"name": "hami-scheduler-5d4", "namespace": namespace}}
    _, notes, server = ask(LOG, [POD, disguised])
    assert not server.options
    assert len(notes) == 1


def test_both_verdicts_of_a_node_on_which_they_differ_are_in_the_answer() -> None:
    answer, _, _ = ask(LOG, [POD, SCHEDULER])
    assert [difference["node"] for difference in answer["differences"]] == ["n0", "n1"]
    first = answer["differences"][0]
    assert (first["scheduler"]["status"], first["judged"]["status"]) == ("failed", "passed")
    assert "CardInsufficientMemory" in first["scheduler"]["containers"][0]["reason"]


def test_without_a_log_nothing_differs() -> None:
    answer, _, _ = ask(b"no line of a scheduler", [POD, SCHEDULER])
    assert answer["differences"] == []


CHOSEN = an_event("FilteringSucceed", "find fit node(n0), 0 nodes not fit, 2 nodes fit(n0:7.50,n1:4.25)")


class PlacedCluster(LoggingCluster):
    """A cluster whose pod was placed so long ago."""

    def __init__(self, ago: timedelta) -> None:
        placed_at = (datetime.now(UTC) - ago).isoformat()
        condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": placed_at}
        self.pod = {**POD, "spec": {**POD["spec"], "nodeName": "n0"}, "status": {"phase": "Running"}}
        self.pod["status"]["conditions"] = [condition]
        super().__init__(PLACED_LOG, [self.pod, SCHEDULER])

    def fetch(self, address: str) -> bytes | Problem:
        return json.dumps(self.pod).encode() if address.endswith("/pods/trainer") else super().fetch(address)


PLACED_LOG = b"\n".join([write_start(), write_request(1), write_fit("n0", "7.50"), write_fit("n1", "4.25"), CHOSEN])


@pytest.mark.parametrize(("ago", "is_read"), [(timedelta(minutes=5), True), (timedelta(hours=2), False)])
def test_the_log_of_a_placed_pods_scheduler_has_the_next_best_node(ago: timedelta, is_read: bool) -> None:
    server = PlacedCluster(ago)
    transport = DirectTransport(ObjectReader(server.fetch), lambda: "ml", lambda _: None)
    answer = transport.get("/namespaces/ml/pods/trainer/diagnosis")
    assert isinstance(answer, dict)
    assert answer["state"] == "placed"
    assert ("n1, the next best (7.50 > 4.25)" in answer["headline"]["en"]) == is_read
    assert bool(server.options) == is_read
