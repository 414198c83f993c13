"""Quotas that decide about a pod before or after it is created, in words: of the workload itself, and of its claim."""

from collections.abc import Iterator, Mapping
from typing import Final

from engine.claims.extended import CLASS_PREFIX
from engine.diagnosis.texts import write_phrase
from engine.simulation.cluster import SimulationCluster
from engine.simulation.quota_usage import DEVICES
from engine.simulation.setting import Note
from engine.simulation.workloads import PodTemplate
from engine.snapshot import kinds
from engine.snapshot.fields import Object
from engine.snapshot.quantity import NANO, QuantityError, read_nano
from runtime.kubernetes.object_fields import get_object, get_text, iterate_objects

_COUNTED: Final[Mapping[str, tuple[str, ...]]] = {
    "Job": ("count/jobs.batch",),
    "CronJob": ("count/cronjobs.batch",),
    "Deployment": ("count/deployments.apps",),
    "StatefulSet": ("count/statefulsets.apps",),
    "DaemonSet": ("count/daemonsets.apps",),
    "ReplicaSet": ("count/replicasets.apps",),
    "ReplicationController": ("count/replicationcontrollers", "replicationcontrollers"),
}
"""Entries of a quota that count the object of a workload, by its kind."""


def describe_object_quotas(cluster: SimulationCluster, workload: PodTemplate) -> Iterator[Note]:
    """Describe full quotas that count the workload's object, and those that count the claim of a bind."""
    namespace = get_text(workload.pod, "metadata", "namespace")
    for quota in cluster.list_kind(kinds.RESOURCE_QUOTA):
        if (get_text(quota, "metadata", "namespace") or "default") == namespace:
            yield from _describe_full(quota, workload, namespace)
            yield from _describe_classes(cluster, quota, workload, namespace)


def _describe_full(quota: Object, workload: PodTemplate, namespace: str) -> Iterator[Note]:
    hard, used = get_object(quota, "spec", "hard"), get_object(quota, "status", "used")
    for entry in _COUNTED.get(workload.kind, ()):
        try:
            is_full = entry in hard and read_nano(used.get(entry, 0)) + NANO > read_nano(hard[entry])
        except QuantityError:
            # No API server stores such a quota.
            continue
        if is_full:
            words = {"hard": str(hard[entry]), "used": str(used.get(entry, 0)), "entry": entry, "namespace": namespace}
            names = {"quota": get_text(quota, "metadata", "name"), "workload": f"{workload.kind}/{workload.name}"}
            yield Note("ObjectQuotaFull", write_phrase("note_object_quota", **words, **names))


def _describe_classes(
    cluster: SimulationCluster, quota: Object, workload: PodTemplate, namespace: str
) -> Iterator[Note]:
    hard = get_object(quota, "spec", "hard")
    for resource, device_class in _map_resources(cluster, workload.pod).items():
        if f"{device_class}{DEVICES}" in hard:
            words = {"quota": get_text(quota, "metadata", "name"), "namespace": namespace, "resource": resource}
            yield Note("ClassQuotaNotJudged", write_phrase("note_class_quota", device_class=device_class, **words))


def _map_resources(cluster: SimulationCluster, pod: Object) -> dict[str, str]:
    """Map the resources of the pod that device classes serve to the names of the classes."""
    named = {
        get_text(entry, "spec", "extendedResourceName"): get_text(entry, "metadata", "name")
        for entry in cluster.list_kind("DeviceClass")
    }
    resources = {
        name
        for field in ("initContainers", "containers")
        for container in iterate_objects(pod, "spec", field)
        for name in get_object(container, "resources", "limits")
    }
    served = {name: named[name] for name in sorted(resources) if name in named}
    implicit = {name: name.removeprefix(CLASS_PREFIX) for name in sorted(resources) if name.startswith(CLASS_PREFIX)}
    return served | implicit
