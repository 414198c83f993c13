"""Objects that events are about, built as far as the events tell: waiting or refused pods, their makers and groups.

A pod that is built has no container: it is asked about, and nothing of it is judged.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from engine.diagnosis.layers.kubelet import NODE_NAMED_BY
from engine.diagnosis.layers.pod_makers import REFUSALS
from engine.snapshot import kinds
from ingest.cases.described_kinds import USED_BY
from ingest.cases.descriptions import ASSIGNED
from ingest.cases.pasted_fragments import UNKNOWN_NODE, build_workload
from ingest.cases.stated_sentences import PastedEvent
from ingest.cases.unnamed_pods import DEFAULT_NAME
from runtime.kubernetes.object_fields import get_text
from schemas.json_types import Json

_WAITING: Final = (
    "FailedScheduling", "Unschedulable", "NotTriggerScaleUp", "TriggeredScaleUp", "Nominated", "Scheduling",
    "GangScheduling", "PodUnschedulable",
)  # fmt: skip
_AFTER_START: Final = ("Unhealthy", "BackOff", "Killing", "ProbeWarning", "NodeNotReady")
"""Reasons of a kubelet's warnings about a pod that has started."""
_UNWARNING: Final = ("cluster-autoscaler", "karpenter", "yunikorn")
"""Reporters whose words on a pod that waits are no warnings."""
_MINIMUM: Final = re.compile(r"(\d{1,6}) minAvailable")
_REJECTIONS: Final = re.compile(
    r"UnexpectedAdmissionError|TopologyAffinityError|SMTAlignmentError|OutOf\S+|Evicted|NodeAffinity"
)
WORKLOAD: Final = "Workload"
UNASSIGNED: Final = re.compile(r"couldn't assign flavors to pod set ")
"""Words of Kueue on a Workload without quota."""
_SCHEDULER: Final = re.compile(r"scheduler|^volcano$|^yunikorn$")
_MAKERS: Final = {
    "Deployment": "apps/v1", "ReplicaSet": "apps/v1", "StatefulSet": "apps/v1", "DaemonSet": "apps/v1",
    "Job": "batch/v1",
    "RayCluster": "ray.io/v1", "RayJob": "ray.io/v1", "JobSet": "jobset.x-k8s.io/v1alpha2",
    "LeaderWorkerSet": "leaderworkerset.x-k8s.io/v1", "PyTorchJob": "kubeflow.org/v1", "TFJob": "kubeflow.org/v1",
    "MPIJob": "kubeflow.org/v2beta1", "TrainJob": "trainer.kubeflow.org/v1alpha1",
}  # fmt: skip
"""API version of the kinds that make pods, which events name without it."""


def list_only_pod(objects: Sequence[Any]) -> list[Any]:
    """List the pod of a text that has one; empty for none or several."""
    pods = [entry for entry in objects if isinstance(entry, dict) and entry.get("kind") == kinds.POD]
    return pods if len(pods) == 1 else []


def complete_namespaces(manifests: Sequence[Any], events: Sequence[PastedEvent]) -> None:
    """Put a manifest without a namespace into the one that the events about a pod of its name have."""
    for entry in manifests:
        metadata = entry.get("metadata") if isinstance(entry, dict) and entry.get("kind") == kinds.POD else None
        if isinstance(metadata, dict) and not metadata.get("namespace"):
            named = {event.namespace for event in events if event.name == metadata.get("name")}
            if len(named) == 1 and all(named):
                (metadata["namespace"],) = named


def contradicts(pod: Any, events: Sequence[PastedEvent]) -> bool:
    """Tell whether events are about another pod: this one has started a container, which they say did not happen."""
    # An object keeps the events of its wait; a row of a table has no containers.
    is_row = not (pod.get("spec") or {}).get("containers")
    return has_started(pod) and any(
        _REJECTIONS.fullmatch(event.reason) or (is_row and event.reason in _WAITING) for event in events
    )


def has_started(pod: Any) -> bool:
    """Tell whether the kubelet has reported containers of the pod."""
    status = pod.get("status") or {}
    return bool(status.get("containerStatuses") or status.get("initContainerStatuses"))


def complete_pod(pod: Any, events: Sequence[PastedEvent]) -> None:
    """Add to a manifest what the events about it say of its state."""
    spec = pod.setdefault("spec", {})
    if status := pod.get("status"):
        host = next((event.host for event in events if event.host), "")
        if host and spec.get("nodeName", UNKNOWN_NODE) == UNKNOWN_NODE:
            spec["nodeName"] = host
        same = [event.note for event in events if event.reason == status.get("reason")]
        if same and not status.get("message"):
            status["message"] = same[-1]
        return
    built: Any = build_waiting_pod("", "", events)
    pod["status"] = built["status"]
    if spec.get("nodeName"):
        spec[NODE_NAMED_BY] = "manifest"
    elif (node := built["spec"].get("nodeName", UNKNOWN_NODE)) != UNKNOWN_NODE:
        spec["nodeName"] = node


def attach_claims(objects: Sequence[Any]) -> None:
    """Add described claims to the pods that use them and of which only events were read."""
    for claim in objects:
        for user in claim.get(USED_BY, ()) if isinstance(claim, dict) else ():
            key = get_namespace(claim), user
            for pod in objects:
                if pod.get("kind") == kinds.POD and (get_namespace(pod), get_text(pod, "metadata", "name")) == key:
                    _attach_claim(pod, claim["metadata"]["name"])


def _attach_claim(pod: Any, claim: str) -> None:
    if not pod["spec"].get("containers"):
        volume = {"name": claim, "persistentVolumeClaim": {"claimName": claim}}
        pod["spec"].setdefault("volumes", []).append(volume)


def build_waiting_pods(events: Sequence[Any]) -> Iterator[Json]:
    """Build the pods of a table of events that wait for a node or for their start.

    The last word on such a pod is that no node was found or added, or that its kubelet can't start it.
    """
    by_pod: dict[tuple[str, str], list[Any]] = {}
    for event in events:
        involved = event["involvedObject"]
        if involved["kind"] == "Pod":
            by_pod.setdefault((involved["namespace"], involved["name"]), []).append(event)
    for (namespace, name), reports in by_pod.items():
        latest = max(reversed(reports), key=lambda event: str(event["lastTimestamp"]))
        is_start_failure = latest["type"] == "Warning" and latest["source"]["component"] == "kubelet"
        if latest["reason"] in _WAITING:
            yield build_waiting_pod(namespace, name, [_to_pasted(latest)])
        elif is_start_failure and latest["reason"] not in _AFTER_START:
            yield build_waiting_pod(namespace, name, [_to_pasted(event) for event in reports])


def _to_pasted(event: Any) -> PastedEvent:
    involved = event["involvedObject"]
    return PastedEvent(
        event["reason"], event["message"], event["source"]["component"], event["type"] == "Warning",
        kind=involved["kind"], namespace=involved["namespace"], name=involved["name"],
    )  # fmt: skip


def build_makers(events: Sequence[Any]) -> Iterator[Json]:
    """Build the controllers of a table of events that could not create their pods."""
    makers: dict[tuple[str, str, str], None] = {}
    for event in events:
        involved = event["involvedObject"]
        if event["reason"] in REFUSALS:
            makers[involved["kind"], involved["namespace"] or "default", involved["name"]] = None
    for kind, namespace, name in makers:
        if built := _build_maker(kind, namespace, name):
            yield built


def build_unadmitted(events: Sequence[Any]) -> Iterator[Json]:
    """Build the Workloads of a table of events of which Kueue's last word is that they have no quota."""
    latest: dict[tuple[str, str], Any] = {}
    for event in sorted(events, key=lambda event: str(event["lastTimestamp"])):
        involved = event["involvedObject"]
        if involved["kind"] == WORKLOAD:
            latest[involved["namespace"] or "default", involved["name"]] = event
    for (namespace, name), event in latest.items():
        if UNASSIGNED.match(event["message"]):
            yield _build_unadmitted(namespace, name, event["message"])


def _build_unadmitted(namespace: str, name: str, words: str) -> Json:
    condition = {"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": words}
    return build_workload(namespace, name, {"conditions": [condition]})


def build_group(namespace: str, name: str, words: str) -> Json:
    """Build Volcano's pod group from words on it, which repeat its condition."""
    minimum = _MINIMUM.search(words)
    condition = {"type": "Unschedulable", "status": "True", "reason": "NotEnoughResources", "message": words}
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {"minMember": int(minimum[1]) if minimum else 1}, "status": {"conditions": [condition]},
    }  # fmt: skip


def attach_job(group: Json, jobs: Sequence[Any]) -> Json:
    """Give a group that only events name the job of its name, for which Volcano has made it, and that job's queue."""
    metadata = group["metadata"]
    key = metadata["namespace"], metadata["name"]
    job = next((job for job in jobs if (get_namespace(job), get_text(job, "metadata", "name")) == key), None)
    if job is None:
        return group
    owner = {"apiVersion": job["apiVersion"], "kind": job["kind"], "name": metadata["name"], "controller": True}
    spec = {**group["spec"], "queue": get_text(job, "spec", "queue") or "default"}
    return {**group, "metadata": {**metadata, "ownerReferences": [owner]}, "spec": spec}


def build_subject(kind: str, namespace: str, name: str, events: Sequence[PastedEvent]) -> Json | None:
    """Build the object that events are about; None for a kind that nobody asks about."""
    if kind == "PodGroup":
        return build_group(namespace, name, events[0].note)
    if kind == "Pod":
        return _build_pod(namespace, name, events)
    if kind == WORKLOAD:
        words = events[-1].note
        return _build_unadmitted(namespace, name, words) if UNASSIGNED.match(words) else None
    # What a controller reports without a warning is no reason to ask about it.
    return _build_maker(kind, namespace, name) if any(event.is_warning for event in events) else None


def _build_maker(kind: str, namespace: str, name: str) -> Json | None:
    """Build a controller of pods that only events name; None for other kinds."""
    version, metadata = _MAKERS.get(kind), {"namespace": namespace, "name": name}
    if version is None:
        return None
    spec = {"replicas": 1, "template": {"spec": {"containers": [{"name": DEFAULT_NAME}]}}}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec, "status": {}}


def get_namespace(entry: Any) -> str:
    return get_text(entry, "metadata", "namespace") or "default"


def _build_pod(namespace: str, name: str, events: Sequence[PastedEvent]) -> Json | None:
    """Build the pod that events are about; None where they say nothing of its wait or its start."""
    if not any(event.is_warning or event.reporter in _UNWARNING for event in events):
        return None
    return build_waiting_pod(namespace, name, events)


def build_waiting_pod(namespace: str, name: str, events: Sequence[PastedEvent]) -> Json:
    """Build a pod: its node and its scheduler as far as events say, and no container."""
    spec: dict[str, Any] = {}
    status: dict[str, Any] = {"phase": "Pending"}
    for event in events:
        if assigned := ASSIGNED.search(event.note):
            spec["nodeName"] = assigned["node"]
        if _SCHEDULER.search(event.reporter):
            spec["schedulerName"] = event.reporter
        if event.reporter == "kubelet" and event.is_warning:
            spec.setdefault("nodeName", event.host or UNKNOWN_NODE)
        if event.reporter == "kubelet" and _REJECTIONS.fullmatch(event.reason):
            status = {"phase": "Failed", "reason": event.reason, "message": event.note}
    metadata = {"namespace": namespace, "name": name}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}
