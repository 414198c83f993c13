"""One pod, one answer: on every surface the same headline, obstacle, nodes, numbers, findings and suggestions.

The headlines were written by hand from the objects: what nodes have less what pods hold, labels, quotas, times.
"""

from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from ingest.cases.read_case import build_case, read_case_text
from schemas.events import AttemptSummarized
from schemas.json_types import Json
from tests.support.builders.hami_lines import an_event as an_event_line
from tests.support.builders.hami_lines import write_failure, write_fit, write_request, write_start, write_unfit
from tests.support.builders.layer_objects import a_node, a_pod, an_event
from tests.support.builders.simulations import a_gpu_node
from tests.support.harness.surfaces import CLOCK, CLOCKS, NOW, show_files, show_live, show_served, simulate_again


class Case(NamedTuple):
    objects: list[Json]
    headline: str
    code: str
    log: bytes = b""
    pod: str = "lab/job-0"
    findings: tuple[str, ...] = ()
    is_of_log_only: bool = False
    """True for an answer that stands on the end of a log: the records of an API have none."""


def request(**amounts: str) -> Json:
    """Build the spec of a container that requests these amounts."""
    return {"containers": [{"name": "main", "resources": {"requests": amounts, "limits": amounts}}]}


def a_refused(message: str, **fields: Any) -> list[Json]:
    """Build a pod that kube-scheduler refused with this message at 08:00:02, half an hour before the answer."""
    return [a_pod(refusal=message, **fields), an_event("FailedScheduling", message, time="2026-11-24T08:00:02Z")]


def a_shared(gpus: int, memory: int, **fields: Any) -> Json:
    """Build the spec of a pod that HAMi places."""
    amounts = {"nvidia.com/gpu": str(gpus), "nvidia.com/gpumem": str(memory)}
    return {"schedulerName": "hami-scheduler", **request(**amounts), **fields}


def a_holder(node: str, *memory: int, name: str = "other") -> Json:
    """Build a running pod that holds this much of the first devices of a node."""
    held = "".join(f"GPU-{node}-{number},NVIDIA,{mib},0:" for number, mib in enumerate(memory))
    annotations = {"hami.io/vgpu-node": node, "hami.io/vgpu-devices-allocated": f"{held};"}
    spec = {**a_shared(len(memory), memory[0]), "nodeName": node}
    return a_pod(name, metadata={"annotations": annotations}, spec=spec, status={"phase": "Running"})


def a_running(name: str, node: str, cpu: str) -> Json:
    return a_pod(name, spec={**request(cpu=cpu), "nodeName": node}, status={"phase": "Running"})


def an_object(version: str, kind: str, name: str, namespace: str = "lab", **fields: Any) -> Json:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **fields}


POD: Final = "lab/job-0"
PLACED_AT: Final = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-11-24T08:20:00Z"}
SCHEDULER: Final = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "hami-scheduler-7c", "namespace": "kube-system", "uid": "uid-s"},
    "spec": {"nodeName": "n1", "containers": [{"name": "vgpu-scheduler-extender"}]},
    "status": {"phase": "Running"},
}
QUEUE: Final = [
    a_pod(spec={"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}),
    an_object(
        "kueue.x-k8s.io/v1beta2",
        "Workload",
        "w",
        metadata={
            "name": "w",
            "namespace": "lab",
            "ownerReferences": [{"kind": "Pod", "name": "job-0", "controller": True}],
        },
        spec={"queueName": "night"},
        status={
            "conditions": [
                {
                    "type": "QuotaReserved",
                    "status": "False",
                    "reason": "WaitingForQuota",
                    "message": "insufficient unused quota for nvidia.com/gpu in flavor big, 6 more needed",
                }
            ]
        },
    ),
    an_object("kueue.x-k8s.io/v1beta2", "LocalQueue", "night", spec={"clusterQueue": "batch"}),
    an_object("kueue.x-k8s.io/v1beta2", "ClusterQueue", "batch", "", status={"pendingWorkloads": 3}),
]
RING: Final = {"labels": {"scheduling.x-k8s.io/pod-group": "ring"}}
CASES: Final[dict[str, Case]] = {
    "a taint on the only node": Case(
        [
            *a_refused("0/1 nodes are available: 1 node(s) had untolerated taint {dedicated: }."),
            a_node("n1", taint="dedicated"),
        ],
        "The only node has a taint that the pod does not tolerate: dedicated:NoSchedule. "
        "Tolerate the taint dedicated:NoSchedule: then it fits on n1.",
        "TaintNotTolerated",
    ),
    # 8 CPU a node, of which 6 and 8 are held.
    "too little left on two nodes": Case(
        [
            *a_refused("0/2 nodes are available: 2 Insufficient cpu.", spec=request(cpu="6")),
            a_running("held-1", "n1", "6"),
            a_running("held-2", "n2", "8"),
            a_node("n1"),
            a_node("n2"),
        ],
        "No node takes the pod as things are. Lower cpu of main from 6 to 2: then it fits on n1.",
        "ResourceInUse",
    ),
    "no node is large enough": Case(
        [
            *a_refused("0/1 nodes are available: 1 Insufficient cpu.", spec=request(cpu="16")),
            a_node("n1"),
        ],
        "No node is large enough: the pod asks for 16 cpu, and the largest node, n1, has 8. "
        "Lower cpu of main from 16 to 8: then it fits on n1.",
        "ResourceNeverEnough",
    ),
    "a label that no node has": Case(
        [
            *a_refused(
                "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector.",
                spec={"nodeSelector": {"pool": "h100"}},
            ),
            a_node("n1", labels={"pool": "a100"}),
            a_node("n2", labels={"pool": "a100"}),
        ],
        "No node takes the pod as things are. Drop pool=h100 from the pod's node selector or affinity: "
        "then it fits on n1.",
        "AffinityMismatch",
    ),
    # 24,576 MiB, of which 16,000 are held: 8,576 are left.
    "too little memory on the only device": Case(
        [
            *a_refused("0/1 nodes are available: 1 NodeUnfitPod.", spec=a_shared(1, 12000)),
            a_holder("n1", 16000),
            a_gpu_node("n1", 1),
        ],
        "The only node lacks memory: 12,000 MiB asked. Lower nvidia.com/gpumem of main from 12000 to "
        "8576: then it fits on n1.",
        "CardInsufficientMemory",
    ),
    "too few devices on each node": Case(
        [
            *a_refused("0/2 nodes are available: 2 NodeUnfitPod.", spec=a_shared(3, 20000)),
            a_holder("n1", 16000, name="one"),
            a_holder("n2", 16000, 16000, name="two"),
            a_gpu_node("n1", 3),
            a_gpu_node("n2", 3),
        ],
        "No node takes the pod as things are (nearest: n1, 1 of 3 devices short). Lower nvidia.com/gpumem"
        " of main from 20000 to 8576: then it fits on n2.",
        "CardInsufficientMemory",
    ),
    "a claim for devices that does not exist": Case(
        [a_pod(spec={"resourceClaims": [{"name": "gpu", "resourceClaimName": "fast"}]}), a_node("n1")],
        "The pod names the ResourceClaim fast, which does not exist in namespace lab, as far as the "
        "objects that were read show.",
        "DeviceClaimMissing",
    ),
    "a gang of three on two nodes": Case(
        [
            an_object("scheduling.x-k8s.io/v1alpha1", "PodGroup", "ring", spec={"minMember": 3}),
            *(a_pod(f"job-{number}", metadata=RING, spec=request(cpu="8")) for number in range(3)),
            a_node("n1"),
            a_node("n2"),
        ],
        "The pod's gang does not fit as a whole, so none of its pods starts (group ring); 3 of its pods "
        "have to start together: 2 of 3 members fit now, one after the other, and job-2 is the first that"
        " does not: On 2 of 2 nodes, other pods hold the cpu that the pod needs: 8 asked, at most 0 free "
        "on one node; held by lab/job-0 (8 on n1), lab/job-1 (8 on n2); the end of lab/job-0 would do, on"
        " n1.",
        "GangTooLarge",
    ),
    "a queue without quota": Case(
        QUEUE,
        "Kueue holds the pod: ClusterQueue batch (queue night) has too little unused quota of "
        "nvidia.com/gpu in flavor big, 6 more needed; 3 workloads wait in the queue.",
        "KueueWaitsForQuota",
    ),
    "a gate": Case(
        [a_pod(spec={"schedulingGates": [{"name": "example.com/hold"}]}), a_node("n1")],
        "1 scheduling gate holds the pod back: example.com/hold.",
        "SchedulingGated",
    ),
    "it fits now and was not tried again": Case(
        [*a_refused("0/1 nodes are available: 1 Insufficient cpu.", spec=request(cpu="6")), a_node("n1")],
        "By the objects that were read, the pod fits on 1 of 1 node (n1); default-scheduler refused it at"
        " 2026-11-24 08:00:02 UTC, and no try in the 29 min since is known.",
        "InsufficientResource",
    ),
    "its kubelet refused it": Case(
        [
            a_pod(
                spec={"nodeName": "n1"},
                status={
                    "phase": "Failed",
                    "reason": "OutOfcpu",
                    "message": "Node didn't have enough resource: cpu, requested: 4000, used: 2000, capacity: 4000",
                },
            ),
            a_node("n1"),
        ],
        "The kubelet of node n1 refused the pod (OutOfcpu): 4 of cpu asked, and 2 of 4 are in use there.",
        "KubeletOutOfResource",
    ),
    "placed, with the devices of its annotation": Case(
        [a_holder("n1", 16000, name="job-0"), a_gpu_node("n1")],
        "The pod is on node n1, with GPU-n1-0 (NVIDIA A10): 16,000 MiB.",
        "",
    ),
    "placed, with the scheduler's log": Case(
        [
            a_pod(spec=a_shared(1, 20480, nodeName="n1"), status={"phase": "Running", "conditions": [PLACED_AT]}),
            a_gpu_node("n1"),
            a_gpu_node("n2"),
            SCHEDULER,
        ],
        "The pod is on node n1. Its score put it before n2, the next best (7.50 > 4.25).",
        "",
        b"\n".join(
            [
                write_start("job-0", "lab"),
                write_request(1, pod=POD),
                write_fit("n1", "7.50", POD),
                write_fit("n2", "4.25", POD),
                an_event_line(
                    "FilteringSucceed", "find fit node(n1), 0 nodes not fit, 2 nodes fit(n1:7.50,n2:4.25)", POD
                ),
            ]
        ),
    ),
    # 40,900 MiB less 35,000 that are held, of which 30,000 are about to be released: 30,000 asked, 5,900 free.
    "memory counted before its release": Case(
        [],
        "The pod was put on device grp-0 of node gpu-0, where 5,900 MiB are free and 30,000 MiB are asked: the "
        "scheduler counted 30,000 MiB that other pods still hold and are about to release.",
        "ReleasingMemoryCounted",
        Path("tests/unit/ingest/readers/kai/cases/seed002-debug-tags.log").read_bytes(),
        "team-a/infer-0",
        ("ReleasingMemoryCounted",),
        is_of_log_only=True,
    ),
    "refused in a log": Case(
        [],
        "No node took the pod (nearest: n1, 1 of 2 devices short).",
        "CardInsufficientMemory",
        b"\n".join(
            [
                write_start("job-0", "lab"),
                write_request(2, pod=POD),
                write_unfit("n1", "1/4 AllocatedCardsInsufficientRequest, 3/4 CardInsufficientMemory", POD),
                write_unfit("n2", "4/4 CardInsufficientMemory", POD),
                write_failure(2, POD),
            ]
        ),
    ),
}


def find_attempt(case: Case) -> AttemptSummarized | None:
    """Find the attempt that the API has of the log, or of the pod's events."""
    pods = read_case_text(case.log.decode()).pods if case.log else build_case(case.objects, (), NOW).pods
    return pods.pods[POD].find_latest()[0] if POD in pods.pods else None


@pytest.mark.parametrize("name", CASES)
def test_every_surface_shows_the_same(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    case = CASES[name]
    # Workers of pytest-xdist have 80 columns, at which a sentence is broken.
    monkeypatch.setenv("COLUMNS", "10000")
    for module in CLOCKS:
        monkeypatch.setattr(module, "datetime", CLOCK)
    surfaces: dict[str, Any] = {}
    if case.objects:
        surfaces |= show_live(case.objects, "job-0", capsys, case.log)
    surfaces |= show_files(case.objects, case.pod, tmp_path, case.log)
    if not case.is_of_log_only:
        surfaces |= show_served(case.objects, "job-0", find_attempt(case))
    first = surfaces["explain"]
    for surface, other in surfaces.items():
        if surface == "API":
            other = other._replace(nodes=first.nodes)
        assert other == first, surface
    if case.objects and first.suggestions:
        again = simulate_again(case.objects, case.pod, tmp_path)
        assert again == first._replace(nodes=again.nodes)
    assert (first.headline, first.code, tuple(first.findings)) == (case.headline, case.code, case.findings)
