"""Quotas, LimitRanges and classes on the real API server: what it refuses is what a simulation refuses, and no more.

Each case has a namespace of its own. The expected answer is that of Kubernetes' documentation; a simulation on the
objects as the API server has them, and its own answer to the same pod or claim, are held against it.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import httpx
import pytest

from dev.embedded.control_plane import ControlPlane
from engine.simulation.claim_templates import make_claims
from engine.simulation.setting import SimulationSetting
from engine.simulation.simulate import simulate_workloads
from engine.simulation.workloads import PodTemplate
from schemas.json_types import Json
from tests.support.builders.simulations import NOW, build_described
from tests.support.control_plane.objects import create
from tests.support.waiting import eventually

GPU: Final = "nvidia.com/gpu"
DRA: Final = "/apis/resource.k8s.io/v1"
HIGH: Final = "judged-high"
LOW: Final = "judged-low"
KATA: Final = "judged-kata"
CLASS: Final = "judged-gpu"
DEVICES: Final = f"{CLASS}.deviceclass.resource.k8s.io/devices"
SHARED: Final[tuple[tuple[str, Json], ...]] = (
    ("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": HIGH}, "value": 1000}),
    ("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": LOW}, "value": 10}),
    (
        "/apis/node.k8s.io/v1/runtimeclasses",
        {"metadata": {"name": KATA}, "handler": "kata", "overhead": {"podFixed": {"memory": "1Gi"}}},
    ),
    (f"{DRA}/deviceclasses", {"metadata": {"name": CLASS}, "spec": {}}),
)


def a_container(name: str = "main", requests: Json | None = None, limits: Json | None = None, **fields: Any) -> Json:
    return {"name": name, "image": "i", "resources": {"requests": requests or {}, "limits": limits or {}}, **fields}


def a_pod(requests: Json | None = None, limits: Json | None = None, **spec: Any) -> Json:
    """Build a pod with one container, unless the spec names others."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "new"},
        "spec": {"containers": [a_container(requests=requests, limits=limits)], **spec},
    }


def a_quota(hard: Json, *scopes: str, **selector: Any) -> Json:
    spec: Json = {"hard": hard}
    if scopes:
        spec["scopes"] = list(scopes)
    if selector:
        spec["scopeSelector"] = {"matchExpressions": [selector]}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "team"}, "spec": spec}


def a_limit_range(kind: str = "Container", **bounds: Json) -> Json:
    spec = {"limits": [{"type": kind, **bounds}]}
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "bounds"}, "spec": spec}


def an_affinity(**term: Any) -> Json:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "x"}}, **term}
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def a_claiming_pod(**request: Any) -> Json:
    """Build a pod whose claim is made from a template with this request."""
    pod = a_pod(resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "template"}])
    return pod | {"request": request}


def to_exact(**fields: Any) -> Json:
    return {"exactly": {"deviceClassName": CLASS, **fields}}


class Case(NamedTuple):
    """A pod that is new in a namespace with these objects. code: of the refusal; empty if it is created."""

    pod: Json
    objects: Sequence[Json]
    code: str = ""
    words: str = ""
    """Part of the API server's refusal."""
    existing: Sequence[Json] = ()
    """Pods of the namespace."""


EXCEEDED, MISSING = "QuotaRefusesPod", "QuotaNeedsAmounts"
BROKEN, OF_CLAIM, NO_CLASS = "LimitRangeRefusesPod", "QuotaRefusesClaim", "PodClassMissing"
REFUSALS: Final = (EXCEEDED, MISSING, BROKEN, OF_CLAIM, NO_CLASS)
ENDS: Final[Json] = {"activeDeadlineSeconds": 60}
CORE: Final = {"cpu": "1"}
IN_HIGH: Final = {"scopeName": "PriorityClass", "operator": "In", "values": [HIGH]}
NOT_IN_HIGH: Final = {"scopeName": "PriorityClass", "operator": "NotIn", "values": [HIGH]}
CASES: Final[dict[str, Case]] = {
    "a pod that ends in time, in Terminating": Case(
        a_pod(**ENDS), [a_quota({"pods": "1"}, "Terminating")], EXCEEDED, "pods=1", [a_pod(**ENDS)]
    ),
    "a pod without an end, next to Terminating": Case(
        a_pod(), [a_quota({"pods": "1"}, "Terminating")], existing=[a_pod(**ENDS)]
    ),
    "a pod without an end, in NotTerminating": Case(
        a_pod(CORE),
        [a_quota({"requests.cpu": "1500m"}, "NotTerminating")],
        EXCEEDED,
        "requests.cpu=1",
        [a_pod(CORE)],
    ),
    "no amounts, in BestEffort": Case(
        a_pod(), [a_quota({"pods": "1"}, "BestEffort")], EXCEEDED, "limited: pods=1", [a_pod()]
    ),
    "amounts, next to BestEffort": Case(a_pod(CORE), [a_quota({"pods": "1"}, "BestEffort")], existing=[a_pod()]),
    "amounts, in NotBestEffort": Case(
        a_pod({"memory": "1Gi"}), [a_quota({"requests.memory": "512Mi"}, "NotBestEffort")], EXCEEDED, "memory=1Gi"
    ),
    "only a GPU, in BestEffort": Case(
        a_pod({GPU: "1"}, {GPU: "1"}), [a_quota({"pods": "0"}, "BestEffort")], EXCEEDED, "pods=1"
    ),
    "the class that a quota selects": Case(
        a_pod(priorityClassName=HIGH), [a_quota({"pods": "0"}, **IN_HIGH)], EXCEEDED, "pods=1"
    ),
    "another class than a quota selects": Case(a_pod(priorityClassName=LOW), [a_quota({"pods": "0"}, **IN_HIGH)]),
    "another class than a quota leaves out": Case(
        a_pod(priorityClassName=LOW), [a_quota({"pods": "0"}, **NOT_IN_HIGH)], EXCEEDED, "pods=1"
    ),
    "no class, where a quota leaves one out": Case(
        a_pod(), [a_quota({"pods": "0"}, **NOT_IN_HIGH)], EXCEEDED, "pods=1"
    ),
    "no class, where a quota counts any": Case(a_pod(), [a_quota({"pods": "0"}, "PriorityClass")]),
    "affinity to pods of all namespaces": Case(
        a_pod(affinity=an_affinity(namespaceSelector={})),
        [a_quota({"pods": "0"}, "CrossNamespacePodAffinity")],
        EXCEEDED,
        "pods=1",
    ),
    "affinity to pods of its own namespace": Case(
        a_pod(affinity=an_affinity()), [a_quota({"pods": "0"}, "CrossNamespacePodAffinity")]
    ),
    "devices": Case(
        a_pod({GPU: "2"}, {GPU: "2"}),
        [a_quota({f"requests.{GPU}": "3"})],
        EXCEEDED,
        f"requests.{GPU}=2",
        [a_pod({GPU: "2"}, {GPU: "2"})],
    ),
    "pods of any state": Case(a_pod(), [a_quota({"count/pods": "1"})], EXCEEDED, "count/pods=1", [a_pod()]),
    "limits that no container names": Case(
        a_pod(CORE),
        [a_quota({"limits.cpu": "8", "requests.cpu": "8"})],
        MISSING,
        "must specify limits.cpu for: main",
    ),
    "limits that a LimitRange gives": Case(
        a_pod(CORE), [a_quota({"limits.cpu": "8"}), a_limit_range(default={"cpu": "2"})]
    ),
    "limits that a LimitRange gives and that are too much": Case(
        a_pod(), [a_quota({"limits.cpu": "1"}), a_limit_range(max={"cpu": "2"})], EXCEEDED, "limits.cpu=2"
    ),
    "limits of an init container that is larger": Case(
        a_pod(CORE, CORE, initContainers=[a_container("init", limits={"cpu": "4"})]),
        [a_quota({"limits.cpu": "3"})],
        EXCEEDED,
        "limits.cpu=4",
    ),
    "what the runtime class adds": Case(
        a_pod({"memory": "1Gi"}, runtimeClassName=KATA),
        [a_quota({"requests.memory": "1536Mi"})],
        EXCEEDED,
        "requests.memory=2Gi",
    ),
    "amounts of the pod as a whole": Case(
        a_pod(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "2"}}),
        [a_quota({"requests.cpu": "1"})],
        EXCEEDED,
        "requests.cpu=2",
    ),
    "amounts of the pod as a whole that fit": Case(
        a_pod(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "2"}}), [a_quota({"requests.cpu": "2"})]
    ),
    "disk": Case(
        a_pod({"ephemeral-storage": "2Gi"}), [a_quota({"requests.ephemeral-storage": "1Gi"})], EXCEEDED, "=2Gi"
    ),
    "huge pages": Case(
        a_pod({**CORE, "hugepages-2Mi": "4Mi"}, {"hugepages-2Mi": "4Mi"}),
        [a_quota({"requests.hugepages-2Mi": "2Mi"})],
        EXCEEDED,
        "requests.hugepages-2Mi=4Mi",
    ),
    "a limit above the largest": Case(
        a_pod(limits={"cpu": "4"}),
        [a_limit_range(max={"cpu": "2"})],
        BROKEN,
        "maximum cpu usage per Container is 2, but limit is 4",
    ),
    "a request below the smallest": Case(
        a_pod({"memory": "64Mi"}),
        [a_limit_range(min={"memory": "128Mi"})],
        BROKEN,
        "minimum memory usage per Container is 128Mi, but request is 64Mi",
    ),
    "a limit too far above the request": Case(
        a_pod({"cpu": "500m"}, {"cpu": "2"}),
        [a_limit_range(maxLimitRequestRatio={"cpu": "2"})],
        BROKEN,
        "cpu max limit to request ratio per Container is 2, but provided ratio is 4.0",
    ),
    "containers that are too much together": Case(
        a_pod(containers=[a_container("a", limits=CORE), a_container("b", limits=CORE)]),
        [a_limit_range("Pod", max={"cpu": "1500m"})],
        BROKEN,
        "maximum cpu usage per Pod is 1500m, but limit is 2",
    ),
    "a bound of pods on containers without limits": Case(
        a_pod(CORE), [a_limit_range("Pod", max={"cpu": "2"})], BROKEN, "No limit is specified"
    ),
    "a bound that the runtime class does not count for": Case(
        a_pod({"memory": "1Gi"}, {"memory": "1Gi"}, runtimeClassName=KATA),
        [a_limit_range("Pod", max={"memory": "1536Mi"})],
    ),
    "devices above the largest": Case(
        a_pod({GPU: "8"}, {GPU: "8"}), [a_limit_range(max={GPU: "4"})], BROKEN, f"maximum {GPU} usage per Container"
    ),
    "a priority class that is misspelt": Case(
        a_pod(priorityClassName="judged-hihg"), [], NO_CLASS, "no PriorityClass with name judged-hihg was found"
    ),
    "devices of a class": Case(
        a_claiming_pod(**to_exact(count=3)), [a_quota({DEVICES: "2"})], OF_CLAIM, f"{DEVICES}=3"
    ),
    "devices of a class that are left": Case(a_claiming_pod(**to_exact(count=2)), [a_quota({DEVICES: "2"})]),
    "all devices of a class": Case(
        a_claiming_pod(**to_exact(allocationMode="All")), [a_quota({DEVICES: "31"})], OF_CLAIM, f"{DEVICES}=32"
    ),
    "the largest of alternatives": Case(
        a_claiming_pod(
            firstAvailable=[
                {"name": "two", "deviceClassName": CLASS, "count": 2},
                {"name": "one", "deviceClassName": CLASS, "count": 1},
            ]
        ),
        [a_quota({DEVICES: "1"})],
        OF_CLAIM,
        f"{DEVICES}=2",
    ),
    "claims": Case(
        a_claiming_pod(**to_exact()),
        [a_quota({"count/resourceclaims.resource.k8s.io": "0"})],
        OF_CLAIM,
        "count/resourceclaims.resource.k8s.io=1",
    ),
    "claims next to a quota with a scope": Case(a_claiming_pod(**to_exact()), [a_quota({"pods": "5"}, "BestEffort")]),
}


@pytest.fixture(scope="module")
def classes(control_plane: ControlPlane) -> Iterator[None]:
    """Classes that all namespaces share."""
    with control_plane.open_client() as client:
        for path, body in SHARED:
            create(client, path, body)
        try:
            yield
        finally:
            for path, body in SHARED:
                client.delete(f"{path}/{body['metadata']['name']}")


class Namespace:
    """A namespace with the objects of a case."""

    def __init__(self, client: httpx.Client, name: str) -> None:
        self.client, self.name = client, name
        self.root = f"/api/v1/namespaces/{name}"

    def fill(self, case: Case) -> None:
        """Create the objects of the case, and wait until the quota is counted."""
        if request := case.pod.get("request"):
            template = {"metadata": {"name": "template"}, "spec": {"spec": build_claim_spec(request)}}
            create(self.client, f"{DRA}/namespaces/{self.name}/resourceclaimtemplates", template)
        for body in case.objects:
            create(self.client, f"{self.root}/{body['kind'].lower()}s", body)
            if body["kind"] == "ResourceQuota":
                eventually(lambda body=body: self.is_counted(body["spec"]["hard"]), "the quota is not counted")  # type: ignore[misc]
        # After the quotas: the API server adds them to the use at once. Its controller counts by a cache of pods, in
        # which one that was created a moment ago may be missing.
        for number, pod in enumerate(case.existing):
            create(self.client, f"{self.root}/pods", {**pod, "metadata": {"name": f"existing-{number}"}})

    def is_counted(self, hard: Json) -> bool:
        quota = self.client.get(f"{self.root}/resourcequotas/team").json()
        return bool(quota["status"].get("used", {}).keys() == hard.keys())

    def read_objects(self) -> list[Json]:
        """Read everything that decides, as the API server has it now."""
        of_namespace = [f"{self.root}/{plural}" for plural in ("pods", "resourcequotas", "limitranges")]
        claims = [f"{DRA}/namespaces/{self.name}/{plural}" for plural in ("resourceclaims", "resourceclaimtemplates")]
        shared = sorted({path for path, _ in SHARED})
        return [self.client.get(path).raise_for_status().json() for path in (*of_namespace, *claims, *shared)]

    def refuse(self, pod: Json, objects: Sequence[Json]) -> str:
        """Return the API server's refusal of the pod, or of a claim that is made for it; empty if it takes both."""
        _, claims = make_claims(pod, [item for listed in objects for item in complete(listed)])
        bodies = [(f"{self.root}/pods", pod)]
        bodies += [(f"{DRA}/namespaces/{self.name}/resourceclaims", strip(claim)) for claim in claims]
        for path, body in bodies:
            answer = self.client.post(path, json=body, params={"dryRun": "All"})
            if answer.status_code == httpx.codes.FORBIDDEN:
                return str(answer.json()["message"])
            assert answer.is_success, answer.text
        return ""


def build_claim_spec(request: Json) -> Json:
    return {"devices": {"requests": [{"name": "gpu", **request}]}}


def complete(listed: Json) -> list[Json]:
    """List the items of a typed list with their kind."""
    kind = listed["kind"].removesuffix("List")
    return [{"apiVersion": listed["apiVersion"], "kind": kind, **item} for item in listed["items"]]


def strip(claim: Json) -> Json:
    """Leave out the owner and the UID, which the API server would look up."""
    return {**claim, "metadata": {"name": claim["metadata"]["name"]}}


def a_node() -> Json:
    amounts = {"cpu": "64", "memory": "256Gi", "ephemeral-storage": "1Ti", "pods": "110"}
    amounts |= {GPU: "16", "hugepages-2Mi": "1Gi"}
    status = {"allocatable": amounts, "capacity": amounts}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "large"}, "status": status}


def simulate(pod: Json, objects: Sequence[Json]) -> Json:
    described = build_described(a_node(), *(item for listed in objects for item in complete(listed)))
    return simulate_workloads(described, [PodTemplate("Pod", "new", pod, 1, {})], None, SimulationSetting(NOW))


@pytest.mark.usefixtures("classes")
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_simulation_refuses_what_the_api_server_refuses(
    control_plane: ControlPlane, namespace: str, case: Case
) -> None:
    pod = {key: value for key, value in case.pod.items() if key != "request"}
    pod["metadata"] = {"name": "new", "namespace": namespace, "uid": "new"}
    with control_plane.open_client() as client:
        cluster = Namespace(client, namespace)
        cluster.fill(case)
        objects = cluster.read_objects()
        refusal = cluster.refuse({**pod, "metadata": {"name": "new", "namespace": namespace}}, objects)
    answer = simulate(pod, objects)
    # A pod that is created may still fit nowhere: no node here has devices of the class.
    code = answer["diagnosis"]["obstacle"]["code"] if answer["diagnosis"] else ""
    assert (code if code in REFUSALS else "") == case.code, answer["sentence"]
    assert bool(refusal) == bool(case.code), refusal
    assert case.words in refusal
