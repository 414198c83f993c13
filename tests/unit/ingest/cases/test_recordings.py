"""Recordings of real systems, each with the cause that was made on purpose: the answer has to state it first.

``recordings/*.json.gz`` hold, by situation, the objects and events as the API server gave them: Kueue v0.20, Volcano
after v1.16, DRA and pod groups of Kubernetes 1.36.3. Names and images are made up. The expected words come from how the
situation was set up, not from an answer.
"""

import gzip
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Final

import orjson
import pytest

from engine.cases.workloads import find_workloads
from ingest.cases.answers import explain_pod
from ingest.cases.read_case import ClusterCase, build_case
from ingest.cases.workload_answers import diagnose_workload
from schemas.answers.diagnosis import Diagnosis

FOLDER: Final = Path(__file__).parent / "recordings"
READ_AT: Final = datetime(2026, 11, 26, 1, 0, tzinfo=UTC)
RUNS: Final = ("kueue 01-quota-free", "volcano 01-gang-runs", "gangs 01-gang-runs")
CAUSES: Final = {
    "kueue 02-quota-full job/train-c": "KueueWaitsForQuota: 8 of its 8; Job/train-a (8); 2 of 3; after Job/train-b",
    "kueue 04-flavor-taint job/train-a": "KueueFlavorRefused: the taint spot-04=true:NoSchedule",
    "kueue 05-flavor-selector job/train-a": "KueueFlavorRefused: does not match the node selector",
    "kueue 06-local-queue-missing job/train-a": "KueueQueueMissing: LocalQueue research does not exist",
    "kueue 08-cluster-queue-held job/train-a": "KueueQueueStopped: ClusterQueue gpu-08; Stopped",
    "kueue 09-local-queue-held job/train-a": "KueueQueueStopped: LocalQueue team; Stopped",
    "kueue 10-flavor-missing job/train-a": "KueueQueueBroken: ClusterQueue gpu-10; missing ResourceFlavor(s): h100-10",
    "kueue 12-admission-check-rejected job/train-a": "KueueDeactivated: no capacity of this type in the zone",
    "kueue 13-admission-check-inactive job/train-a": "KueueQueueBroken: inactive AdmissionCheck(s): capacity-13",
    "kueue 14-preempted-by-priority job/train-a": "KueuePreempted: for Job/urgent; priority; held by Job/urgent (8)",
    "kueue 16-quota-lent-to-cohort job/own": "KueueWaitsForQuota: 0 of its 8; team-b-16 (8); may not take its own back",
    "kueue 17-reclaimed-by-cohort job/borrower": "KueuePreempted: for Job/own; took back quota that it had lent",
    "kueue 18-topology-does-not-fit job/train-a": "KueueTopology: topology racks-18; 1 of 2 fit",
    "kueue 20-workload-deactivated job/train-a": "KueueDeactivated: does not come back by itself",
    "kueue 21-admitted-pod-unschedulable job/train-a": "ResourceNeverEnough: 8 nvidia.com/gpu; the largest node",
    "kueue 22-plain-pod-gated note-1": "KueueWaitsForQuota: held by Pod/note-0 (8)",
    "kueue 24-namespace-not-selected job/train-a": "KueueNamespaceExcluded: namespace team-q24; tier=prod",
    "kueue 25-strict-fifo-blocked job/small": "KueueQueued: StrictFIFO; the head is Job/large; number 2 of 2",
    "kueue 26-two-flavors-refuse job/train-b": "KueueWaitsForQuota: flavor h100-26; spot-26 has the taint",
    "kueue 28-no-node-of-flavor job/train-a": "FlavorWithoutNode: flavor h100-28; no node has; pool=h100-28",
    "kueue 29-pod-group-above-maximum ring-0": "KueueExceedsMaximum: can never start; which is 4",
    "kueue 30-pods-ready-timeout job/train-a": "KueuePodsNotReady: 1 Insufficient nvidia.com/gpu; taken back 1 time",
    "kueue 32-admission-blocked-by-unready job/train-b": "KueueWaitsForReady: not ready: Job/train-a",
    "kueue 33-fair-sharing-share-used job/a-1": "KueueWaitsForQuota: no quota of its own; borrowed 8; team-b-33 (8)",
    "kueue 34-fair-sharing-preempted job/a-0": "KueuePreempted: for Job/b-0; fair sharing",
    "volcano 02-queue-full-at-enqueue job/train-b": "GroupNotEnqueued: may use 8 (capability), 8 are; asks for 4",
    "volcano 04-gang-larger-than-cluster job/train-a": "GroupNeverFits: never start; asks for 8; the cluster has 7",
    "volcano 05-no-node-large-enough job/train-a": "ResourceNeverEnough: asks for 8; has 4",
    "volcano 06-tainted-nodes job/train-a": "TaintNotTolerated: dedicated=infer:NoSchedule",
    "volcano 08-namespace-quota-at-enqueue job/train-a": "QueueFull: namespace team-v08; more than it ever allows",
    "volcano 09-namespace-quota-on-pods train-a-worker-0": "GangIncomplete: 2 of 4; exceeded quota: limit",
    "volcano 10-high-priority-not-enqueued job/urgent": "GroupNotEnqueued: limit is the cluster: 8 of 8 are in use",
    "volcano 12-two-tasks-larger-than-cluster job/train-a": "GroupNeverFits: asks for 8; the cluster has 4",
    "volcano 13-cluster-overused-at-enqueue job/train-b": "GroupNotEnqueued: the cluster has: 8 of 8 are in use",
    "volcano 14-queue-missing job/train-a": "QueueMissing: queue no-such-queue does not exist",
    "volcano 16-plain-pod note-1": "GroupNotEnqueued: limit is the cluster: 2 of 2 are in use",
    "volcano 17-selector job/train-a": "AffinityMismatch: pool=a100; pool = h100",
    "volcano 19-gang-7-of-8-one-in-use train-a-worker-0": "GangHasNode: 7 of 8 members fit; note-0 (1 on gpu-0)",
    "volcano 19-gang-7-of-8-one-in-use train-a-worker-7": "InsufficientResource: 7 of 8 members of its group fit",
    "volcano 21-two-tasks-one-short train-a-ps-0": "GangHasNode: train-a-worker-1 fits nowhere; 4 asked; note-0",
    "gangs 02-members-missing ring-0": "GangIncomplete: 2 of 4, 2 are missing",
    "gangs 04-group-missing ring-0": "GangGroupMissing: ring",
    "gangs 05-no-node-large-enough ring-0": "ResourceNeverEnough: asks for 8; has 4",
    "gangs 06-taint ring-0": "TaintNotTolerated: dedicated=infer:NoSchedule",
    "gangs 08-topology-no-rack-fits ring-0": "GangGaveBack: domain of example.com/rack",
    "gangs 09-gpus-in-use ring-0": "GangTooLarge: 2 of 4 members fit; train-0 (6 on gpu-0)",
    "gangs 10-preempted-group low-0": "Preempted: room for a pod of higher priority",
    "gangs 12-group-claim-no-device ring-0": "DevicesTooFew: 2 asked",
    "gangs 13-group-claim-template-missing ring-0": "ClaimTemplateMissing: two",
    "gangs 14-device-taint-rule-evicts train-0": "EvictedFromNode: gpu-0: DeviceTaintManagerEviction; 23:44:35 UTC",
    "gangs 14-device-taint-rule-evicts train-1": "DevicesTainted: broken=ecc:NoExecute of DeviceTaintRule gpu-0-broken",
    "dra 01-template-missing train-0": "ClaimTemplateMissing: one-gpu",
    "dra 02-claim-missing train-0": "DeviceClaimMissing: shared-gpu",
    "dra 04-selector-matches-no-device train-0": 'DevicesNotMatched: "H100", asked "B200"',
    "dra 05-capacity-selector-too-large train-0": "DevicesNotMatched: memory 80Gi, asked at least 141Gi",
    "dra 06-all-devices-taken train-4": "DevicesInUse: in use by claim",
    "dra 08-device-tainted train-0": "DevicesTainted: gpu.example.com/unhealthy=xid:NoSchedule",
    "dra 09-mode-all-one-taken whole-node": "DevicesInUse: 1/4 DeviceInUse; reserved for pod train-0",
    "dra 13-match-attribute-unsatisfied train-0": "DevicesTooFew: gpu.example.com/numa: 1; before it have 0",
    "dra 14-claim-allocated-on-full-node train-1": "DeviceClaimElsewhere: claim shared is allocated; of pool gpu-1",
    "dra 10-extended-resource-taken train-1": "DevicesInUse: reserved for pod train-0",
    "dra 12-pool-incomplete train-0": "DevicesUnusable: 1 of 2 slices",
    "dra 16-cel-error train-0": "DeviceSelectorFails: no such key: vramGiB",
    "dra 17-node-taint-hides-free-device train-1": "DevicesInUse: reserved for pod train-0",
}
"""Situation and subject, with the code of the obstacle and words of its sentence."""


@cache
def read_system(system: str) -> dict[str, list[Any]]:
    situations: dict[str, list[Any]] = orjson.loads(gzip.decompress((FOLDER / f"{system}.json.gz").read_bytes()))
    return situations


def build_recorded(system: str, situation: str) -> ClusterCase:
    return build_case(read_system(system)[situation], (), READ_AT)


def diagnose_subject(case: ClusterCase, subject: str) -> Diagnosis:
    word, _, name = subject.rpartition("/")
    if word:
        (key,) = find_workloads(case.objects, word, name)
        diagnosis = diagnose_workload(case, key).groups[0].diagnosis
        assert diagnosis
        return diagnosis
    (pod,) = [pod for pod in (*case.pods.pods, *list_names(case)) if pod.endswith(f"/{name}")][:1]
    return explain_pod(case, pod).diagnosis


def list_names(case: ClusterCase) -> list[str]:
    return [f"{namespace}/{name}" for namespace, name in case.objects.tables.get("Pod", {})]


@pytest.mark.parametrize("recording", CAUSES)
def test_the_cause_of_a_recording_is_stated_first(recording: str) -> None:
    system, situation, subject = recording.split()
    code, _, words = CAUSES[recording].partition(": ")
    diagnosis = diagnose_subject(build_recorded(system, situation), subject)
    assert diagnosis.obstacle
    assert diagnosis.obstacle.code == code
    for part in words.split("; "):
        assert part in diagnosis.sentence.en


@pytest.mark.parametrize("recording", RUNS)
def test_nothing_is_wrong_with_what_runs(recording: str) -> None:
    case = build_recorded(*recording.split())
    states = {explain_pod(case, name).diagnosis.state for name in list_names(case)}
    assert states == {"placed"}
