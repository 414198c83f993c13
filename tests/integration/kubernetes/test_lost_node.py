"""The node of the leading scheduler is lost: kube-scheduler and its extender, in pairs as their manifest has them."""

import os
import shutil
import time
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, closing
from pathlib import Path

import httpx
import pytest
import yaml

from dev.embedded.control_plane import ControlPlane
from dev.embedded.control_plane.programs import KubeScheduler
from dev.embedded.ports import KUBERNETES_PORTS, find_free_port
from dev.embedded.process import ParentWatch
from runtime.http.certificate_authority import Authority
from tests.support.backends import Addresses
from tests.support.control_plane.bookkeeping import find_overbooked, list_astray, list_placements, wait_for_agreement
from tests.support.control_plane.device_plugins import DevicePlugins
from tests.support.control_plane.extender_process import DEPLOYED, Extender, build_scheduler_configuration
from tests.support.control_plane.objects import a_gpu_node, a_gpu_pod, create, create_pods, created_nodes, list_pods
from tests.support.harness.topics import provision_all
from tests.support.waiting import eventually

NAME = "hami-lost"
MAX_GAP_SECONDS = 20
NODES, PODS = 4, 12

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a process a hostname of its own")


class NamedKubeScheduler(KubeScheduler):
    """kube-scheduler in a pod: on a host of that name."""

    def build_command(self) -> list[str]:
        unshare = shutil.which("unshare")
        assert unshare
        return [unshare, "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', self.name, *super().build_command()]


class SchedulerPod:
    """The two containers of the StatefulSet's pod; the settings of their election are those of the manifests."""

    def __init__(
        self, name: str, cluster: ControlPlane, namespace: str, kafka: str, folder: Path, watch: ParentWatch
    ) -> None:
        self.name = name
        flags = [flag.replace("$(POD_NAMESPACE)", namespace) for flag in list_election_flags()]
        authority = Authority.create("the tests' authority")
        self.extender = Extender(folder / name, cluster.kubeconfig, authority, NAME, "--kafka", kafka, *flags)
        lease = yaml.safe_load(DEPLOYED.read_text())["leaderElection"]
        self._lease = lease | {"resourceNamespace": namespace}
        self.kube_scheduler = NamedKubeScheduler(
            name, folder / f"{name}-kube-scheduler", find_free_port(KUBERNETES_PORTS), cluster.binary, watch,
            credentials=cluster.credentials, configuration={},
        )  # fmt: skip

    def start(self) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("POD_NAME", self.name)
            self.extender.start(until_ready=False)
        configuration = build_scheduler_configuration(self.extender.url, self.extender.ca, NAME)
        self.kube_scheduler.configuration = configuration | {"leaderElection": self._lease}
        self.kube_scheduler.start()

    def lose_node(self) -> None:
        """End both at once, without a word to anybody."""
        self.kube_scheduler.kill()
        if self.extender.is_alive:
            self.extender.kill()


def list_election_flags() -> list[str]:
    """List those flags of the manifest that are about the Lease."""
    documents = yaml.safe_load_all((DEPLOYED.parent / "scheduler.yaml").read_text())
    (stateful_set,) = (item for item in documents if item["kind"] == "StatefulSet")
    containers = stateful_set["spec"]["template"]["spec"]["containers"]
    (scheduler,) = (container for container in containers if container["name"] == "scheduler")
    flags = [flag for flag in scheduler["args"] if flag.startswith("--leader-elect")]
    assert "--leader-elect-with-kube-scheduler" in flags
    return flags


@pytest.fixture
async def pods(
    control_plane: ControlPlane, backends: Addresses, namespace: str, tmp_path: Path
) -> AsyncIterator[list[SchedulerPod]]:
    await provision_all(backends.bootstrap_servers)
    let_kube_scheduler_lead(control_plane, namespace)
    with ExitStack() as stack:
        watch = stack.enter_context(closing(ParentWatch()))
        scheduler_pods = []
        for number in range(2):
            name = f"schedulerlog-scheduler-{number}"
            scheduler_pods.append(
                SchedulerPod(name, control_plane, namespace, backends.bootstrap_servers, tmp_path, watch)
            )
            stack.callback(scheduler_pods[-1].lose_node)
            scheduler_pods[-1].start()
        yield scheduler_pods


def let_kube_scheduler_lead(cluster: ControlPlane, namespace: str) -> None:
    """Give kube-scheduler the Leases of the namespace, as the manifests give them to its account."""
    rule = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create", "get", "update"]}
    subject = {"kind": "User", "name": "system:kube-scheduler", "apiGroup": "rbac.authorization.k8s.io"}
    ref = {"kind": "Role", "name": "leases", "apiGroup": "rbac.authorization.k8s.io"}
    path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
    with cluster.open_client() as client:
        create(client, f"{path}/roles", {"metadata": {"name": "leases"}, "rules": [rule]})
        create(client, f"{path}/rolebindings", {"metadata": {"name": "leases"}, "subjects": [subject], "roleRef": ref})


def find_holder(client: httpx.Client, namespace: str) -> str:
    """Find the pod that holds the Lease."""
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/schedulerlog-scheduler"
    return str(client.get(path).json().get("spec", {}).get("holderIdentity", "")).rpartition("_")[0]


async def test_the_next_decision_comes_within_20_s_and_no_device_is_given_away_twice(
    control_plane: ControlPlane,
    pods: list[SchedulerPod],
    backends: Addresses,
    namespace: str,
    figure: Callable[[str], None],
) -> None:
    nodes = [a_gpu_node(f"{namespace}-{number}") for number in range(NODES)]
    gaps = []
    with (
        created_nodes(control_plane, nodes),
        DevicePlugins(control_plane, namespace),
        control_plane.open_client() as client,
    ):
        for number in range(2):
            create_pods(client, namespace, [a_gpu_pod(f"before-{number}-{n}", NAME, gpumem=13000) for n in range(PODS)])
            await_all(client, namespace)
            holder = find_holder(client, namespace)
            (leader,) = (pod for pod in pods if pod.name == holder)
            assert leader.extender.is_ready()
            began = time.monotonic()
            leader.lose_node()
            create_pods(client, namespace, [a_gpu_pod(f"after-{number}", NAME, gpumem=13000)])
            await_all(client, namespace)
            gaps.append(round(time.monotonic() - began, 1))
            assert find_holder(client, namespace) != holder
            # The node comes back.
            leader.start()
        placed_pods = list_pods(client, namespace)
        assert find_overbooked(list_placements(placed_pods).values()) == {}
        assert list_astray(placed_pods) == []
        await wait_for_agreement(backends.bootstrap_servers, namespace, placed_pods)
    figure(f"lost node: {len(placed_pods)} pods; the first one after each loss was bound after {gaps} s")
    assert max(gaps) < MAX_GAP_SECONDS


def await_all(client: httpx.Client, namespace: str) -> None:
    """Return when every pod of the namespace is bound."""
    eventually(lambda: all(pod["spec"].get("nodeName") for pod in list_pods(client, namespace)), "some are not bound")
