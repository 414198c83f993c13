"""All nodes of a cluster in pages: what each registers, what holds of it, and which lock was seen last."""

import csv
import io
import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

from typer.testing import CliRunner

from cli.command import app
from schemas.events import (
    DeviceAllocation,
    DeviceKind,
    LockHolder,
    NodeChecked,
    NodeObserved,
    NodeProblem,
    NodeRegistered,
    PodRef,
    SchedulerObserved,
)
from schemas.placements import PodPlacement
from tests.support.builders.node_states import a_node_state
from tests.support.harness.api_process import Served, serving
from tests.support.harness.index_filling import NOW, Filling, an_attempt
from tests.support.waiting import until

CLUSTER = "api-node-list"
BASE = f"/api/v1/clusters/{CLUSTER}"


def a_registration(node: str, minutes_ago: float, memory: int, **fields: Any) -> NodeRegistered:
    plain = {
        "cluster": CLUSTER, "node": node, "observed_at": NOW - timedelta(minutes=minutes_ago), "registered": True,
        "scheduler": "hami-scheduler", "uuid": [f"{node}-0", f"{node}-1"], "model": ["A100"] * 2,
        "mode": ["hami-core"] * 2, "index": [0, 1], "memory_mib": [memory] * 2, "cores_percent": [100] * 2,
        "slots": [10] * 2, "numa": [0, 0], "healthy": [True, True],
    }  # fmt: skip
    return NodeRegistered.model_validate(plain | fields)


def test_nodes_are_listed_with_free_memory_problems_and_lock_page_by_page(filling: Filling, api: Served) -> None:
    problem = NodeProblem(code="HandshakeTooOld", vendor="NVIDIA", message="301 s old")
    filling.index_observations(
        a_registration("a", 9, 500),
        a_registration("a", 5, 1000),
        a_registration("b", 5, 1000),
        NodeChecked(
            cluster=CLUSTER, node="b", observed_at=NOW - timedelta(minutes=4), scheduler="hami-scheduler",
            problems=[problem],
        ),
        a_registration("c", 5, 1000, cluster="api-other-cluster"),
        *(a_registration(f"d{number}", 3, 1000) for number in range(5)),
    )  # fmt: skip
    held = PodPlacement(
        cluster=CLUSTER, id="api-node-list-a", pod=PodRef(namespace="llm", name="p"), node="a",
        started_at=NOW - timedelta(minutes=8),
        allocations=[DeviceAllocation(uuid="a-0", container="main", memory_mib=400)],
    )  # fmt: skip
    ended = held.model_copy(update={"id": "api-node-list-b", "node": "b", "ended_at": NOW - timedelta(minutes=1)})
    filling.index_placements(held, ended)
    # Locks of the last five minutes count, and the other tests may have taken longer.
    failed = an_attempt("llm/waits", chosen="b", bound=False, started_at=datetime.now(UTC))
    assert failed.bind is not None
    locked = failed.bind.model_copy(update={"lock_holder": LockHolder(pod="llm/holder")})
    filling.index(failed.model_copy(update={"cluster": CLUSTER, "attempt_id": "b1" * 16, "bind": locked}))

    answer = api.get(BASE + "/nodes").json()
    assert [item["node"] for item in answer["items"]] == ["a", "b", "d0", "d1", "d2", "d3", "d4"]
    assert (answer["total"], answer["continue"]) == (7, None)
    a, b = answer["items"][:2]
    assert (a["pods"], a["free_devices"], a["memory_free_mib"], a["largest_free_mib"], a["fragmentation"]) == (
        1, 1, 1600, 1000, 0.375,
    )  # fmt: skip
    assert (b["pods"], b["memory_free_mib"]) == (0, 2000)
    assert [node_problem["code"] for node_problem in b["problems"]] == ["HandshakeTooOld"]
    assert b["lock"]["pod"] == "llm/holder"
    assert a["lock"] is None
    assert api.get(a["occupancy"]).json()["devices"][0]["memory_held_mib"] == 400

    seen: list[str] = []
    query = {"limit": "2"}
    while True:
        page = api.get(BASE + "/nodes", **query).json()
        seen += [item["node"] for item in page["items"]]
        if page["continue"] is None:
            break
        query["continue"] = page["continue"]
    assert seen == ["a", "b", "d0", "d1", "d2", "d3", "d4"]


def test_the_list_and_the_report_count_the_same_free_devices(filling: Filling, api: Served) -> None:
    """Four nodes of two devices: one is free, one has a cordoned device, one is cordoned, one was cordoned before."""
    cluster = "api-cordons"

    def observe(node: str, minutes_ago: float, *, unschedulable: bool) -> NodeObserved:
        observed_at = NOW - timedelta(minutes=minutes_ago)
        return NodeObserved(cluster=cluster, node=node, observed_at=observed_at, unschedulable=unschedulable)

    filling.index_observations(
        *(a_registration(node, 5, 1000, cluster=cluster) for node in ("free", "cordoned", "was-cordoned")),
        a_registration("partly", 5, 1000, cluster=cluster, cordoned=["partly-1"]),
        observe("cordoned", 9, unschedulable=False),
        observe("cordoned", 4, unschedulable=True),
        observe("was-cordoned", 9, unschedulable=True),
        observe("was-cordoned", 4, unschedulable=False),
    )
    nothing_used: dict[str, Any] = {
        "cluster": cluster, "kinds": [DeviceKind(model="A100", memory_mib=1000, slots=10)], "revision": 1,
        "observed_at": NOW - timedelta(minutes=5),
        **{name: [0, 0] for name in ("memory_used_mib", "cores_used_percent", "slots_used")},
    }  # fmt: skip
    filling.index_states(
        *(a_node_state(node, 2, **nothing_used) for node in ("free", "cordoned", "was-cordoned")),
        a_node_state("partly", 2, cordoned=[False, True], **nothing_used),
    )
    base = f"/api/v1/clusters/{cluster}"
    listed = {item["node"]: item for item in api.get(f"{base}/nodes").json()["items"]}
    assert {node: item["cordoned"] for node, item in listed.items()} == {
        "free": None, "partly": None, "cordoned": True, "was-cordoned": False,
    }  # fmt: skip
    free = {node: item["free_devices"] for node, item in listed.items()}
    assert free == {"free": 2, "partly": 1, "cordoned": 0, "was-cordoned": 2}
    assert {node: api.get(f"{base}/nodes/{node}/occupancy").json()["free_devices"] for node in free} == free
    fragmentation = api.get(f"{base}/reports/failures", since="1h").json()["fragmentation"]
    assert (fragmentation["nodes"], fragmentation["devices"], fragmentation["free_devices"]) == (4, 5, 5)


def test_schedulers_are_listed_with_their_settings_and_what_changed(filling: Filling, api: Served) -> None:
    def observe(minutes_ago: float, **fields: Any) -> SchedulerObserved:
        plain = {"cluster": CLUSTER, "scheduler": "hami-scheduler", "settings_digest": "d", "version": "v2.9.0"}
        return SchedulerObserved.model_validate(plain | {"observed_at": NOW - timedelta(minutes=minutes_ago)} | fields)

    filling.index_observations(
        observe(60, settings={"node-scheduler-policy": "binpack"}),
        observe(5, settings={"node-scheduler-policy": "spread"}, settings_digest="e"),
        observe(5, cluster="api-other-cluster", scheduler="other"),
    )
    (scheduler,) = api.get(BASE + "/schedulers").json()["items"]
    assert (scheduler["version"], scheduler["settings_digest"]) == ("v2.9.0", "e")
    (change,) = scheduler["changes"]
    assert change["settings"] == [{"setting": "node-scheduler-policy", "before": "binpack", "after": "spread"}]


def test_a_cluster_without_nodes_has_an_empty_list(api: Served) -> None:
    assert api.get("/api/v1/clusters/api-nothing/nodes").json() == {"total": 0, "items": [], "continue": None}


def test_sums_by_pool_and_model_are_those_of_all_pages_and_equal_everywhere(filling: Filling) -> None:
    cluster = "api-node-pools"
    nodes = {f"train-{number}": "A100" for number in range(205)} | {"infer-0": "L40S", "infer-1": "T4", "loose": "T4"}
    filling.index_observations(
        *(a_registration(node, 5, 1000, cluster=cluster, model=[model] * 2) for node, model in nodes.items())
    )
    allocation = DeviceAllocation(uuid="infer-0-1", container="main", memory_mib=400, cores_percent=50)
    filling.index_placements(
        PodPlacement(
            cluster=cluster, id="api-node-pools-a", pod=PodRef(namespace="llm", name="p"), node="infer-0",
            started_at=NOW - timedelta(minutes=4), allocations=[allocation],
        )
    )  # fmt: skip
    # By hand: nodes, devices, free devices, free MiB, held MiB and percent of cores.
    expected = {
        "": (1, 2, 2, 2000, 0, 0),
        "serve": (2, 4, 3, 3600, 400, 50),
        "train": (205, 410, 410, 410_000, 0, 0),
    }
    columns = ("nodes", "devices", "free_devices", "memory_free_mib", "memory_held_mib", "cores_held_percent")
    with serving(
        filling.bootstrap_servers,
        filling.url,
        SCHEDULERLOG_NODE_POOLS="train=train-*,serve=infer-*",
        SCHEDULERLOG_CLUSTER_NAME=cluster,
    ) as api:
        assert until(api.is_ready)
        first = api.get(f"/api/v1/clusters/{cluster}/nodes", limit="200").json()
        second = api.get(f"/api/v1/clusters/{cluster}/nodes", limit="200", **{"continue": first["continue"]}).json()
        items = [*first["items"], *second["items"]]
        assert {item["pool_source"] for item in items if item["pool"]} == {"SCHEDULERLOG_NODE_POOLS"}
        assert {pool: sum(item["pool"] == pool for item in items) for pool in expected} == {
            pool: nodes for pool, (nodes, *_) in expected.items()
        }
        rows = csv.DictReader(io.StringIO(api.get("/ui/fleet.csv", cluster=cluster, by="pool").text))
        assert {row["pool"]: tuple(int(row[column]) for column in columns) for row in rows} == expected
        url = f"{api.client.base_url}"
        words = ["nodes", "--by", "pool", "--api-url", url, "-o", "json"]
        done = CliRunner().invoke(app, words)
        sums = json.loads(done.stdout)["items"]
        assert {entry["pool"]: tuple(entry[column] for column in columns) for entry in sums} == expected
        by_pool = api.get("/ui/fleet", cluster=cluster).text.partition("Free by pool")[2].partition("</table>")[0]
        cells = re.findall(r"<tr><th scope=\"row\">(.*?)</th>(.*?)</tr>", by_pool, re.DOTALL)
        on_page = {re.sub(r"<[^>]*>", "", name): re.findall(r"<td[^>]*>([^<]*)</td>", row)[:3] for name, row in cells}
        assert on_page == {"no pool": ["1", "2", "2"], "serve": ["2", "4", "3"], "train": ["205", "410", "410"]}
        listed = api.get("/ui/nodes", cluster=cluster, by="pool", limit="100").text
        assert "<h2>serve" in listed
        assert re.search(r'href="[^"]*by=pool[^"]*continue=[^"]*" rel="next"', listed)


def test_nodes_of_one_pool_are_the_same_in_api_page_table_and_terminal(filling: Filling) -> None:
    cluster = "api-one-pool"
    # The first pattern that matches counts: b-0 is in the pool of spares, though its name begins as those of serve.
    setting = "spare=*-0,serve=b-*,train=[ac]-*"
    names = [f"{letter}-{number}" for letter in "abc" for number in range(4)] + ["loose"]
    filling.index_observations(*(a_registration(name, 5, 1000, cluster=cluster) for name in names))
    expected = {"serve": ["b-1", "b-2", "b-3"], "spare": ["a-0", "b-0", "c-0"]}
    expected["train"] = ["a-1", "a-2", "a-3", "c-1", "c-2", "c-3"]
    with serving(
        filling.bootstrap_servers, filling.url, SCHEDULERLOG_NODE_POOLS=setting, SCHEDULERLOG_CLUSTER_NAME=cluster
    ) as api:
        assert until(api.is_ready)
        url = f"{api.client.base_url}"
        for pool, members in expected.items():
            pages = [api.get("/api/v1/nodes", pool=pool, limit="2").json()]
            while token := pages[-1]["continue"]:
                pages.append(api.get("/api/v1/nodes", pool=pool, limit="2", **{"continue": token}).json())
            assert [item["node"] for page in pages for item in page["items"]] == members
            assert {page["total"] for page in pages} == {len(members)}
            (row,) = csv.DictReader(io.StringIO(api.get("/ui/fleet.csv", by="model", pool=pool).text))
            assert (row["nodes"], row["devices"]) == (f"{len(members)}", f"{2 * len(members)}")
            page = api.get("/ui/nodes", pool=pool).text
            assert [name for name in names if f'/ui/nodes/{name}"' in page] == members
            done = CliRunner().invoke(app, ["nodes", "--pool", pool, "--api-url", url, "-o", "json"])
            assert [item["node"] for item in json.loads(done.stdout)["items"]] == members
        refused = api.get("/api/v1/nodes", pool="tain")
        assert (refused.status_code, refused.json()["next"]) == (400, "Pools: serve, spare, train.")
        assert api.get("/ui/nodes", pool="tain").status_code == 400
        assert CliRunner().invoke(app, ["nodes", "--pool", "tain", "--api-url", url]).exit_code == 2
