"""From the examples of the documents that asked for this to the API's answer; and what is read twice is there once."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dev.demo.processes import find_free_ports
from schemas.codec.records import decode
from schemas.events import Event, NodeObserved, PodObserved
from tests.support.builders.sniffer_lines import DOCUMENT
from tests.support.harness.api_process import Served, serving
from tests.support.harness.ingest_process import get_versions, read, wait_until_taken
from tests.support.harness.pipeline_process import Pipeline
from tests.support.waiting import until

UNIT = Path(__file__).parents[2] / "unit"
PROPOSAL = UNIT / "ingest" / "readers" / "hami" / "cases" / "scheduler-event-proposal.log"
KAI = UNIT / "ingest" / "readers" / "kai" / "cases"
TAGS = KAI / "seed002-debug-tags.log"


@pytest.fixture(scope="module")
def api(running: Pipeline) -> Iterator[Served]:
    with serving(running.servers.bootstrap_servers, running.servers.opensearch_url) as served:
        yield served


@pytest.fixture(scope="module")
def placements(running: Pipeline) -> None:
    """The process that keeps what was seen, and who is where."""
    port = find_free_ports("placements")["placements"]
    running.processes.start("placements", "pipeline", "placements", "--metrics-address", port)
    running.processes.wait_ready("placements", f"http://127.0.0.1:{port}/readyz")


def answer(api: Served, pod: str) -> dict[str, Any]:
    got = until(lambda: (answer := api.get_schedulerlog(pod)).is_success and answer)
    assert got, api.get_schedulerlog(pod).text
    body: dict[str, Any] = got.json()
    return body


def wait_for_findings(api: Served, path: str) -> list[dict[str, Any]]:
    """Wait for findings and return them."""
    items: list[dict[str, Any]] = until(lambda: api.client.get(path).json().get("items"))
    return items


def test_the_proposals_log_gives_its_two_summaries_and_three_scores(running: Pipeline, api: Served) -> None:
    read(running, "hami-log", str(PROPOSAL))
    nodes = answer(api, "llm/deepseek-5996b8569d-kgwgx")["filter"]["nodes"]
    reasons = {node["name"]: node["containers"][0].get("reason", "") for node in nodes if node["status"] == "failed"}
    assert {name: set(reason.split(", ")) for name, reason in reasons.items()} == {
        "node1": {
            "2/8 NumaNotFit", "3/8 CardInsufficientMemory", "2/8 CardInsufficientCore",
            "1/8 ExclusiveDeviceAllocateConflict",
        },
        "node2": {"4/8 CardUuidMismatch", "3/8 CardInsufficientMemory", "1/8 ExclusiveDeviceAllocateConflict"},
    }  # fmt: skip
    scores = {node["name"]: node["score"] for node in nodes if node["status"] == "passed"}
    assert scores == {"node3": 0.65, "node4": 0.26, "node5": 0.85}


def test_the_debugging_tags_give_a_finding_with_its_numbers_and_lines(running: Pipeline, api: Served) -> None:
    read(running, "kai-log", str(TAGS))
    assert answer(api, "team-a/infer-0")["filter"]["nodes"][0]["name"] == "gpu-0"
    of_pod = "/api/v1/namespaces/team-a/pods/infer-0/findings"
    (finding,) = wait_for_findings(api, of_pod + "?finding=ReleasingMemoryCounted")
    assert (finding["node"], finding["device"]) == ("gpu-0", "grp-0")
    # 40900 MB in all, 35000 taken, of which 30000 are on their way back: 5900 are free, and 30000 were asked for.
    assert {40900, 35000, 30000, 5900} <= set(finding["numbers"].values())
    assert any("ReleasingMemory=30000" in line for line in finding["evidence"])
    assert finding in wait_for_findings(api, "/api/v1/findings?node=gpu-0&device=grp-0")
    # isPipelineOnly=true: EnoughIdle is false, so KAI waits for the memory and binds nothing. Nothing is overcommitted.
    assert finding["numbers"]["is_waiting"] == 1
    wait_until_taken(running)
    written = running.get_documents({"term": {"pod": "infer-0"}}, "schedulerlog-findings").values()
    assert {document["finding"] for document in written} == {"ReleasingMemoryCounted"}


def test_a_pod_that_is_bound_to_memory_that_others_still_hold_is_an_overcommit(
    running: Pipeline, api: Served, tmp_path: Path
) -> None:
    bound = tmp_path / "bound.log"
    text = TAGS.read_text().replace("isPipelineOnly=true", "isPipelineOnly=false")
    bound.write_text(text.replace("infer-0", "infer-9"))
    read(running, "kai-log", str(bound))
    (beyond,) = wait_for_findings(api, "/api/v1/namespaces/team-a/pods/infer-9/findings?finding=Overcommitted")
    # 30000 MB are taken beside the 35000 that are in use: 65000 of 40900.
    numbers = {"memory_total_mib": 40900, "memory_used_mib": 35000, "memory_taken_mib": 30000}
    assert (beyond["device"], beyond["numbers"]) == ("grp-0", numbers)


@pytest.mark.parametrize("case", sorted(KAI.glob("*.log")), ids=lambda path: path.stem)
def test_reading_kais_log_twice_leaves_the_index_as_it_was(running: Pipeline, case: Path) -> None:
    of_kai = {"term": {"scheduler": "kai-scheduler"}}
    read(running, "kai-log", str(case))
    wait_until_taken(running)
    before = until(lambda: get_versions(running, of_kai), bool)
    read(running, "kai-log", str(case))
    wait_until_taken(running)
    assert before
    assert get_versions(running, of_kai) == before


def read_latest(running: Pipeline, topic: str, kind: type[Event]) -> dict[bytes, Event]:
    """Read the last record of every key, as a compacted topic keeps it."""
    records = running.read_topic(topic)
    events = {record.value: decode(record.value, record.headers) for record in records}
    return {value: event for value, event in events.items() if isinstance(event, kind)}


def test_the_sniffers_lines_say_capacity_and_conditions_and_the_same_when_read_twice(
    running: Pipeline, tmp_path: Path
) -> None:
    log = tmp_path / "sniffer.log"
    log.write_bytes(DOCUMENT)
    read(running, "sniffer", str(log), "--namespace", "sniffed")
    wait_until_taken(running)
    before = get_versions(running, {"match_all": {}})
    nodes, pods = read_latest(running, "schedulerlog.nodes", NodeObserved), list_pods(running)
    assert any(
        isinstance(node, NodeObserved) and node.capacity.get("cpu") == "12" and node.conditions[0].type == "Ready"
        for node in nodes.values()
    )
    assert [[condition.type for condition in pod.conditions] for pod in pods] == [
        ["ContainersReady"],
        ["ContainersReady", "PodScheduled"],
    ]
    read(running, "sniffer", str(log), "--namespace", "sniffed")
    wait_until_taken(running)
    assert get_versions(running, {"match_all": {}}) == before
    assert read_latest(running, "schedulerlog.nodes", NodeObserved).keys() == nodes.keys()
    assert list_pods(running) == pods


def list_pods(running: Pipeline) -> list[PodObserved]:
    events = read_latest(running, "schedulerlog.pods", PodObserved).values()
    return [event for event in events if isinstance(event, PodObserved) and event.pod.namespace == "sniffed"]


JOB = b"""
{"object":"Pod","name":"job-0","endpoint":"podUpdate","node":"kind-control-plane","event":"Running","timestamp":"2024-04-22 02:00:00 +0000 UTC"}
{"object":"Pod","name":"job-0","endpoint":"podUpdate","node":"kind-control-plane","event":"Succeeded","timestamp":"2024-04-22 02:10:00 +0000 UTC"}
"""  # noqa: E501 - lines of the sniffer's form


@pytest.mark.usefixtures("placements")
def test_the_sniffers_lines_are_followed_to_the_node_and_the_pods_that_the_api_shows(
    running: Pipeline, api: Served, tmp_path: Path
) -> None:
    log = tmp_path / "sniffer.log"
    log.write_bytes(DOCUMENT + JOB)
    read(running, "sniffer", str(log))
    node = "/api/v1/nodes/kind-control-plane"
    status = wait_for_answer(api, node, lambda answer: answer["status"] and answer["status"]["capacity"])["status"]
    assert (status["reported_by"], status["observed_at"][:19]) == ("cluster", "2024-04-22T01:08:24")
    assert status["capacity"]["cpu"] == "12"
    assert status["capacity"]["memory"] == status["allocatable"]["memory"] == "32512128Ki"
    (ready,) = status["conditions"]
    assert (ready["type"], ready["status"], ready["reason"]) == ("Ready", "True", "KubeletReady")

    # The log names no namespace.
    pod = "/api/v1/namespaces/-/pods/local-path-provisioner-7577fdbbfb-w84m2"
    seen = wait_for_answer(api, pod + "/observations", lambda answer: answer["total"] == 2)["items"]
    conditions = {
        condition["type"]: (condition["status"], condition["last_transition_at"])
        for item in seen
        for condition in item["conditions"]
    }
    assert conditions == {
        "ContainersReady": ("True", "2024-04-20T18:22:03Z"),
        "PodScheduled": ("True", "2024-04-20T18:22:00Z"),
    }

    job = "/api/v1/namespaces/-/pods/job-0/occupancy"
    (placement,) = wait_for_answer(api, job, lambda answer: answer["items"][0]["ended_at"])["items"]
    assert (placement["node"], placement["started_at"][:19], placement["ended_at"][:19], placement["ended_by"]) == (
        "kind-control-plane", "2024-04-22T02:00:00", "2024-04-22T02:10:00", "Succeeded"
    )  # fmt: skip
    for moment, pods in (("01:59:59", []), ("02:00:01", ["job-0"]), ("02:09:59", ["job-0"]), ("02:10:01", [])):
        there = wait_for_answer(api, f"{node}/occupancy?at=2024-04-22T{moment}Z", bool)["pods"]
        assert [item["name"] for item in there] == pods


def wait_for_answer(api: Served, path: str, is_whole: Callable[[Any], Any]) -> Any:
    """Wait until the answer of the API is complete, and return it."""
    return until(lambda: (got := api.client.get(path)).is_success and is_whole(got.json()) and got.json())
