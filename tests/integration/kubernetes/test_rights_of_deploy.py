"""The rights that deploy/kustomize gives: every process does its work with them, and every one of them is used.

Each process runs with the arguments of its manifest, as its service account, against the real API server; the API
server's audit log counts.
"""

import asyncio
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiokafka import AIOKafkaProducer

from dev.embedded.control_plane import ControlPlane
from dev.embedded.ports import KUBERNETES_PORTS, find_free_port
from schemas.codec.records import encode
from schemas.events import MessageLine, MessagesEmitted, PodRef
from schemas.json_types import Json
from schemas.topics import MESSAGES
from tests.support.backends import Addresses
from tests.support.control_plane.deployed import (
    KUSTOMIZE,
    NAMESPACE,
    apply,
    build,
    build_definition,
    combine,
    emptied,
    list_pod_templates,
    select_kinds,
)
from tests.support.control_plane.kubelet import CONTAINER, serving_the_log_of
from tests.support.control_plane.objects import (
    a_gpu_node,
    a_gpu_pod,
    annotate,
    create,
    created_namespace,
    created_nodes,
)
from tests.support.control_plane.rights import Request, Right, list_granted, read_requests
from tests.support.control_plane.service_account import a_kubeconfig, write_token
from tests.support.harness.forked import Forked
from tests.support.harness.topics import provision_all
from tests.support.waiting import eventually

RIGHTS = ("Namespace", "ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")
OF_JUDGE = {
    (group, resource)
    for component in ("kube-events-objects", "kube-events-workloads")
    for item in yaml.safe_load_all(Path(f"deploy/kustomize/components/{component}/rights.yaml").read_text())
    for rule in item.get("rules", ())
    for group in rule["apiGroups"]
    for resource in rule["resources"]
}
"""Groups and resources that `ingest kube-events` reads where it may."""
PROCESSES = ("scheduler", "kube-events", "events", "hami-log")
OURS = "schedulerlog"
"""Names in the user agent of our own clients."""
NODE = "rights-node"


def _build_node() -> Json:
    """Build the node that is the scheduler's by its label."""
    node = a_gpu_node(NODE)
    node["metadata"].setdefault("labels", {})["schedulerlog.io/scheduler"] = "schedulerlog"
    return node


class Deployed:
    """Processes as their manifests start them, but for what has to be another place on this machine."""

    def __init__(self, cluster: ControlPlane, objects: list[Json], kafka: str, folder: Path) -> None:
        self.cluster, self.objects, self.folder = cluster, objects, folder
        self._kafka = kafka

    def write_kubeconfig(self, name: str) -> Path:
        folder = self.folder / name
        write_token(self.cluster, NAMESPACE, f"schedulerlog-{name}", folder)
        return a_kubeconfig(folder, self.cluster)

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text()

    @contextmanager
    def running(self, name: str, *others: str) -> Iterator[None]:
        """``others``: arguments in the place of the manifest's."""
        (pod,) = [spec for kind, spec in list_pod_templates(self.objects) if kind.endswith(f"/schedulerlog-{name}")]
        # As the kubelet writes the variables of a container into its arguments.
        written = (word.replace("$(POD_NAMESPACE)", NAMESPACE) for word in pod["containers"][0]["args"])
        package, *arguments = written
        command = [package, *arguments, "--kubeconfig", str(self.write_kubeconfig(name)), *others]
        environment = os.environ | {
            "SCHEDULERLOG_KAFKA_BOOTSTRAP_SERVERS": self._kafka,
            "POD_NAME": socket.gethostname(),
        }
        with (self.folder / f"{name}.log").open("ab") as log:
            process = Forked(*command, stdout=log, stderr=log, env=environment)
            try:
                yield
            finally:
                process.terminate()
                process.wait(timeout=120)

    def list_requests(self, name: str) -> list[Request]:
        return read_requests(self.cluster, NAMESPACE, f"schedulerlog-{name}")

    def has_asked(self, name: str, verb: str, resource: str) -> bool:
        ours = (request for request in self.list_requests(name) if OURS in request.agent)
        return any((our.verb, our.resource) == (verb, resource) for our in ours)

    def wait_for(self, name: str, *rights: tuple[str, str]) -> None:
        def list_missing() -> list[tuple[str, str]]:
            return [right for right in rights if not self.has_asked(name, *right)]

        eventually(lambda: not list_missing(), lambda: f"not asked for: {list_missing()}\n{self.log(name)}")


@pytest.fixture(scope="module")
def done(
    control_plane: ControlPlane, backends: Addresses, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Deployed]:
    """All processes have done what each of their rights is for."""
    folder = tmp_path_factory.mktemp("rights")
    asyncio.run(provision_all(backends.bootstrap_servers))
    parts = ["kube-events", "events", "scheduler", "hami-log", "kai-log"]
    everything = combine(folder / "all", KUSTOMIZE / "base", parts)
    objects = build(control_plane, everything)
    deployed = Deployed(control_plane, objects, backends.bootstrap_servers, folder)
    rights = select_kinds(objects, *RIGHTS)
    with ExitStack() as stack:
        stack.enter_context(emptied(control_plane))
        apply(control_plane, [*rights, build_definition("scheduling.run.ai/v2alpha2", "PodGroup")])
        stack.callback(control_plane.run_kubectl, "delete", "crd", "podgroups.scheduling.run.ai")
        stack.enter_context(created_namespace(control_plane, "rights-work"))
        stack.enter_context(created_nodes(control_plane, [_build_node()]))
        _work(deployed, stack)
        yield deployed


def _work(deployed: Deployed, stack: ExitStack) -> None:
    """Let every process work until it has used what it is allowed."""
    cluster, folder = deployed.cluster, deployed.folder
    port = find_free_port(KUBERNETES_PORTS)
    log = stack.enter_context(serving_the_log_of(cluster, "kube-system", "hami-scheduler-abc", folder / "kubelet"))
    metrics = "--metrics-address=127.0.0.1:0"
    pod = f"--pod=kube-system/hami-scheduler-*/{CONTAINER}"
    stack.enter_context(deployed.running("hami-log", pod, f"--checkpoint={folder}/checkpoint", metrics))
    stack.enter_context(deployed.running("kube-events", metrics))
    stack.enter_context(deployed.running("events", metrics, "--linger=0s"))
    places = (f"--listen=127.0.0.1:{port}", f"--spool={folder}/spool", "--metrics-bind-address=127.0.0.1:0")
    stack.enter_context(deployed.running("scheduler", *places))
    # In their pod kube-scheduler asks again; here a pod that met no extender would wait for seconds.
    eventually(lambda: "answering kube-scheduler on" in deployed.log("scheduler"), lambda: deployed.log("scheduler"))
    cluster.start_scheduler(_build_kube_scheduler(deployed, port))
    log.write([b"a line"])
    with cluster.open_client() as client:
        _work_of_the_scheduler(deployed, client)
        _work_of_kube_events(deployed, client)
        _work_of_events(deployed, client)
    deployed.wait_for("hami-log", ("list", "nodes"), ("list", "pods"), ("get", "pods/log"))


def _build_kube_scheduler(deployed: Deployed, port: int) -> Json:
    """Build the configuration that is deployed, with the extender's port on this machine."""
    (document,) = [
        config_map
        for config_map in select_kinds(deployed.objects, "ConfigMap")
        if config_map["metadata"]["name"].startswith("schedulerlog-kube-scheduler-")
    ]
    configuration: Json = yaml.safe_load(document["data"]["scheduler.yaml"])
    assert configuration["extenders"][0]["urlPrefix"] == "http://127.0.0.1:8443"
    # An argument of its container, which this one is started without.
    configuration["leaderElection"]["resourceNamespace"] = NAMESPACE
    configuration["extenders"][0]["urlPrefix"] = f"http://127.0.0.1:{port}"
    return configuration | {"clientConnection": {"kubeconfig": str(deployed.write_kubeconfig("kube-scheduler"))}}


def _work_of_the_scheduler(deployed: Deployed, client: Any) -> None:
    # The lock of a pod that does not exist any more: the scheduler reads node and pod before it takes the lock over.
    stamp = (datetime.now(UTC) - timedelta(seconds=30)).strftime("%Y-%m-%dT%H:%M:%SZ")
    annotate(client, f"/api/v1/nodes/{NODE}", {"hami.io/mutex.lock": f"{stamp},rights-work,gone"})
    create(client, "/api/v1/namespaces/rights-work/pods", a_gpu_pod("trainer", "schedulerlog", gpumem=3000))

    def is_bound() -> bool:
        return bool(client.get("/api/v1/namespaces/rights-work/pods/trainer").json()["spec"].get("nodeName"))

    def explain() -> str:
        pod = client.get("/api/v1/namespaces/rights-work/pods/trainer").json()
        refused = [request for request in deployed.list_requests("scheduler") if request.status in (401, 403)]
        return f"{pod['status']} {refused} {deployed.log('scheduler')}"

    eventually(is_bound, explain)


def _work_of_kube_events(deployed: Deployed, client: Any) -> None:
    """Create a pod of a Deployment and one of a CronJob."""
    container = {"name": "main", "image": "none"}
    template = {"metadata": {"labels": {"app": "x"}}, "spec": {"schedulerName": "nobody", "containers": [container]}}
    spec = {"selector": {"matchLabels": {"app": "x"}}, "template": template}
    create(client, "/apis/apps/v1/namespaces/rights-work/deployments", {"metadata": {"name": "d"}, "spec": spec})
    never = {"schedule": "0 0 30 2 *", "jobTemplate": {"spec": {"template": template}}}
    never["jobTemplate"]["spec"]["template"]["spec"] |= {"restartPolicy": "Never"}  # type: ignore[index]
    create(client, "/apis/batch/v1/namespaces/rights-work/cronjobs", {"metadata": {"name": "c"}, "spec": never})
    deployed.cluster.run_kubectl("create", "job", "j", "--from=cronjob/c", "-n", "rights-work")
    owners = [("get", name) for name in ("replicasets", "deployments", "jobs", "cronjobs")]
    watched = [(verb, name) for name in ("pods", "nodes", "events", "podgroups") for verb in ("list", "watch")]
    claims = [(verb, "resourceclaims") for verb in ("list", "watch")]
    deployed.wait_for("kube-events", *watched, *owners, *claims)


def _work_of_events(deployed: Deployed, client: Any) -> None:
    """Send a message that makes an event, and a second one that is counted by it although it has changed meanwhile."""
    servers = deployed._kafka

    def send(number: int) -> None:
        now = datetime.now(UTC)
        message = MessagesEmitted(
            cluster="default", pod=PodRef(namespace="rights-work", name="trainer"), scheduler="schedulerlog",
            attempt_id=f"rights-{number}", started_at=now, reported_at=now, severity="Warning",
            reason="FilteringFailed", lines=[MessageLine(code="CardInsufficientMemory", message="no node")],
        )  # fmt: skip
        asyncio.run(_send(servers, message))

    send(1)
    events = "/apis/events.k8s.io/v1/namespaces/rights-work/events"
    managed = {"labelSelector": "app.kubernetes.io/managed-by"}
    items: Callable[[], list[Json]] = lambda: client.get(events, params=managed).json()["items"]  # noqa: E731
    eventually(items, lambda: deployed.log("events"))
    annotate(client, f"{events}/{items()[0]['metadata']['name']}", {"somebody": "was here"})
    send(2)
    deployed.wait_for("events", ("list", "events"), ("get", "pods"), ("create", "events"), ("patch", "events"))
    deployed.wait_for("events", ("get", "events"))


async def _send(servers: str, message: MessagesEmitted) -> None:
    record = encode(message)
    async with AIOKafkaProducer(bootstrap_servers=servers) as producer:
        await producer.send_and_wait(MESSAGES.name, record.value, key=record.key, headers=record.headers)


@pytest.mark.parametrize("name", PROCESSES)
def test_every_right_is_used(done: Deployed, name: str) -> None:
    requests = [
        request for request in done.list_requests(name) if OURS in request.agent or request.resource == "leases"
    ]
    rights = set(list_granted(done.objects, f"schedulerlog-{name}"))
    assert rights
    assert {right for right in rights if not any(request.uses(right) for request in requests)} == set[Right]()


@pytest.mark.parametrize("name", PROCESSES)
def test_nothing_is_asked_for_that_is_not_allowed(done: Deployed, name: str) -> None:
    refused = [request for request in done.list_requests(name) if request.status in (401, 403)]
    # Owners of pods that other tests have left in the namespace are of kinds that nothing here reads.
    refused = [request for request in refused if request.group != "apps" or request.namespace != NAMESPACE]
    # An attempt names the objects that a component would let it be judged on.
    assert [request for request in refused if (request.group, request.resource) not in OF_JUDGE] == []


def test_the_rights_of_the_other_readers_are_those_that_were_counted(done: Deployed) -> None:
    def list_rules(name: str) -> list[Json]:
        (role,) = [
            item for item in select_kinds(done.objects, "Role") if item["metadata"]["name"] == f"schedulerlog-{name}"
        ]
        rules: list[Json] = role["rules"]
        return rules

    # The same code reads both logs.
    assert list_rules("kai-log") == list_rules("hami-log")


def test_every_account_with_a_right_was_counted(done: Deployed) -> None:
    bindings = select_kinds(done.objects, "ClusterRoleBinding", "RoleBinding")
    bound = {subject["name"].removeprefix("schedulerlog-") for binding in bindings for subject in binding["subjects"]}
    # What the API and the Job of its certificate use is counted in test_aggregated_api.py.
    # kube-scheduler has the rights that Kubernetes itself gives to one.
    assert bound == {*PROCESSES, "kai-log", "api", "certificate", "kube-scheduler"}
