"""A release of the chart on a real API server: installed, upgraded, rolled back, tested by the doctor, removed."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dev.embedded.control_plane import ControlPlane
from schemas.json_types import Json
from tests.support.backends import Addresses
from tests.support.control_plane.chart import CHART, IMAGE, Helm
from tests.support.control_plane.deployed import apply
from tests.support.control_plane.objects import a_large_node, created_nodes
from tests.support.control_plane.service_account import a_kubeconfig, write_token

RELEASE = "gpu"
NAMESPACE = "chart-release"
TEST_POD = "schedulerlog-doctor"
NOWHERE = "http://127.0.0.1:9"
"""An address at which nothing answers."""
WAITING = ("--wait", "--timeout", "3m")


@pytest.fixture(scope="module")
def cluster(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """A node on which pods run, and a namespace that enforces Pod Security `restricted`."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    apply(control_plane, [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}}])
    control_plane.start_scheduler({})
    with created_nodes(control_plane, [a_large_node("chart-node")]):
        yield control_plane


@pytest.fixture
def installed(cluster: ControlPlane, helm: Helm, backends: Addresses) -> Iterator[tuple[str, ...]]:
    """The flags of a release that runs against the Kafka and OpenSearch of this machine."""
    values = (
        IMAGE, "processes=separate", "stores.enabled=false", f"kafka.bootstrapServers={backends.bootstrap_servers}",
        f"opensearch.url={backends.opensearch_url}",
    )  # fmt: skip
    flags = ("-n", NAMESPACE, *(word for value in values for word in ("--set", value)))
    run(helm, cluster, "install", RELEASE, str(CHART), *flags, *WAITING)
    try:
        yield flags
    finally:
        run(helm, cluster, "uninstall", RELEASE, "-n", NAMESPACE)
        cluster.run_kubectl("delete", "pods", "-n", NAMESPACE, "--all", "--force", "--grace-period=0", "--wait=false")


def run(helm: Helm, cluster: ControlPlane, *arguments: str) -> str:
    done = helm.run(*arguments, cluster=cluster)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def list_items(cluster: ControlPlane, kinds: str) -> list[Json]:
    items: list[Json] = json.loads(cluster.run_kubectl("get", kinds, "-n", NAMESPACE, "-o", "json"))["items"]
    return items


def read_generations(cluster: ControlPlane) -> dict[str, int]:
    items = list_items(cluster, "deployments,statefulsets")
    return {item["metadata"]["name"].removeprefix("schedulerlog-"): item["metadata"]["generation"] for item in items}


def list_jobs(cluster: ControlPlane) -> set[str]:
    return {item["metadata"]["name"] for item in list_items(cluster, "jobs")}


def test_an_upgrade_restarts_what_uses_the_value_and_a_rollback_puts_it_back(
    cluster: ControlPlane, helm: Helm, installed: tuple[str, ...]
) -> None:
    notes = run(helm, cluster, "get", "notes", RELEASE, "-n", NAMESPACE)
    assert f"helm test {RELEASE} -n {NAMESPACE} --logs" in notes
    first, jobs = read_generations(cluster), list_jobs(cluster)
    assert {"worker", "index", "api", "placements", "alerts", "kube-events", "events"} == first.keys()
    assert len(jobs) == 2
    upgrade = ("upgrade", RELEASE, str(CHART), *installed, *WAITING)
    run(helm, cluster, *upgrade)
    assert read_generations(cluster) == first
    run(helm, cluster, *upgrade, "--set", "settings.SCHEDULERLOG_API_CACHE_SIZE=64Mi")
    second = read_generations(cluster)
    assert {name for name in first if second[name] != first[name]} == {"api"}
    assert list_jobs(cluster) == jobs
    # A new version changes Jobs, too, which Kubernetes refuses of a Job that is there.
    run(helm, cluster, *upgrade, "--set", "image.tag=0.2.0")
    third = read_generations(cluster)
    assert {name for name in first if third[name] == second[name]} == set()
    assert list_jobs(cluster).isdisjoint(jobs)
    run(helm, cluster, "rollback", RELEASE, "1", "-n", NAMESPACE, *WAITING)
    assert list_jobs(cluster) == jobs
    images = {
        item["spec"]["template"]["spec"]["containers"][0]["image"]
        for item in list_items(cluster, "deployments,statefulsets,jobs")
    }
    assert images == {"registry.example.com/gpu/schedulerlog:0.1.0"}


def test_a_second_release_in_the_cluster_is_refused(
    cluster: ControlPlane, helm: Helm, installed: tuple[str, ...]
) -> None:
    done = helm.run("install", "other", str(CHART), *installed, cluster=cluster)
    assert done.returncode != 0
    assert "exists and cannot be imported into the current release" in done.stderr


class Kubelet(threading.Thread):
    """Runs the container of the test's pod on this machine, with its arguments, its account and its settings."""

    def __init__(self, cluster: ControlPlane, folder: Path) -> None:
        super().__init__(daemon=True)
        self._cluster, self._folder = cluster, folder
        self._end = threading.Event()
        self.output = ""

    def run(self) -> None:
        while not self._end.wait(0.3):
            pods = [pod for pod in list_items(self._cluster, "pods") if pod["metadata"]["name"] == TEST_POD]
            if pods and pods[0]["status"]["phase"] not in ("Succeeded", "Failed"):
                self._work(pods[0]["spec"])

    def stop(self) -> None:
        self._end.set()
        self.join()

    def _work(self, spec: Json) -> None:
        write_token(self._cluster, NAMESPACE, spec["serviceAccountName"], self._folder)
        command, *arguments = (word.replace("$(POD_NAMESPACE)", NAMESPACE) for word in spec["containers"][0]["args"])
        assert command == "doctor"
        # A pod finds its token at a path of its own.
        kubeconfig = str(a_kubeconfig(self._folder, self._cluster))
        done = run_module(self._cluster, "cli.doctor", "--kubeconfig", kubeconfig, *arguments)
        self.output = done.stdout + done.stderr
        phase = "Failed" if done.returncode else "Succeeded"
        path = f"/api/v1/namespaces/{NAMESPACE}/pods/{TEST_POD}/status"
        patch = json.dumps({"status": {"phase": phase}})
        with self._cluster.open_client() as client:
            headers = {"content-type": "application/merge-patch+json"}
            client.patch(path, content=patch, headers=headers).raise_for_status()


def run_module(cluster: ControlPlane, module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command of ours with the settings of the release."""
    (settings,) = (
        item["data"] for item in list_items(cluster, "configmaps") if item["metadata"]["name"] == "schedulerlog"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SCHEDULERLOG_")}
    command = [sys.executable, "-m", module, *arguments]
    return subprocess.run(command, env=environment | settings, capture_output=True, text=True, check=False, timeout=120)


@contextmanager
def running_tests(cluster: ControlPlane, folder: Path) -> Iterator[Kubelet]:
    kubelet = Kubelet(cluster, folder)
    kubelet.start()
    try:
        yield kubelet
    finally:
        kubelet.stop()


def test_the_test_of_a_release_is_the_doctor(
    cluster: ControlPlane, helm: Helm, installed: tuple[str, ...], tmp_path: Path
) -> None:
    test = ("test", RELEASE, "-n", NAMESPACE, "--timeout", "2m")
    # The Jobs' work: kwok's pods do none.
    provisioned = run_module(cluster, "pipeline", "provision")
    assert provisioned.returncode == 0, provisioned.stderr
    secret = ("secret", "generic", "schedulerlog-api-tls", "-n", NAMESPACE)
    cluster.run_kubectl("create", *secret, *(f"--from-literal={key}=x" for key in ("ca.crt", "tls.crt", "tls.key")))
    try:
        with running_tests(cluster, tmp_path) as kubelet:
            done = helm.run(*test, cluster=cluster)
            assert done.returncode == 0, kubelet.output
            assert "Phase:          Succeeded" in done.stdout
            assert all(store in kubelet.output for store in ("Kafka", "OpenSearch", "Kubernetes"))
            run(helm, cluster, "upgrade", RELEASE, str(CHART), *installed, "--set", f"opensearch.url={NOWHERE}")
            refused = helm.run(*test, cluster=cluster)
            assert refused.returncode != 0, kubelet.output
            assert NOWHERE.rpartition("/")[2] in kubelet.output
    finally:
        cluster.run_kubectl("delete", "secret", "schedulerlog-api-tls", "-n", NAMESPACE)
