"""A recorded cluster as a file, and the scheduler's own simulation on it."""

import json
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from schemas.events import DeviceKind, NodeStateChanged
from tests.support.builders.events import build_devices_judged
from tests.support.builders.node_states import a_node_state
from tests.support.harness.api_process import Served
from tests.support.harness.index_filling import NOW, Filling, an_attempt

CLUSTER = "api-cluster-file"
BASE = f"/api/v1/clusters/{CLUSTER}"
KIND = DeviceKind(
    model="NVIDIA A100", vendor="NVIDIA", mode="hami-core", memory_mib=10_000, cores_percent=100, slots=10
)
POD = """
apiVersion: v1
kind: Pod
metadata: {name: again, namespace: llm}
spec:
  schedulerName: hami-scheduler
  containers:
    - name: main
      resources: {limits: {nvidia.com/gpu: "1", nvidia.com/gpumem: "6000"}}
"""


def a_state(node: str, revision: int, used: list[int], minutes_ago: float) -> NodeStateChanged:
    return a_node_state(
        node, 2, cluster=CLUSTER, revision=revision, kinds=[KIND], memory_used_mib=used, cores_used_percent=[0, 0],
        slots_used=[int(mib > 0) for mib in used], observed_at=NOW - timedelta(minutes=minutes_ago),
    )  # fmt: skip


def format_minutes_ago(minutes: int) -> str:
    return (NOW - timedelta(minutes=minutes)).isoformat()


def simulate(text: str, path: Path) -> dict[str, Any]:
    """Simulate ``POD``, and return the answer of each node."""
    (path / "cluster.yaml").write_text(text, encoding="utf-8")
    (path / "pod.yaml").write_text(POD, encoding="utf-8")
    files = ["--cluster", str(path / "cluster.yaml"), "--pod", str(path / "pod.yaml")]
    ran = subprocess.run(
        [sys.executable, "-m", "scheduler", "simulate", *files], capture_output=True, text=True, check=True
    )
    return {
        node["name"]: node["containers"][0].get("reason", "fits") for node in json.loads(ran.stdout)["filter"]["nodes"]
    }


@pytest.fixture(scope="module")
def recorded(filling: Filling) -> str:
    """The id of an attempt that found f-node1 full and f-node2 half full; later, f-node1 became free."""
    attempt = an_attempt("llm/file", started_at=NOW - timedelta(minutes=20), nodes=["cpu", "f-node1", "f-node2"])
    attempt = attempt.model_copy(update={"cluster": CLUSTER, "attempt_id": "cf" * 16})
    record = build_devices_judged(
        ["f-node1", "f-node2"], per_node=2, cluster=CLUSTER, attempt_id=attempt.attempt_id, pod=attempt.pod,
        started_at=attempt.started_at, revision=[4, 7],
    )  # fmt: skip
    filling.index(attempt)
    filling.index_devices(record)
    filling.index_states(
        a_state("f-node1", 4, [9_000, 5_000], 30),
        a_state("f-node2", 7, [9_000, 2_000], 25),
        a_state("f-node1", 5, [0, 0], 10),
    )
    return attempt.attempt_id


def test_the_cluster_of_an_attempt_is_simulated_as_the_attempt_found_it(
    recorded: str, api: Served, tmp_path: Path
) -> None:
    answer = api.get(f"{BASE}/attempts/{recorded}/cluster-file")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("application/yaml")
    assert simulate(answer.text, tmp_path) == {
        "cpu": "node unregistered",
        "f-node1": "2/2 CardInsufficientMemory",
        "f-node2": "fits",
    }


def test_the_cluster_at_a_time_has_the_latest_state_of_each_node(recorded: str, api: Served, tmp_path: Path) -> None:
    now = simulate(api.get(BASE + "/cluster-file").text, tmp_path)
    before = simulate(api.get(BASE + "/cluster-file", at=format_minutes_ago(15)).text, tmp_path)
    assert now == {"f-node1": "fits", "f-node2": "fits"}
    assert before == {"f-node1": "2/2 CardInsufficientMemory", "f-node2": "fits"}


def test_a_cluster_without_states_is_not_found(recorded: str, api: Served) -> None:
    for path, query in (
        (BASE, {"at": format_minutes_ago(40)}),
        (BASE, {"scheduler": "other"}),
        ("/api/v1/clusters/nothing", {}),
    ):
        answer = api.get(path + "/cluster-file", **query)
        assert answer.status_code == 404
        assert "schedulerlog pipeline index" in answer.json()["next"]
