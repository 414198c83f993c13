"""Pods that wait, read from a real API server where the real kube-scheduler refused them: one pod for each obstacle.

Nothing is recorded of these pods: all that is known is what the API reads with its own service account.
"""

import asyncio
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
import yaml

from api.answers.circumstances import ObjectFacts, read_circumstances, read_nodes
from api.answers.object_api import ObjectApi
from dev.embedded.control_plane import ControlPlane
from engine.diagnosis.facts import DiagnosisFacts, NodeFacts
from engine.diagnosis.tree import diagnose
from engine.summaries.fold import AttemptFold
from runtime.kubernetes.credentials import from_kubeconfig
from schemas.answers.diagnosis import Diagnosis
from schemas.events import AttemptEvent, AttemptSummarized
from schemas.json_types import Json
from tests.support.builders.api_server_objects import a_pod as a_read_pod
from tests.support.builders.api_server_objects import an_event, read
from tests.support.control_plane.objects import a_gpu_node, create, created_namespace, created_nodes
from tests.support.control_plane.plain_scheduler import SCHEDULER, a_pod
from tests.support.control_plane.service_account import a_kubeconfig, service_account
from tests.support.waiting import eventually

DEPLOYED = yaml.safe_load_all(Path("deploy/kustomize/base/rights.yaml").read_text("utf-8"))
(RIGHTS,) = [
    item["rules"] for item in DEPLOYED if item["metadata"]["name"] == "schedulerlog-diagnosis" and "rules" in item
]
"""Rights of the API's account."""
QUOTA = "gpus"
NOW = datetime.now(UTC)


class World:
    def __init__(self, namespace: str, kubeconfig: Path) -> None:
        self.namespace, self.kubeconfig = namespace, kubeconfig
        words = ("free", "tainted", "cordoned", "crowded")
        self.free, self.tainted, self.cordoned, self.crowded = (f"{namespace}-{word}" for word in words)
        self.facts_by_name: dict[str, ObjectFacts] = {}
        self.nodes: list[NodeFacts] = []
        self.refusal = ""
        """What the API server says to an account that may not bind."""

    async def read(self, *names: str) -> None:
        """Read all of the pods over one connection."""
        now = datetime.now(UTC)
        async with ObjectApi(from_kubeconfig(self.kubeconfig), is_configured=True) as api:
            nodes, _ = await read_nodes(api, now)
            for name in names:
                self.facts_by_name[name] = await read_circumstances(api, self.namespace, name, now)
        # Other tests' nodes may be there as well.
        self.nodes = [node for node in nodes if node.name.startswith(self.namespace)]

    def diagnose_pod(self, name: str) -> Diagnosis:
        circumstances = self.facts_by_name[name]
        # The base has no rights to volumes: the component ``diagnosis/nodes`` adds them.
        assert {entry.subject for entry in circumstances.unknown} <= {"volumes"}
        facts = DiagnosisFacts(
            "default",
            self.namespace,
            name,
            datetime.now(UTC),
            pod=circumstances.pod,
            claims=circumstances.claims,
            quotas=circumstances.quotas,
            events=circumstances.events,
            nodes=self.nodes,
            owner_problem=circumstances.owner_problem,
        )
        return diagnose(facts)

    def main(self, name: str) -> tuple[str, str]:
        """Return the main obstacle's code, and the sentence."""
        answer = self.diagnose_pod(name)
        assert answer.obstacle
        assert answer.sentence == answer.obstacle.sentence
        return answer.obstacle.code, answer.sentence.en


def build_pods(free: str, tainted: str, cordoned: str, crowded: str) -> list[Json]:
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "missing"}}
    required = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "here", "operator": "In", "values": ["nowhere"]}]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    return [
        a_pod("gated", schedulingGates=[{"name": "example.com/quota"}, {"name": "example.com/topology"}]),
        a_pod("misspelt", schedulerName="hami-shceduler"),
        a_pod("no-claim", volumes=[volume]),
        a_pod("tainted", nodeSelector={"here": tainted}),
        a_pod("cordoned", nodeSelector={"here": cordoned}),
        a_pod("crowded", nodeSelector={"here": crowded}),
        a_pod("affinity", affinity=affinity),
        a_pod("placed", nodeSelector={"here": free}),
    ]


@pytest.fixture(scope="module")
def world(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    namespace, folder = "test-diagnosis", tmp_path_factory.mktemp("account")
    control_plane.start_scheduler(
        {"profiles": [{"schedulerName": SCHEDULER}], "podInitialBackoffSeconds": 1, "podMaxBackoffSeconds": 1}
    )
    with created_namespace(control_plane, namespace), service_account(control_plane, namespace, RIGHTS, folder):
        prepared = World(namespace, a_kubeconfig(folder, control_plane))
        taint = {"taints": [{"key": "gpu", "value": "only", "effect": "NoSchedule"}]}
        nodes = [
            label(a_gpu_node(prepared.free)),
            label(a_gpu_node(prepared.tainted)) | {"spec": taint},
            label(a_gpu_node(prepared.cordoned)) | {"spec": {"unschedulable": True}},
            without_place(label(a_gpu_node(prepared.crowded))),
        ]
        with created_nodes(control_plane, nodes), control_plane.open_client() as client:
            pods = f"/api/v1/namespaces/{namespace}/pods"
            for pod in build_pods(prepared.free, prepared.tainted, prepared.cordoned, prepared.crowded):
                create(client, pods, pod)
            quota = {"metadata": {"name": QUOTA}, "spec": {"hard": {"requests.nvidia.com/gpu": "4"}}}
            create(client, f"/api/v1/namespaces/{namespace}/resourcequotas", quota)
            counted = f"/api/v1/namespaces/{namespace}/resourcequotas/{QUOTA}"
            eventually(lambda: client.get(counted).json()["status"].get("hard"), "the quota is not counted")
            create(client, f"/apis/apps/v1/namespaces/{namespace}/replicasets", a_replica_set("train"))
            names_refused = ("no-claim", "tainted", "cordoned", "affinity", "crowded")
            eventually(
                lambda: all(is_refused(client.get(f"{pods}/{name}").json()) for name in names_refused),
                "kube-scheduler has not refused all pods",
            )
            eventually(lambda: client.get(f"{pods}/placed").json()["spec"].get("nodeName"), "the pod is not placed")
            events = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
            eventually(
                lambda: any(item["reason"] == "FailedCreate" for item in client.get(events).json()["items"]),
                "the replica set was not refused",
            )
            asyncio.run(prepared.read("gated", "misspelt", "placed", "train-x", *names_refused))
            binding = {"metadata": {"name": "gated"}, "target": {"kind": "Node", "name": prepared.free}}
            trusted = ssl.create_default_context(cafile=str(control_plane.ca))
            token = {"Authorization": f"Bearer {(folder / 'token').read_text()}"}
            with httpx.Client(base_url=control_plane.url, verify=trusted, headers=token, timeout=30) as account:
                prepared.refusal = account.post(f"{pods}/gated/binding", json=binding).json()["message"]
            yield prepared


def label(node: Json) -> Json:
    node["metadata"]["labels"] = {"here": node["metadata"]["name"]}
    return node


def without_place(node: Json) -> Json:
    """Leave place for not a single pod."""
    for amounts in node["status"].values():
        amounts["pods"] = "0"
    return node


def a_replica_set(name: str) -> Json:
    labels = {"app": name}
    limits = {"nvidia.com/gpu": "8"}
    container = {"name": "main", "image": "none", "resources": {"limits": limits}}
    template = {"metadata": {"labels": labels}, "spec": {"schedulerName": SCHEDULER, "containers": [container]}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"name": name}, "spec": spec}


def is_refused(pod: Json) -> bool:
    return any(
        condition["type"] == "PodScheduled" and condition["status"] == "False"
        for condition in pod["status"].get("conditions", [])
    )


def test_a_pod_with_scheduling_gates_is_held_back_by_them(world: World) -> None:
    code, sentence = world.main("gated")
    assert code == "SchedulingGated"
    assert sentence == "2 scheduling gates hold the pod back: example.com/quota, example.com/topology."
    assert world.diagnose_pod("gated").state == "gated"


def test_a_pod_of_a_scheduler_that_does_not_run_has_been_looked_at_by_none(world: World) -> None:
    answer = world.diagnose_pod("misspelt")
    assert answer.state == "not judged"
    assert answer.obstacle
    assert answer.obstacle.code in ("NotYetSeen", "SchedulerSilent")
    assert "hami-shceduler" in answer.sentence.en


def test_a_claim_that_does_not_exist_is_named(world: World) -> None:
    assert world.main("no-claim") == (
        "ClaimMissing", "The pod names a PersistentVolumeClaim that does not exist: missing."
    )  # fmt: skip


def test_of_the_nodes_that_the_pod_selects_the_taint_is_named(world: World) -> None:
    assert world.main("tainted") == (
        "TaintNotTolerated",
        "The only node that the pod selects has a taint that the pod does not tolerate: gpu=only:NoSchedule.",
    )


def test_a_cordoned_node_is_named(world: World) -> None:
    code, _ = world.main("cordoned")
    assert code == "NodeCordoned"
    obstacle = world.diagnose_pod("cordoned").obstacle
    assert obstacle
    assert obstacle.nodes == [world.cordoned]
    assert f"kubectl uncordon {world.cordoned}" in obstacle.remedy.en


def test_a_node_that_takes_no_more_pods_is_counted(world: World) -> None:
    """By the words of kube-scheduler, as a reader of its events has them."""
    pod = world.facts_by_name["crowded"].pod
    condition = pod.find_condition("PodScheduled") if pod else None
    assert condition
    events = read(("pod", a_read_pod()), ("event", an_event("FailedScheduling", condition.message)))
    folds: dict[str, AttemptFold] = {}
    for event in events:
        if isinstance(event, AttemptEvent):
            folds.setdefault(event.attempt_id, AttemptFold()).add(event)
    (attempt,) = (fold.summarize() for fold in folds.values())
    diagnosis = diagnose(DiagnosisFacts("default", "ml", "gpu8", NOW, attempt))
    stated = {
        obstacle.code: obstacle.numbers["nodes"]
        for obstacle in (diagnosis.obstacle, *diagnosis.other_obstacles)
        if obstacle
    }
    assert stated["TooManyPods"] == 1, condition.message


def test_an_affinity_that_no_node_has_counts_every_node(world: World) -> None:
    assert world.main("affinity") == (
        "AffinityMismatch", "4 of 4 nodes do not match the pod's node selector or affinity.",
    )  # fmt: skip


def test_a_quota_that_refuses_the_pod_is_named_with_its_numbers(world: World) -> None:
    code, sentence = world.main("train-x")
    assert code == "QuotaExceeded"
    assert "of requests.nvidia.com/gpu, 0 of 4 are used" in sentence
    assert world.diagnose_pod("train-x").state == "missing"


def test_a_scheduler_without_the_right_to_bind_is_named(world: World) -> None:
    record = Path("tests/contract/golden/io.schedulerlog.attempt.summarized.v1/001.json")
    attempt = AttemptSummarized.model_validate_json(record.read_bytes())
    assert attempt.bind
    bind = attempt.bind.model_copy(update={"error": world.refusal, "lock_holder": None})
    facts = DiagnosisFacts("default", "llm", "train", NOW, attempt.model_copy(update={"bind": bind}))
    diagnosis = diagnose(facts)
    assert diagnosis.obstacle
    assert diagnosis.obstacle.code == "SchedulerForbidden"
    assert 'cannot create resource "pods/binding" in API group "" in the namespace' in diagnosis.sentence.en


def test_a_pod_on_its_node_has_no_obstacle(world: World) -> None:
    answer = world.diagnose_pod("placed")
    assert (answer.state, answer.obstacle) == ("placed", None)
    assert answer.sentence.en == f"The pod is on node {world.free}."
