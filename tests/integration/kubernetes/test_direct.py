"""``schedulerlog why POD`` on a real cluster without any service of ours, for users with different rights."""

import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from cli.terminal.kubectl import app
from dev.embedded.control_plane import ControlPlane
from dev.embedded.control_plane.folder import link_kubectl
from schemas.json_types import Json
from tests.support.control_plane.objects import create, created_namespace, created_nodes
from tests.support.control_plane.service_account import a_kubeconfig, service_account
from tests.support.waiting import eventually

RBAC = "/apis/rbac.authorization.k8s.io/v1"
READ = ["get", "list", "watch"]
OF_CLUSTER = [
    {"apiGroups": [""], "resources": ["nodes", "pods", "events", "persistentvolumeclaims"], "verbs": READ},
    {"apiGroups": [""], "resources": ["resourcequotas", "persistentvolumes"], "verbs": READ},
    {"apiGroups": ["storage.k8s.io"], "resources": ["*"], "verbs": READ},
]
Ask = Callable[..., Result]


def a_cpu_node(name: str) -> Json:
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    return {"metadata": {"name": name, "annotations": {"kwok.x-k8s.io/node": "fake"}},
            "status": {"allocatable": amounts, "capacity": amounts}}  # fmt: skip


def a_large_pod(name: str) -> Json:
    resources = {"requests": {"cpu": "64"}, "limits": {"cpu": "64"}}
    return {"metadata": {"name": name},
            "spec": {"containers": [{"name": "c", "image": "i", "resources": resources}]}}  # fmt: skip


@pytest.fixture(scope="module")
def namespace(control_plane: ControlPlane) -> Iterator[str]:
    """A namespace with a pod that asks for more CPU than any node has, refused by the real kube-scheduler."""
    control_plane.start_scheduler({})
    name = f"direct-{uuid.uuid4().hex[:8]}"
    with ExitStack() as stack:
        stack.enter_context(created_namespace(control_plane, name))
        stack.enter_context(created_nodes(control_plane, [a_cpu_node(f"{name}-{index}") for index in range(3)]))
        client = stack.enter_context(control_plane.open_client())
        pod = create(client, f"/api/v1/namespaces/{name}/pods", a_large_pod("large"))["metadata"]["name"]

        def is_refused() -> bool:
            status = client.get(f"/api/v1/namespaces/{name}/pods/{pod}").json()["status"]
            return any("Insufficient cpu" in condition.get("message", "") for condition in status.get("conditions", []))

        eventually(is_refused, "kube-scheduler has not refused the pod")
        yield name


@pytest.fixture(scope="module")
def ask(control_plane: ControlPlane, namespace: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    """The command with the kubeconfig of an account: ``own`` reads its namespace, ``viewer`` the cluster."""
    folder = tmp_path_factory.mktemp("direct")
    link_kubectl(folder, control_plane.binary)
    with ExitStack() as stack:
        viewer = service_account(control_plane, namespace, OF_CLUSTER, folder / "viewer")
        tenant = service_account(control_plane, namespace, [], folder / "own")
        stack.enter_context(viewer)
        account = stack.enter_context(tenant)
        with control_plane.open_client() as client:
            subject = {"kind": "ServiceAccount", "name": account, "namespace": namespace}
            role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
            binding = {"metadata": {"name": "own"}, "subjects": [subject], "roleRef": role}
            create(client, f"{RBAC}/namespaces/{namespace}/rolebindings", binding)
        yield lambda caller, *words: run(control_plane, folder, namespace, caller, words)


def run(cluster: ControlPlane, folder: Path, namespace: str, caller: str, words: tuple[str, ...]) -> Result:
    kubeconfig = cluster.kubeconfig
    if caller != "admin":
        kubeconfig = a_kubeconfig(folder / caller, cluster)
    document = yaml.safe_load(kubeconfig.read_text())
    document["contexts"][0]["context"]["namespace"] = namespace
    kubeconfig = (kubeconfig if caller != "admin" else folder / "admin.yaml").with_name(f"{caller}.yaml")
    kubeconfig.write_text(yaml.safe_dump(document))
    path = f"{folder / 'bin'}:{os.environ['PATH']}"
    return CliRunner().invoke(app, words, env={"KUBECONFIG": str(kubeconfig), "PATH": path})


@pytest.mark.parametrize("caller", ["viewer", "admin"])
def test_a_reader_of_nodes_gets_the_judgement(ask: Ask, namespace: str, caller: str) -> None:
    done = ask(caller, "why", "large")
    assert done.exit_code == 1, done.output
    answer = " ".join(done.output.split())
    assert "64" in answer
    assert "cpu" in answer
    assert f"{namespace}-0" in answer or "3" in answer
    assert "ResourceNeverEnough" in answer


def test_a_reader_of_one_namespace_gets_the_schedulers_words(ask: Ask) -> None:
    done = ask("own", "why", "large")
    assert done.exit_code == 1, done.output
    answer = " ".join(done.output.split())
    assert "cpu" in answer
    assert "You may not read: Node" in answer


def test_a_pod_that_does_not_exist_has_similar_names(ask: Ask, namespace: str) -> None:
    done = ask("viewer", "why", "larg")
    assert done.exit_code == 3, done.output
    assert f"{namespace}/large" in done.output


def test_waiting_pods_are_listed_with_their_obstacle(ask: Ask, namespace: str) -> None:
    done = ask("viewer", "list", "--pending")
    assert done.exit_code == 0, done.output
    assert f"{namespace}/large" in done.output
    assert "ResourceNeverEnough" in done.output


@pytest.mark.parametrize(("cpu", "code"), [("1", 0), ("64", 1)])
def test_a_pod_is_simulated_on_the_cluster_as_it_is(ask: Ask, tmp_path: Path, cpu: str, code: int) -> None:
    resources = {"requests": {"cpu": cpu}, "limits": {"cpu": cpu}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "wanted"},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": resources}]},
    }
    (tmp_path / "pod.yaml").write_text(yaml.safe_dump(pod))
    done = ask("viewer", "simulate", "-f", str(tmp_path / "pod.yaml"))
    assert done.exit_code == code, done.output


def a_job(name: str, **spec: object) -> Json:
    template = {"spec": {**a_large_pod("x")["spec"], "restartPolicy": "Never"}}
    return {"metadata": {"name": name}, "spec": {"parallelism": 2, "completions": 2, "template": template, **spec}}


@pytest.fixture(scope="module")
def jobs(control_plane: ControlPlane, namespace: str) -> str:
    """Two Jobs: ``train`` with two pods that no node takes, and ``held``, which is suspended."""
    path = f"/apis/batch/v1/namespaces/{namespace}/jobs"
    with control_plane.open_client() as client:
        create(client, path, a_job("train"))
        create(client, path, a_job("held", suspend=True))

        def are_made() -> bool:
            pods = client.get(f"/api/v1/namespaces/{namespace}/pods?labelSelector=job-name=train").json()["items"]
            return len(pods) == 2

        eventually(are_made, "the Job has no pods")
    return namespace


@pytest.mark.parametrize("caller", ["own", "viewer", "admin"])
def test_a_job_is_answered_by_its_pods_with_what_each_account_may_read(ask: Ask, jobs: str, caller: str) -> None:
    done = ask(caller, "why", f"{jobs}/job/train" if caller != "viewer" else "job/held")
    if caller == "viewer":
        # This account may not read Jobs.
        assert done.exit_code == 4, done.output
        return
    assert done.exit_code == 1, done.output
    answer = " ".join(done.output.split())
    assert f"Job {jobs}/train: 2 of 2 pods wait" in answer
    assert "owner created" in answer


def test_a_suspended_job_says_so(ask: Ask, jobs: str) -> None:
    done = ask("own", "why", "job/held")
    assert done.exit_code == 1, done.output
    assert "Job/held is suspended" in " ".join(done.output.split())
    assert jobs in done.output


def test_nodes_are_listed_with_the_right_to_read_them(ask: Ask, namespace: str) -> None:
    done = ask("viewer", "nodes")
    assert done.exit_code == 0, done.output
    assert f"{namespace}-0" in done.output
    assert ask("own", "nodes").exit_code == 4


def test_a_saved_case_is_explained_without_the_cluster(ask: Ask, namespace: str, tmp_path: Path) -> None:
    file = tmp_path / "case.tgz"
    live = ask("admin", "why", "large", "--save", str(file))
    assert live.exit_code == 1, live.output
    done = ask("admin", "explain", str(file))
    assert done.exit_code == 0, done.output
    assert "ResourceNeverEnough" in done.output
    assert namespace not in done.output
