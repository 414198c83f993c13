"""``schedulerlog why POD`` without the API on a large cluster, next to ``kubectl get nodes,pods -A -o json``.

A real API server answers; nobody schedules and no kubelet runs, so nothing changes while the commands are measured.
"""

import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple

import httpx

from dev.bench.cluster import build_hopeless_pod, build_running_pod, iterate_objects
from dev.bench.report import Figure, Result
from dev.embedded.control_plane import ControlPlane, control_plane
from dev.embedded.control_plane.folder import link_kubectl
from schemas.json_types import Json

NODES: Final = 1_000
PODS_PER_NODE: Final = 5
RUNS: Final = 3
"""The least of so many: everything above it is the machine's."""
_IMAGES: Final = 50
"""Images in the status of a node: the kubelet's own limit."""
_VARIABLES: Final = 20
_CREATING: Final = 8
_NAMESPACES: Final = ("batch", "llm")
WORDS: Final[dict[str, tuple[str, ...]]] = {
    "kubectl get nodes,pods -A -o json": ("kubectl", "get", "nodes,pods", "-A", "-o", "json"),
    "why POD": (sys.executable, "-m", "schedulerlog", "why", "llm/hopeless-0"),
    "list --pending": (sys.executable, "-m", "schedulerlog", "list", "--pending"),
    "nodes": (sys.executable, "-m", "schedulerlog", "nodes"),
}


class CommandTimes(NamedTuple):
    """Times of one command."""

    seconds: float
    cpu_seconds: float


def measure_asking() -> Result:
    """Measure complete commands, each as a separate process, in turns."""
    with control_plane(names=("etcd", "kube-apiserver")) as cluster:
        create_cluster(cluster)
        link_kubectl(cluster.folder, cluster.binary)
        figures = tuple(_measure_commands(cluster))
    return Result(
        "why",
        "a question to a cluster without schedulerlog, from nothing to the end of the answer; ratio: to kubectl",
        f"{NODES:,} nodes x 8 devices with {_IMAGES} images, {NODES * PODS_PER_NODE:,} pods; least of {RUNS} runs",
        figures,
    )


def create_cluster(cluster: ControlPlane) -> None:
    """Create nodes, the pods that hold their devices, and one that every node refuses."""
    with cluster.open_client() as client, ThreadPoolExecutor(_CREATING) as pool:
        for name in _NAMESPACES:
            _create(client, "/api/v1/namespaces", {"metadata": {"name": name}})
            # No controller creates it here, and pods need it.
            _create(client, f"/api/v1/namespaces/{name}/serviceaccounts", {"metadata": {"name": "default"}})
        for collection in (_build_nodes(), _build_pods()):
            list(pool.map(lambda item: _create(client, _locate(item), item), collection))


def _build_nodes() -> Iterator[Json]:
    for item in iterate_objects(NODES):
        if item["kind"] == "Node":
            amounts = item["status"]["allocatable"] | {"cpu": "128", "memory": "1Ti", "pods": "110"}
            images = [_build_image(number) for number in range(_IMAGES)]
            item["status"] = {"capacity": amounts, "allocatable": amounts, "images": images}
            yield item


def _build_image(number: int) -> Json:
    name = f"registry.example.com/team-{number % 7}/training-image-{number}"
    return {"names": [f"{name}@sha256:{number:064x}", f"{name}:2026.{number}"], "sizeBytes": 10**9 + number}


def _build_pods() -> Iterator[Json]:
    for number, item in enumerate(iterate_objects(NODES)):
        if item["kind"] == "Pod":
            node = item["spec"]["nodeName"]
            yield _complete(item)
            for more in range(1, PODS_PER_NODE):
                yield _complete(build_running_pod(node, number * 10_000 + more, []), {"cpu": "4", "memory": "16Gi"})
    waiting = _complete(build_hopeless_pod())
    yield {**waiting, "spec": {**waiting["spec"], "schedulerName": "hami-scheduler"}}


def _complete(item: Json, requests: Json | None = None) -> Json:
    """Complete a pod with what the API server asks for, and with as many words as pods of clusters have."""
    variables = [{"name": f"SETTING_{number}", "value": f"value-{number}" * 4} for number in range(_VARIABLES)]
    containers = item["spec"]["containers"] or [{"name": "main", "resources": {"requests": requests or {}}}]
    for container in containers:
        limits = {name: str(amount) for name, amount in container["resources"].get("limits", {}).items()}
        container |= {"image": "registry.example.com/team-1/training-image-1:2026.1", "env": variables}
        container["resources"] = {**container["resources"], **({"limits": limits} if limits else {})}
    return {**item, "spec": {**item["spec"], "containers": containers}}


def _locate(item: Json) -> str:
    return f"/api/v1/namespaces/{item['metadata']['namespace']}/pods" if item["kind"] == "Pod" else "/api/v1/nodes"


def _create(client: httpx.Client, path: str, body: Json) -> None:
    metadata = {key: value for key, value in body["metadata"].items() if key != "uid"}
    answer = client.post(path, json={**body, "metadata": metadata}, timeout=60)
    if not answer.is_success:
        raise RuntimeError(f"POST {path}: {answer.status_code} {answer.text[:400]}")


def _measure_commands(cluster: ControlPlane) -> Iterator[Figure]:
    environment = _build_environment(cluster.folder / "bin", cluster.kubeconfig)
    least: dict[str, CommandTimes] = {}
    for _ in range(RUNS):
        for name, words in WORDS.items():
            times = _run(words, environment)
            former = least.get(name, times)
            least[name] = CommandTimes(*map(min, times, former))
    first = next(iter(least.values()))
    for name, times in least.items():
        yield Figure(name, round(times.seconds, 2), "s", round(times.seconds / first.seconds, 2))
        ratio = round(times.cpu_seconds / first.cpu_seconds, 2)
        yield Figure(f"{name}, its processes", round(times.cpu_seconds, 2), "CPU s", ratio)


def _build_environment(folder: Path, kubeconfig: Path) -> dict[str, str]:
    # As installed: pip compiles the modules, and a checkout may forbid it.
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return environment | {"KUBECONFIG": str(kubeconfig), "PATH": f"{folder}:{os.environ['PATH']}"}


def _run(words: Sequence[str], environment: dict[str, str]) -> CommandTimes:
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    run = subprocess.run(words, env=environment, check=False, capture_output=True)
    seconds = time.monotonic() - begun
    # 1 is the answer that a pod waits, not a failure.
    if run.returncode not in (0, 1) or not run.stdout:
        raise RuntimeError(f"{' '.join(words)} ended with {run.returncode}: {run.stderr.decode()[-400:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return CommandTimes(seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
