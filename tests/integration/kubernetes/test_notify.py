"""`pipeline notify` on a real API server with the rights of its component: annotations, receivers, memory, restarts;
and the same as a part of `schedulerlog all`.

kube-scheduler refuses and binds the pods, controllers make the Deployment's, the API of schedulerlog lists what waits.
"""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import yaml
from anyio.from_thread import start_blocking_portal

from dev.demo.processes import find_free_ports
from dev.embedded.control_plane import ControlPlane
from pipeline.notify.subscriptions import ANNOTATION
from tests.support.control_plane.deployed import KUSTOMIZE, NAMESPACE, apply, build, combine, emptied, select_kinds
from tests.support.control_plane.objects import MERGE_PATCH, annotate, create, created_nodes
from tests.support.control_plane.rights import list_granted, read_requests
from tests.support.control_plane.service_account import a_kubeconfig, write_token
from tests.support.harness.api_process import Served
from tests.support.harness.forked import Forked
from tests.support.harness.watched_cluster import watched_api
from tests.support.reused_backends import reused_backends
from tests.support.smtp_receiver import SmtpReceiver, receiving_mail
from tests.support.waiting import until
from tests.support.webhook_receiver import Receiver, receiving

ACCOUNT: Final = "schedulerlog-notify"
RIGHTS: Final = ("Namespace", "ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")
MEMORY: Final = f"/api/v1/namespaces/{NAMESPACE}/configmaps/{ACCOUNT}"
SMALL: Final = {"cpu": "1", "memory": "4Gi", "ephemeral-storage": "10Gi", "pods": "110"}
LARGE: Final = SMALL | {"cpu": "16"}
TAINT: Final = {"key": "maintenance", "effect": "NoSchedule"}
CONTAINER: Final = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "2"}}}
IN_ONE: Final = ("--without=alerts", "--without=retention", "--without=events")


@dataclass
class Notifying:
    """The process as its manifest starts it; ``receivers`` take what it sends."""

    command: list[str]
    log: Path
    webhook: Receiver
    bus: Receiver
    mail: SmtpReceiver
    processes: dict[str, Forked] = field(default_factory=dict)

    def start(self, pod: str = "notify-a", **settings: str) -> None:
        with self.log.open("ab") as log:
            environment = os.environ | {"POD_NAMESPACE": NAMESPACE, "POD_NAME": pod} | settings
            self.processes[pod] = Forked(*self.command, stdout=log, stderr=log, env=environment)

    def kill(self, pod: str = "notify-a") -> None:
        process = self.processes.pop(pod)
        process.kill()
        process.wait(timeout=60)

    def stop(self, pod: str) -> None:
        process = self.processes.pop(pod)
        process.terminate()
        process.wait(timeout=60)

    def read_texts(self) -> tuple[list[str], list[str], list[str]]:
        """Read what each receiver has by now: first words of the webhook's, types and obstacles, subjects of mail."""
        webhook = [text.splitlines()[0].partition(":")[0] for text in self.webhook.texts]
        bus = [f"{event['type'].split('.')[3]} {event['data']['obstacle']}".strip() for event in self.bus.bodies]
        return webhook, bus, sorted(str(mail["Subject"]) for mail in self.mail.mails)


@contextmanager
def notifying(cluster: ControlPlane, folder: Path, api_url: str = "") -> Iterator[Notifying]:
    """The process with the rights of the rendered component, and its targets; it is not started yet.

    Without the URL of an API it is the one process, as an administrator.
    """
    objects = build(cluster, combine(folder / "overlay", KUSTOMIZE / "base", ["notify"]))
    with (
        emptied(cluster),
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(receiving()) as webhook,
        portal.wrap_async_context_manager(receiving()) as bus,
        portal.wrap_async_context_manager(receiving_mail()) as mail,
    ):
        apply(cluster, select_kinds(objects, *RIGHTS))
        write_token(cluster, NAMESPACE, ACCOUNT, folder / "account")
        (folder / "hook.url").write_text(webhook.url)
        sender = {"security": "none", "from": "schedulerlog@example.org", "to": ["ml@example.org"]}
        targets = {
            "hook": {"kind": "webhook", "url_file": str(folder / "hook.url")},
            "bus": {"kind": "cloudevents", "url": bus.url},
            "people": {"kind": "mail", "smtp": mail.address, **sender},
        }
        (folder / "targets.yaml").write_text(yaml.safe_dump(targets))
        command = [
            *(["pipeline", "notify", f"--api-url={api_url}"] if api_url else ["schedulerlog", "all", *IN_ONE]),
            f"--targets={folder}/targets.yaml", "--settle=3s",
            f"--kubeconfig={a_kubeconfig(folder / 'account', cluster) if api_url else cluster.kubeconfig}",
        ]  # fmt: skip
        running = Notifying(command, folder / "notify.log", webhook, bus, mail)
        try:
            yield running
        finally:
            for pod in list(running.processes):
                running.stop(pod)


def subscribe(client: httpx.Client, namespace: str) -> None:
    """Create a pod, a Deployment and their namespace, each with an annotation of its own target."""
    annotate(client, f"/api/v1/namespaces/{namespace}", {ANNOTATION: "people"})
    pod = {"metadata": {"name": "lone", "annotations": {ANNOTATION: "hook"}}, "spec": {"containers": [CONTAINER]}}
    create(client, f"/api/v1/namespaces/{namespace}/pods", pod)
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [CONTAINER]}}
    spec = {"selector": {"matchLabels": {"app": "web"}}, "template": template}
    metadata = {"name": "web", "annotations": {ANNOTATION: "bus"}}
    create(client, f"/apis/apps/v1/namespaces/{namespace}/deployments", {"metadata": metadata, "spec": spec})


def wait_for_obstacle(
    api: Served, pods: Callable[[], list[str]], count: int, code: str = "ResourceNeverEnough"
) -> None:
    """Wait until kube-scheduler's reason for so many pods is known: before it, a slow machine has another obstacle."""

    def list_known() -> list[str]:
        answers = [api.get(f"/api/v1/namespaces/{name.replace('/', '/pods/')}/diagnosis") for name in pods()]
        obstacles = [answer.json().get("obstacle") for answer in answers if answer.is_success]
        return [obstacle["code"] for obstacle in obstacles if obstacle]

    until(list_known, lambda codes: codes == [code] * count)


def patch(client: httpx.Client, path: str, change: dict[str, Any]) -> None:
    client.patch(path, content=json.dumps(change), headers=MERGE_PATCH).raise_for_status()


def read_remembered(client: httpx.Client) -> list[Any]:
    """Read the workloads in the memory's ConfigMap."""
    answer = client.get(MEMORY)
    rows: list[Any] = json.loads(answer.json()["data"]["sent.json"]) if answer.is_success else []
    return rows


def find_holder(client: httpx.Client) -> str:
    """Find the pod that holds the lease."""
    answer = client.get(f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/{ACCOUNT}")
    holder = answer.json()["spec"]["holderIdentity"] if answer.is_success else ""
    return str(holder).partition("_")[0]


def wait_until_remembered(client: httpx.Client, code: str) -> None:
    """Wait until the memory has a message about this obstacle for each target of both workloads."""

    def list_codes() -> list[str]:
        return [sent[0] for *_, targets in read_remembered(client) for sent in targets.values()]

    until(list_codes, lambda codes: codes == 4 * [code])


@pytest.mark.timeout(600)
def test_of_two_processes_one_sends_and_the_other_takes_over(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    control_plane.start_scheduler({})
    name = f"{namespace}-0"
    status = {"allocatable": SMALL, "capacity": SMALL}
    node = {"metadata": {"name": name}, "status": status}
    with (
        control_plane.open_client() as client,
        created_nodes(control_plane, [node]),
        watched_api(control_plane.kubeconfig, tmp_path) as api,
        notifying(control_plane, tmp_path, str(api.client.base_url).rstrip("/")) as notify,
    ):
        pods = f"/api/v1/namespaces/{namespace}/pods"

        def list_waiting() -> list[str]:
            items = client.get(pods).json()["items"]
            return [f"{namespace}/{pod['metadata']['name']}" for pod in items if not pod["spec"].get("nodeName")]

        subscribe(client, namespace)
        wait_for_obstacle(api, list_waiting, 2)
        notify.start("notify-a")
        notify.start("notify-b")
        lone, web = f"{namespace}/Pod/lone", f"{namespace}/Deployment/web"
        waits = [f"{lone} waits"], ["waits ResourceNeverEnough"], [f"{web} waits", f"{lone} waits"]
        until(notify.read_texts, lambda texts: list(map(len, texts)) == [1, 1, 2])
        assert notify.read_texts() == waits
        wait_until_remembered(client, "ResourceNeverEnough")

        holder = find_holder(client)
        (other,) = notify.processes.keys() - {holder}
        notify.kill(holder)
        patch(client, f"/api/v1/nodes/{name}", {"spec": {"taints": [TAINT]}})
        patch(client, f"/api/v1/nodes/{name}/status", {"status": {"allocatable": LARGE, "capacity": LARGE}})
        # A pod is not tried again for a node that it does not tolerate, except by a scheduler that starts.
        control_plane.start_scheduler({})
        # What a pod waits for between these steps is no news that this test counts.
        wait_for_obstacle(api, list_waiting, 2, "TaintNotTolerated")
        until(notify.read_texts, lambda texts: list(map(len, texts)) == [2, 2, 4])
        assert notify.read_texts() == (
            2 * waits[0], [*waits[1], "waits TaintNotTolerated"], sorted(2 * waits[2])
        )  # fmt: skip
        wait_until_remembered(client, "TaintNotTolerated")
        assert find_holder(client) == other

        # A process that stops gives the lease up.
        notify.stop(other)
        assert find_holder(client) == ""
        patch(client, f"/api/v1/nodes/{name}", {"spec": {"taints": None}})
        until(lambda: all(pod["spec"].get("nodeName") for pod in client.get(pods).json()["items"]))
        notify.start()
        until(notify.read_texts, lambda texts: list(map(len, texts)) == [3, 3, 6])
        until(lambda: read_remembered(client), lambda rows: not rows)
        texts = notify.read_texts()
        assert (texts[0][2], texts[1][2]) == (f"{lone} started", "started")
        assert [text for text in texts[2] if "started" in text] == [f"{web} started", f"{lone} started"]

        notify.stop("notify-a")
        # A later message shows that the process has read the list, and what it did not send again.
        later = {"metadata": {"name": "other", "annotations": {ANNOTATION: "hook"}}}
        large = {**CONTAINER, "resources": {"requests": {"cpu": "32"}}}
        create(client, pods, {**later, "spec": {"containers": [large]}})
        wait_for_obstacle(api, list_waiting, 1)
        notify.start()
        until(notify.read_texts, lambda texts: len(texts[0]) == 4)
        until(notify.read_texts, lambda texts: list(map(len, texts)) == [4, 3, 7])
    ids = [event["id"] for event in notify.bus.bodies]
    assert len(set(ids)) == len(ids)
    check_rights(control_plane, tmp_path)


@pytest.mark.timeout(600)
def test_the_one_process_sends_messages_too_and_its_readiness_names_the_part(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    control_plane.start_scheduler({})
    name = f"{namespace}-0"
    node = {"metadata": {"name": name}, "status": {"allocatable": SMALL, "capacity": SMALL}}
    ports = find_free_ports("api", "metrics")
    with (
        control_plane.open_client() as client,
        created_nodes(control_plane, [node]),
        reused_backends.taken() as servers,
        notifying(control_plane, tmp_path) as notify,
        httpx.Client(base_url=f"http://127.0.0.1:{ports['api']}", timeout=30) as asking,
    ):
        subscribe(client, namespace)
        environment = servers.environment | {
            "SCHEDULERLOG_API_LISTEN": ports["api"], "SCHEDULERLOG_METRICS_ADDRESS": ports["metrics"],
        }  # fmt: skip
        notify.start(**environment)
        until(notify.read_texts, lambda texts: list(map(len, texts)) == [1, 1, 2])
        lone, web = f"{namespace}/Pod/lone", f"{namespace}/Deployment/web"
        waits = [f"{lone} waits"], ["waits ResourceNeverEnough"], [f"{web} waits", f"{lone} waits"]
        assert notify.read_texts() == waits
        wait_until_remembered(client, "ResourceNeverEnough")
        until(lambda: httpx.get(f"http://127.0.0.1:{ports['metrics']}/readyz", timeout=30).text.splitlines(), is_ready)

        notify.kill()
        notify.start(**environment)
        patch(client, f"/api/v1/nodes/{name}/status", {"status": {"allocatable": LARGE, "capacity": LARGE}})
        until(notify.read_texts, lambda texts: list(map(len, texts)) == [2, 2, 4])
        texts = notify.read_texts()
        assert (texts[0][1], texts[1][1]) == (f"{lone} started", "started")
        until(lambda: read_remembered(client), lambda rows: not rows)
        # A pod of another test that was deleted while no process watched waits still (docs/guarantees-limits.md).
        here = {"namespace": namespace}
        until(lambda: asking.get("/api/v1/pending", params=here).json()["pods"], lambda pods: pods == 0)


def is_ready(lines: list[str]) -> bool:
    """Tell whether every part is ready, the messenger among them."""
    return "notify: ok" in lines and all(line.endswith(": ok") for line in lines)


def check_rights(cluster: ControlPlane, folder: Path) -> None:
    """Check that nothing was refused to the account, and that it used its rights about objects of this test."""
    requests = read_requests(cluster, NAMESPACE, ACCOUNT)
    assert [request for request in requests if request.status in (401, 403)] == []
    granted = set(list_granted(build(cluster, folder / "overlay"), ACCOUNT))
    used = {right for right in granted if any(request.uses(right) for request in requests)}
    unused = {right.resource for right in granted - used}
    # The API of this test asks for no rights; the other workloads are read as the Deployment is.
    assert unused == {"pods/schedulerlog", "jobs", "cronjobs", "statefulsets", "daemonsets"}
