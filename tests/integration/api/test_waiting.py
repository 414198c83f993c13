"""Waiting pods by workload, and attempts that a device refused: from what the index holds of them."""

import csv
import io
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from engine.diagnosis.waiting import derive_wait
from schemas.events import (
    AttemptSummarized,
    DeviceAllocation,
    ObjectProblem,
    Owner,
    PodDescription,
    PodObserved,
    PodRef,
    Request,
    WorkloadObserved,
)
from schemas.placements import PodPlacement
from tests.support.builders.events import build_devices_judged
from tests.support.builders.node_states import a_node_state, build_states
from tests.support.harness.api_process import Served
from tests.support.harness.index_filling import NOW, Filling, an_attempt
from tests.support.waiting import until

JOB = PodDescription(owners=[Owner(kind="Job", name="train")], queue="blue", priority_class="high")


def an_earlier_attempt(pod: str, minutes_ago: float = 2, **fields: Any) -> AttemptSummarized:
    description = fields.pop("description", None)
    attempt = an_attempt(pod, started_at=NOW - timedelta(minutes=minutes_ago), **fields)
    first = NOW - timedelta(minutes=30)
    return attempt.model_copy(update={"description": description, "first_judged_at": first})


def a_waiting_attempt(pod: str, *, count: int = 1, hours: float = 1, **fields: Any) -> AttemptSummarized:
    """An attempt as the worker publishes it: ``count`` devices are asked for, ``hours`` ago for the first time."""
    requests = [Request(container="main", vendor="NVIDIA", count=count, memory_mib=3000)]
    attempt = an_earlier_attempt(pod, **fields).model_copy(
        update={"requests": requests, "first_judged_at": NOW - timedelta(hours=hours)}
    )
    return attempt.model_copy(update={"wait": derive_wait(attempt, lambda node: "a100" if node == "node1" else "")})


def an_observation(pod: str, observed_at: datetime, **fields: Any) -> PodObserved:
    namespace, name = pod.split("/")
    ref = PodRef(namespace=namespace, name=name, uid=f"uid-{name}")
    return PodObserved.model_validate(
        {"cluster": "default", "pod": ref, "observed_at": observed_at, "phase": "Pending"} | fields
    )


def test_pods_that_wait_are_answered_by_workload_with_their_reasons(filling: Filling, api: Served) -> None:
    filling.index(
        *(an_earlier_attempt(f"api-waiting/train-{number}", number, description=JOB) for number in range(1, 6)),
        an_earlier_attempt("api-waiting/train-1", 9, reason="NumaNotFit", description=JOB),
        an_earlier_attempt("api-waiting/alone", 3, reason="NumaNotFit"),
        an_earlier_attempt("api-waiting/bound", 5, chosen=None),
        an_earlier_attempt("api-waiting/bound", 4, chosen="node2", bound=True),
        an_earlier_attempt("api-waiting/lately", 90),
        an_earlier_attempt("api-waiting/placed", 5),
        an_earlier_attempt("api-waiting/deleted", 5),
        an_earlier_attempt("api-waiting/locked", 5, chosen="node2", bound=False),
        an_earlier_attempt("api-waiting/made-again", 5),
    )
    filling.index_observations(
        an_observation("api-waiting/placed", NOW - timedelta(minutes=4), node="node7"),
        an_observation("api-waiting/deleted", NOW - timedelta(minutes=4), deleted=True),
        an_observation("api-waiting/made-again", NOW - timedelta(minutes=6), deleted=True),
        an_observation("api-waiting/alone", NOW - timedelta(minutes=2)),
    )
    exceeded = ObjectProblem(reason="FailedCreate", message="exceeded quota", at=NOW, reported_by="job-controller")
    never_made = Owner(kind="Job", name="never-made")
    filling.index_observations(
        *(
            WorkloadObserved(
                cluster="default", namespace="api-waiting", workload=never_made,
                observed_at=NOW - timedelta(minutes=minutes), problem=exceeded,
            )
            for minutes in (9, 5)
        )
    )  # fmt: skip
    answer = api.get("/api/v1/pending", namespace="api-waiting").json()
    (blocked,) = answer["blocked"]
    assert (blocked["workload"], blocked["problem"]["message"]) == ("Job/never-made", "exceeded quota")
    assert [(item["workload"], item["pods"], item["reasons"]) for item in answer["items"]] == [
        ("Job/train", 5, {"CardInsufficientMemory": 5}),
        ("Pod/alone", 1, {"NumaNotFit": 1}),
        ("Pod/locked", 1, {"CardInsufficientMemory": 1, "node lock contention": 1}),
        ("Pod/made-again", 1, {"CardInsufficientMemory": 1}),
    ]
    assert (answer["pods"], answer["total"], answer["continue"]) == (8, 4, None)
    assert answer["reasons"] == {"CardInsufficientMemory": 7, "NumaNotFit": 1, "node lock contention": 1}
    train = answer["items"][0]
    assert (train["queue"], len(train["examples"])) == ("blue", 3)
    example = train["examples"][0]
    assert example["first_judged_at"].startswith((NOW - timedelta(minutes=30)).isoformat()[:19])
    assert api.get(example["attempt"]).status_code == 200
    longer = api.get("/api/v1/pending", namespace="api-waiting", since="2h", limit="1").json()
    assert (longer["total"], len(longer["items"])) == (5, 1)
    numa = api.get("/api/v1/pending", namespace="api-waiting", reason="NumaNotFit").json()
    assert [item["workload"] for item in numa["items"]] == ["Pod/alone"]
    of_queue = api.get("/api/v1/pods", namespace="api-waiting", state="waiting", queue="blue", limit="2")
    assert (of_queue.json()["total"], len(of_queue.json()["items"])) == (5, 2)


def test_waiting_pods_and_workloads_have_pages_while_pods_come_and_go(filling: Filling, api: Served) -> None:
    jobs = [PodDescription(owners=[Owner(kind="Job", name=f"job{number}")]) for number in range(4)]
    filling.index(
        *(
            an_earlier_attempt(f"api-pages/p{number}", 2, description=jobs[number % 4]).model_copy(
                update={"first_judged_at": NOW - timedelta(minutes=40, seconds=-number), "attempts": number + 1}
            )
            for number in range(22)
        )
    )

    def fetch_page(path: str, token: str | None, **query: str) -> dict[str, Any]:
        more = {"continue": token} if token else {}
        answer = api.get(path, namespace="api-pages", **query, **more)
        assert answer.status_code == 200, answer.text
        content: dict[str, Any] = answer.json()
        assert answer.headers.get("X-Continue") == content["continue"]
        return content

    first = fetch_page("/api/v1/pods", None, state="waiting", limit="10")
    assert (first["total"], first["items"][3]["attempts"]) == (22, 4)
    # One of each page leaves, and one comes that waits shorter than all others.
    filling.index_observations(
        *(an_observation(f"api-pages/p{number}", NOW - timedelta(minutes=1), deleted=True) for number in (2, 12))
    )
    filling.index(an_earlier_attempt("api-pages/late", 0.5))
    second = fetch_page("/api/v1/pods", first["continue"], state="waiting", limit="10")
    third = fetch_page("/api/v1/pods", second["continue"], state="waiting", limit="10")
    names = [item["name"] for answer in (first, second, third) for item in answer["items"]]
    assert names == [f"p{number}" for number in range(22) if number != 12] + ["late"]
    assert (third["continue"], third["total"]) == (None, 21)
    wrong = api.get("/api/v1/pods", namespace="other", state="waiting", limit="10", **{"continue": first["continue"]})
    assert wrong.status_code == 400

    workloads = fetch_page("/api/v1/pending", None, limit="2")
    remainder = fetch_page("/api/v1/pending", workloads["continue"], limit="3")
    assert [(item["workload"], item["pods"]) for item in (*workloads["items"], *remainder["items"])] == [
        ("Job/job1", 6),
        ("Job/job0", 5),
        ("Job/job3", 5),
        ("Job/job2", 4),
        ("Pod/late", 1),
    ]
    assert (workloads["total"], workloads["pods"], remainder["continue"]) == (5, 21, None)


def test_every_waiting_pod_has_its_obstacle_its_nearest_node_and_its_gpu_hours(filling: Filling, api: Served) -> None:
    filling.index(
        a_waiting_attempt("api-each/two", count=2, hours=2, nodes=("node2",)),
        a_waiting_attempt("api-each/eight", count=8, hours=1),
        a_waiting_attempt("api-each/long", hours=5, reason="CardTypeMismatch"),
        an_earlier_attempt("api-each/older", 3),
    )

    def list_names(**query: str) -> list[str]:
        answer = api.get("/api/v1/pending", namespace="api-each", group_by="pod", **query)
        assert answer.status_code == 200, answer.text
        assert answer.json()["total"] == len(answer.json()["items"])
        return [item["name"] for item in answer.json()["items"]]

    assert list_names() == ["long", "two", "eight", "older"]
    assert list_names(sort="gpu_hours") == ["eight", "long", "two", "older"]
    assert list_names(sort="devices")[:2] == ["eight", "two"]
    assert list_names(sort="name") == ["eight", "long", "older", "two"]
    assert list_names(min_wait="90m") == ["long", "two"]
    assert list_names(pool="a100") == ["long", "eight"]
    assert list_names(obstacle="CardInsufficientMemory") == ["two", "eight"]
    assert list_names(model="H800") == []
    two = api.get("/api/v1/pending", namespace="api-each", group_by="pod").json()["items"][1]
    diagnosis = api.get("/api/v1/namespaces/api-each/pods/two/diagnosis").json()
    assert two["obstacle"]["code"] == diagnosis["obstacle"]["code"] == "CardInsufficientMemory"
    assert two["obstacle"]["sentence"] == diagnosis["obstacle"]["sentence"]
    # The pods were made to wait when the records were, which is minutes ago on a busy machine.
    assert 2 * 3600 <= two["waited_seconds"] < 3 * 3600
    assert (two["devices"], two["gpu_hours"]) == (2, pytest.approx(2 * two["waited_seconds"] / 3600, abs=0.01))
    assert (two["nearest"]["node"], two["nearest"]["missing_devices"]) == ("node2", 2)
    old = api.get("/api/v1/pending", namespace="api-each", group_by="pod", workload="", sort="name")
    assert old.status_code == 400


def test_the_nearest_node_is_the_one_that_lacks_the_least_memory_now(filling: Filling, api: Served) -> None:
    nodes = ("api-near-1", "api-near-2")
    filling.index(a_waiting_attempt("api-near/pod", count=2, nodes=nodes))
    full = a_node_state("api-near-1", 2, observed_at=NOW, memory_used_mib=[81_920, 81_920])
    nearly = a_node_state("api-near-2", 2, observed_at=NOW, memory_used_mib=[81_920 - 2_000, 81_920 - 1_000])
    filling.publish_states(full, nearly)

    def fetch_nearest() -> dict[str, Any]:
        (item,) = api.get("/api/v1/pending", namespace="api-near", group_by="pod").json()["items"]
        nearest: dict[str, Any] = item["nearest"]
        return nearest

    # The first device lacks 1,000 MiB of the 3,000 that are asked, the second 2,000.
    closest = until(fetch_nearest, lambda near: near["missing_memory_mib"] is not None and near["node"] == "api-near-2")
    assert (closest["missing_memory_mib"], closest["missing_cores_percent"], closest["missing_devices"]) == (
        3_000,
        0,
        2,
    )


def test_each_order_of_pods_has_pages(filling: Filling, api: Served) -> None:
    filling.index(
        *(a_waiting_attempt(f"api-orders/p{number}", count=number % 4, hours=number / 2 + 1) for number in range(9))
    )
    for order in ("wait", "gpu_hours", "devices", "attempts", "name"):
        query = {"namespace": "api-orders", "group_by": "pod", "sort": order, "limit": "4"}
        pods: list[dict[str, Any]] = []
        page = api.get("/api/v1/pending", **query).json()
        while True:
            pods += page["items"]
            if not page["continue"]:
                break
            page = api.get("/api/v1/pending", **query, **{"continue": page["continue"]}).json()
        assert len({pod["name"] for pod in pods}) == len(pods) == 9, order
        if order in ("gpu_hours", "devices"):
            assert all(first[order] >= other[order] for first, other in pairwise(pods)), order


def test_pods_with_one_obstacle_are_one_row(filling: Filling, api: Served) -> None:
    filling.index(
        *(a_waiting_attempt(f"api-equal/p{number:02}", count=2, hours=1) for number in range(30)),
        a_waiting_attempt("api-equal/four", count=4, hours=3),
        a_waiting_attempt("api-equal/other", hours=2, reason="CardTypeMismatch"),
        an_earlier_attempt("api-equal/older", 3),
    )
    query = {"namespace": "api-equal", "group_by": "obstacle"}
    answer = api.get("/api/v1/pending", **query).json()
    rows = [(item["obstacle"] and item["obstacle"]["code"], item["asked"], item["pods"]) for item in answer["items"]]
    assert rows == [
        ("CardInsufficientMemory", "2 x 3,000 MiB", 30),
        ("CardInsufficientMemory", "4 x 3,000 MiB", 1),
        ("CardTypeMismatch", "1 x 3,000 MiB", 1),
        (None, "", 1),
    ]
    assert (answer["pods"], answer["total"]) == (33, 4)
    equal = answer["items"][0]
    assert (equal["devices"], equal["workloads"], equal["namespaces"]) == (60, 30, 1)
    assert 60 <= equal["gpu_hours"] < 90
    assert equal["nearest"]["missing_devices"] == 2
    by_hours = api.get("/api/v1/pending", **query, sort="gpu_hours").json()["items"]
    assert [int(item["gpu_hours"]) for item in by_hours[1:]] == [12, 2, 0]
    for order in ("pods", "wait", "gpu_hours", "devices"):
        first = api.get("/api/v1/pending", **query, sort=order, limit="3").json()
        remainder = api.get("/api/v1/pending", **query, sort=order, limit="3", **{"continue": first["continue"]}).json()
        assert len(remainder["items"]) == 1, order
        assert remainder["items"][0] not in first["items"]


def test_waiting_pods_are_answered_as_rows_and_as_a_table(filling: Filling, api: Served) -> None:
    hostile = PodDescription(owners=[Owner(kind="Job", name="a")], queue='=HYPERLINK("http://evil","x")')
    plus = PodDescription(owners=[Owner(kind="+Job", name="b")], queue="@cmd|'/c calc'!A0, and more")
    filling.index(
        a_waiting_attempt("api-rows/a", count=2, hours=2, description=hostile),
        a_waiting_attempt("api-rows/b", description=plus),
    )
    query = {"namespace": "api-rows", "group_by": "pod"}
    flat = api.get("/api/v1/pending", **query, format="flat", limit="1")
    (row,) = flat.json()
    assert (row["name"], row["devices"], row["obstacle"], row["nearest_node"]) == (
        "a", 2, "CardInsufficientMemory", "node1",
    )  # fmt: skip
    assert row["queue"] == '=HYPERLINK("http://evil","x")', "JSON is no table: it has what was recorded"
    assert (flat.headers["X-Total-Count"], bool(flat.headers["X-Continue"])) == ("2", True)
    table = api.get("/api/v1/pending", **query, format="csv")
    assert table.headers["content-type"] == "text/csv; charset=utf-8"
    first, second = csv.DictReader(io.StringIO(table.text, newline=""))
    assert first["queue"] == '\'=HYPERLINK("http://evil","x")'
    assert (second["queue"], second["workload"]) == ("'@cmd|'/c calc'!A0, and more", "'+Job/b")
    assert (first["devices"], int(float(first["gpu_hours"])), second["missing_memory_mib"]) == ("2", 4, "")
    by_header = api.client.get("/api/v1/pending", params=query, headers={"Accept": "text/csv"})
    assert by_header.text.splitlines()[0] == table.text.splitlines()[0]
    grouped = api.get("/api/v1/pending", namespace="api-rows", format="flat").json()
    assert [(group["workload"], group["pods"], group["name"]) for group in grouped] == [
        ("Job/a", 1, "a"),
        ("+Job/b", 1, "b"),
    ]


def test_pods_are_listed_by_state(filling: Filling, api: Served) -> None:
    def a_placement(name: str, ended: float | None = None) -> PodPlacement:
        held = DeviceAllocation(uuid=f"GPU-{name}", container="main", memory_mib=1000)
        return PodPlacement(
            cluster="default", id=f"api-states-{name}", pod=PodRef(namespace="api-states", name=name, uid=name),
            node="s-node1", started_at=NOW - timedelta(minutes=20), allocations=[held], attempt_id="ab" * 16,
            description=JOB, first_judged_at=NOW - timedelta(minutes=21), bound_at=NOW - timedelta(minutes=20),
            waited_for=["NumaNotFit"],
            ended_at=None if ended is None else NOW - timedelta(minutes=ended), ended_by="deleted" if ended else "",
        )  # fmt: skip

    filling.index_placements(a_placement("a"), a_placement("b", 10), a_placement("c"))

    def list_names(**query: str) -> list[str]:
        answer = api.get("/api/v1/pods", namespace="api-states", **query).json()
        assert answer["total"] == len(answer["items"])
        return sorted(item["name"] for item in answer["items"])

    assert list_names() == list_names(state="placed") == ["a", "c"]
    assert list_names(state="ended") == ["b"]
    assert list_names(node="s-node1", device="GPU-c") == ["c"]
    (item,) = api.get("/api/v1/pods", namespace="api-states", state="ended").json()["items"]
    assert item["attempt"] == "/api/v1/attempts/" + "ab" * 16
    assert (item["placement_seconds"], item["start_seconds"], item["waited_for"]) == (60, None, ["NumaNotFit"])
    assert item["description"]["owners"][0]["name"] == "train"
    assert list_names(workload="Job/train") == list_names(queue="blue") == ["a", "c"]
    assert list_names(workload="Job/other") == []
    assert api.get("/api/v1/pods", state="waiting", node="node1").status_code == 400


def test_the_attempts_that_a_device_refused_are_found_with_its_numbers(filling: Filling, api: Served) -> None:
    words = ["CardInsufficientMemory", "NumaNotFit", "fits"]

    def build_judged(number: int, verdict: list[int]) -> Any:
        pod = PodRef(namespace="api-refused", name=f"p{number}", uid=f"u{number}")
        fields: dict[str, Any] = {"attempt_id": f"{number:032x}", "started_at": NOW - timedelta(minutes=number)}
        return build_devices_judged(
            ["r-node1", "r-node2"], per_node=2, pod=pod, verdicts=words, verdict=verdict, **fields
        )

    records = [
        build_judged(number, verdict)
        for number, verdict in enumerate([[2, 0, 0, 0], [2, 2, 0, 0], [2, 1, 0, 0], [0, 2, 2, 2]])
    ]
    filling.index_devices(*records)
    states = build_states(records[0], observed_at=NOW)
    filling.index_states(*states)
    query = {"device": "GPU-r-node1-1"}
    answer = api.get("/api/v1/refusals", **query).json()
    assert [(item["name"], item["node"], item["reason"]) for item in answer["items"]] == [
        ("p0", "r-node1", "CardInsufficientMemory"),
        ("p2", "r-node1", "NumaNotFit"),
    ]
    assert (answer["read_records"], answer["continue"]) == (4, None)
    assert answer["items"][0]["memory_used_mib"] == states[0].memory_used_mib[1]
    assert answer["items"][0]["attempt"] == f"/api/v1/attempts/{0:032x}"
    numa = api.get("/api/v1/refusals", **query, reason="NumaNotFit").json()
    assert [item["name"] for item in numa["items"]] == ["p2"]
    assert (
        api.get("/api/v1/refusals", **query, since=(NOW - timedelta(seconds=90)).isoformat()).json()["items"][0]["name"]
        == "p0"
    )
    assert api.get("/api/v1/refusals", device="GPU-nowhere").json()["items"] == []
    assert "parameter device" in api.get("/api/v1/refusals").json()["error"]
