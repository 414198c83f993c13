"""Plans of a drain and of moves carried out on a real cluster by their commands: it becomes what they predict."""

import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from typer.testing import CliRunner

from cli.terminal.kubectl import app
from dev.embedded.control_plane import ControlPlane
from dev.embedded.control_plane.folder import link_kubectl
from schemas.json_types import Json
from tests.support.control_plane.objects import create, created_nodes, list_pods
from tests.support.waiting import eventually

POOL = "plans.test/pool"
BUDGETS = "/apis/policy/v1"


def a_node(name: str, pool: str) -> Json:
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    metadata = {"name": name, "labels": {POOL: pool}, "annotations": {"kwok.x-k8s.io/node": "fake"}}
    return {"metadata": metadata, "status": {"allocatable": amounts, "capacity": amounts}}


def a_spec(pool: str, cpu: str) -> Json:
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": cpu}}}
    return {"nodeSelector": {POOL: pool}, "terminationGracePeriodSeconds": 0, "containers": [container]}


@dataclass(frozen=True, slots=True)
class World:
    """A namespace, and the commands of a person who is allowed everything."""

    client: httpx.Client
    namespace: str
    environment: dict[str, str]

    def create_replicas(self, name: str, replicas: int, cpu: str) -> None:
        labels = {"app": name}
        template = {"metadata": {"labels": labels}, "spec": a_spec(self.namespace, cpu)}
        spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
        create(self.client, f"/apis/apps/v1/namespaces/{self.namespace}/replicasets",
               {"metadata": {"name": name}, "spec": spec})  # fmt: skip

    def create_budget(self, name: str, **spec: Any) -> None:
        """Create a disruption budget, and wait until its controller has counted."""
        path = f"{BUDGETS}/namespaces/{self.namespace}/poddisruptionbudgets"
        selector = {"matchLabels": {"app": name}}
        create(self.client, path, {"metadata": {"name": name}, "spec": {"selector": selector, **spec}})
        counted = lambda: self.client.get(f"{path}/{name}").json().get("status", {}).get("expectedPods")  # noqa: E731
        eventually(counted, f"budget {name} is not counted")

    def list_places(self, app_name: str) -> list[tuple[str, str]]:
        """List name and node of the pods of an app that run."""
        pods = [pod for pod in list_pods(self.client, self.namespace) if pod["status"].get("phase") == "Running"]
        pods_of_app = [pod for pod in pods if pod["metadata"].get("labels", {}).get("app") == app_name]
        return sorted((pod["metadata"]["name"], pod["spec"]["nodeName"]) for pod in pods_of_app)

    def count_running(self, app_name: str) -> Callable[[], int]:
        return lambda: len(self.list_places(app_name))

    def plan(self, *words: str) -> Json:
        done = CliRunner().invoke(app, [*words, "-o", "json"], env=self.environment, catch_exceptions=False)
        assert done.exit_code in (0, 1), done.output
        plan: Json = orjson.loads(done.stdout)
        return plan

    def run(self, command: str) -> int:
        """Run a line as a person would paste it."""
        return subprocess.run(["bash", "-c", command], env=self.environment, timeout=90, check=False).returncode


@pytest.fixture
def world(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> Iterator[World]:
    control_plane.start_scheduler({})
    link_kubectl(tmp_path, control_plane.binary)
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    environment = dict(os.environ) | {"KUBECONFIG": str(control_plane.kubeconfig), "PATH": path}
    with control_plane.open_client() as client:
        yield World(client, namespace, environment)


def test_a_drain_moves_what_its_plan_moves_and_leaves_what_a_budget_keeps(
    control_plane: ControlPlane, world: World
) -> None:
    first, second = f"{world.namespace}-a", f"{world.namespace}-b"
    with created_nodes(control_plane, [a_node(first, world.namespace)]):
        world.create_replicas("web", 2, "1")
        world.create_replicas("db", 1, "1")
        eventually(lambda: len(world.list_places("web") + world.list_places("db")) == 3, "the pods do not run")
        world.create_budget("web", maxUnavailable=1)
        world.create_budget("db", minAvailable=1)
        with created_nodes(control_plane, [a_node(second, world.namespace)]):
            eventually(lambda: world.plan("drain", first)["moves"] == 2, "the second node takes no pod")
            plan = world.plan("drain", first)
            states = {pod["name"].split("-")[0]: (pod["state"], pod["node"]) for pod in plan["pods"]}
            assert states == {"web": ("moves", second), "db": ("blocked", None)}
            (reason,) = [pod["reason"]["en"] for pod in plan["pods"] if pod["state"] == "blocked"]
            assert f"{world.namespace}/db allows no eviction now: it needs 1 healthy pod, and 1 is." in reason
            cordon, drain = plan["commands"]
            assert world.run(cordon) == 0
            # kubectl tries a pod that its budget keeps again and again.
            assert world.run(f"{drain} --timeout=30s") == 1
            eventually(
                lambda: [node for _, node in world.list_places("web")] == [second] * 2, "the pods do not run elsewhere"
            )
            assert [node for _, node in world.list_places("db")] == [first]


def test_the_moves_of_a_plan_let_the_waiting_pod_start_where_it_says(
    control_plane: ControlPlane, world: World, tmp_path: Path
) -> None:
    first, second = f"{world.namespace}-a", f"{world.namespace}-b"
    with created_nodes(control_plane, [a_node(first, world.namespace)]):
        world.create_replicas("left", 1, "2")
        eventually(lambda: len(world.list_places("left")) == 1, "left does not run")
        # Too large for what `left` leaves: it waits for the second node.
        world.create_replicas("right", 1, "2500m")
        with created_nodes(control_plane, [a_node(second, world.namespace)]):
            eventually(lambda: len(world.list_places("right")) == 1, "right does not run")
            world.client.patch(
                f"/api/v1/nodes/{first}/status",
                content=orjson.dumps({"status": {"allocatable": {"cpu": "5"}, "capacity": {"cpu": "5"}}}),
                headers={"Content-Type": "application/merge-patch+json"},
            ).raise_for_status()
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "wide", "labels": {"app": "wide"}}}
            pod["spec"] = a_spec(world.namespace, "4")
            create(world.client, f"/api/v1/namespaces/{world.namespace}/pods", pod)
            file = tmp_path / "wide.json"
            file.write_bytes(orjson.dumps(pod))
            plan = world.plan("defragment", "-f", str(file), "-n", world.namespace)
            (opened,) = plan["nodes"]
            (move,) = opened["moves"]
            assert (plan["starts"], plan["is_fewest"], plan["has_budgets"]) == (1, True, True)
            # `left` does not fit next to `right` (2 + 2.5 of 4), `right` does next to `left` (4.5 of 5).
            assert (move["workload"], opened["source"], move["node"], opened["node"]) == (
                "ReplicaSet/right", second, first, second,
            )  # fmt: skip
            assert world.list_places("wide") == []
            for command in plan["commands"]:
                assert world.run(command) == 0
                if command.startswith("#"):
                    eventually(
                        lambda: [node for _, node in world.list_places("right")] == [first], "right does not move"
                    )
            eventually(lambda: world.list_places("wide") == [("wide", second)], "the waiting pod does not start")
