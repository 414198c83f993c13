"""Pods of HAMi's resources for which the API server did not call HAMi's webhook, and pods that a webhook denies.

The configuration has the shape of HAMi's chart (``templates/scheduler/webhook.yaml``); its service does not exist. What
the API server makes of it, the pods' Deployment and the refusals by kube-scheduler are real.
"""

import json
import os
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import Final, NamedTuple

import httpx
import pytest
from typer.testing import CliRunner, Result

from cli.terminal.kubectl import app
from dev.embedded.control_plane import ControlPlane
from dev.embedded.control_plane.folder import link_kubectl
from schemas.json_types import Json
from tests.support.control_plane.objects import MERGE_PATCH, a_gpu_node, create, created_namespace, created_nodes
from tests.support.control_plane.webhook import denying_webhook
from tests.support.harness.api_process import Served
from tests.support.harness.watched_cluster import watched_api
from tests.support.waiting import eventually, until

CONFIGURATIONS: Final = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
IGNORE: Final = {"hami.io/webhook": "ignore"}
LEFT_OUT: Final = {"matchExpressions": [{"key": "hami.io/webhook", "operator": "NotIn", "values": ["ignore"]}]}
LIMITS: Final = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "3000"}
CAUSES: Final[Mapping[str, str]] = {
    "excluded": "the webhook vgpu.hami.io leaves out namespace {other} (hami.io/webhook=ignore)",
    "labelled": "the webhook vgpu.hami.io leaves out the pod (hami.io/webhook=ignore)",
    "older": "the pod is older than the webhook vgpu.hami.io",
    "unreachable": "its failurePolicy is Ignore: its service {namespace}/hami-scheduler did not answer",
}
"""Part of the sentence by the pod's name."""
REMEDIES: Final = ("`schedulerName: hami-scheduler`", "whether the pods behind the webhook's service are ready")
DENIED: Final = "no cost center"


class Calls(NamedTuple):
    """Namespaces of the pods. ``other``: the one that the webhook leaves out."""

    client: httpx.Client
    namespace: str
    other: str

    def locate(self, name: str) -> str:
        """Find the namespace of a pod."""
        return self.other if name == "excluded" else self.namespace

    def add_pod(self, name: str, labels: Mapping[str, str] | None = None) -> None:
        container = {"name": "main", "image": "none", "resources": {"limits": LIMITS}}
        pod = {"metadata": {"name": name, "labels": dict(labels or {})}, "spec": {"containers": [container]}}
        create(self.client, f"/api/v1/namespaces/{self.locate(name)}/pods", pod)

    def is_refused(self, name: str) -> bool:
        pod = self.client.get(f"/api/v1/namespaces/{self.locate(name)}/pods/{name}").json()
        return any("nvidia.com/gpumem" in entry.get("message", "") for entry in pod["status"].get("conditions", []))

    def list_reasons(self) -> set[str]:
        events = self.client.get(f"/api/v1/namespaces/{self.namespace}/events").json()["items"]
        return {event["reason"] for event in events}


def a_configuration(namespace: str) -> Json:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"], "scope": "*"}
    called = {
        "name": "vgpu.hami.io", "rules": [rule], "failurePolicy": "Ignore", "sideEffects": "None",
        "clientConfig": {"service": {"name": "hami-scheduler", "namespace": namespace, "path": "/webhook"}},
        "namespaceSelector": LEFT_OUT, "objectSelector": LEFT_OUT, "admissionReviewVersions": ["v1"],
    }  # fmt: skip
    return {"metadata": {"name": "hami-webhook"}, "webhooks": [called]}


def a_deployment(name: str) -> Json:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "none"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"name": name}, "spec": spec}


@pytest.fixture(scope="module")
def calls(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Calls]:
    """The pods, refused by kube-scheduler, and a Deployment whose pods another webhook denies."""
    control_plane.start_scheduler({})
    namespace = f"calls-{uuid.uuid4().hex[:8]}"
    with ExitStack() as stack:
        for name, labels in ((namespace, {}), (f"{namespace}-left", IGNORE)):
            stack.enter_context(created_namespace(control_plane, name, labels))
        stack.enter_context(created_nodes(control_plane, [a_gpu_node(f"{namespace}-0")]))
        client = stack.enter_context(control_plane.open_client())
        calls = Calls(client, namespace, f"{namespace}-left")
        calls.add_pod("older")
        # Objects have whole seconds.
        time.sleep(1.1)
        create(client, CONFIGURATIONS, a_configuration(namespace))
        stack.callback(client.delete, f"{CONFIGURATIONS}/hami-webhook")
        calls.add_pod("excluded")
        calls.add_pod("labelled", IGNORE)
        calls.add_pod("unreachable")
        eventually(lambda: all(map(calls.is_refused, CAUSES)), "kube-scheduler has not refused all pods")
        denied = {"app": "denied"}
        folder = tmp_path_factory.mktemp("webhook")
        stack.enter_context(denying_webhook(control_plane, folder, namespace, denied, DENIED))
        create(client, f"/apis/apps/v1/namespaces/{namespace}/deployments", a_deployment("denied"))
        eventually(lambda: "FailedCreate" in calls.list_reasons(), "the Deployment's pod was not denied")
        yield calls


Ask = Callable[..., Result]


@pytest.fixture(scope="module")
def ask(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Ask:
    """The command without any service of ours on the cluster."""
    folder = tmp_path_factory.mktemp("command")
    link_kubectl(folder, control_plane.binary)
    environment = {"KUBECONFIG": str(control_plane.kubeconfig), "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}
    return lambda *words: CliRunner().invoke(app, words, env=environment)


def name_cause(calls: Calls, name: str) -> str:
    return CAUSES[name].format(namespace=calls.namespace, other=calls.other)


@pytest.mark.parametrize("name", CAUSES)
def test_the_command_names_why_the_webhook_was_not_called_and_the_remedy(ask: Ask, calls: Calls, name: str) -> None:
    done = ask("why", name, "-n", calls.locate(name))
    assert done.exit_code == 1, done.output
    answer = " ".join(done.output.split())
    assert name_cause(calls, name) in answer, done.output
    assert [remedy for remedy in REMEDIES if remedy not in answer] == [], done.output


def test_the_command_names_the_webhook_that_denies_a_deployments_pods(ask: Ask, calls: Calls) -> None:
    done = ask("why", "deployment/denied", "-n", calls.namespace)
    assert done.exit_code == 1, done.output
    answer = " ".join(done.output.split())
    assert "PodDeniedByRule" in answer, done.output
    assert DENIED in answer, done.output
    assert "Correct in the pod's template what the words name" in answer, done.output


@pytest.fixture(scope="module")
def items(ask: Ask, calls: Calls) -> list[Json]:
    done = ask("list", "--pending", "-A", "-o", "json")
    assert done.exit_code == 0, done.output
    listed: list[Json] = json.loads(done.stdout)["items"]
    return [item for item in listed if item["namespace"] in (calls.namespace, calls.other)]


def test_the_list_has_each_pod_with_its_cause(items: list[Json], calls: Calls) -> None:
    (denied,) = [item for item in items if item["name"] not in CAUSES]
    sentences = {item["name"]: item["obstacle"]["sentence"]["en"] for item in items if item is not denied}
    assert sorted(sentences) == sorted(CAUSES)
    assert [name for name in CAUSES if name_cause(calls, name) not in sentences[name]] == [], sentences
    assert (denied["obstacle"]["code"], denied["layer"]) == ("PodDeniedByRule", "queue"), denied


class Answers(NamedTuple):
    """Answers of the API. ``workload``: about the Deployment."""

    listed: list[Json]
    diagnoses: Mapping[str, Json]
    workload: Json


@pytest.fixture(scope="module")
def answers(control_plane: ControlPlane, calls: Calls, tmp_path_factory: pytest.TempPathFactory) -> Answers:
    with watched_api(control_plane.kubeconfig, tmp_path_factory.mktemp("answers")) as api:
        listed = until(lambda: list_pending(api, calls), lambda items: len(items) == len(CAUSES) + 1)
        root = f"/api/v1/namespaces/{calls.namespace}"
        return Answers(
            listed,
            {name: diagnose(api, calls, name) for name in CAUSES},
            api.get(f"{root}/workloads/deployment/denied").raise_for_status().json(),
        )


def list_pending(api: Served, calls: Calls) -> list[Json]:
    both = (calls.namespace, calls.other)
    pages = [api.get("/api/v1/pending", namespace=name, group_by="pod", limit="100") for name in both]
    return [item for page in pages if page.status_code == httpx.codes.OK for item in page.json()["items"]]


def diagnose(api: Served, calls: Calls, name: str) -> Json:
    answer = api.get(f"/api/v1/namespaces/{calls.locate(name)}/pods/{name}/diagnosis")
    body: Json = answer.raise_for_status().json()
    return body


@pytest.mark.parametrize("name", CAUSES)
def test_the_api_names_why_the_webhook_was_not_called_and_the_remedy(answers: Answers, calls: Calls, name: str) -> None:
    obstacle = answers.diagnoses[name]["obstacle"]
    assert name_cause(calls, name) in obstacle["sentence"]["en"], obstacle
    assert [remedy for remedy in REMEDIES if remedy not in obstacle["remedy"]["en"]] == [], obstacle


def test_the_api_names_the_webhook_that_denies_a_deployments_pods(answers: Answers) -> None:
    (group,) = answers.workload["groups"]
    assert group["obstacle"]["code"] == "PodDeniedByRule", group
    assert DENIED in group["obstacle"]["sentence"]["en"], group


def test_both_modes_list_the_same_obstacle_and_layer(answers: Answers, items: list[Json]) -> None:
    over_api, direct = (
        {item["name"]: (item["layer"], item["obstacle"]["code"]) for item in listed}
        for listed in (answers.listed, items)
    )
    assert over_api == direct
    (denied,) = [item for item in answers.listed if item["name"] == "deployment/denied"]
    assert DENIED in denied["obstacle"]["sentence"]["en"], denied


def test_conditions_that_were_not_evaluated_are_named(ask: Ask, calls: Calls) -> None:
    """A condition that leaves the pod out: the API server has not called the webhook, whatever its service does."""
    webhook = a_configuration(calls.namespace)["webhooks"][0]
    condition = {"name": "only-of-ml", "expression": "has(object.metadata.labels) && 'ml' in object.metadata.labels"}
    change = {"webhooks": [{**webhook, "matchConditions": [condition]}]}
    path = f"{CONFIGURATIONS}/hami-webhook"
    calls.client.patch(path, content=json.dumps(change), headers=MERGE_PATCH).raise_for_status()
    done = ask("why", "unreachable", "-n", calls.namespace)
    answer = " ".join(done.output.split())
    assert "its matchConditions (only-of-ml) were not evaluated" in answer, done.output
