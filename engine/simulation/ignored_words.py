"""Words of a pod, a workload or a quota that no scheduler reads, with the nearest that one does.

HAMi and kube-scheduler ignore what they do not know: nothing fails, and the pod goes somewhere else than its owner
meant.
"""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple
from typing import Any, Final

from engine.diagnosis.outcome import FoundObstacle, Word
from engine.diagnosis.texts import write_phrase
from engine.diagnosis.wording import shorten_list
from engine.fit.devices.cluster_state import ClusterColumns
from engine.hami import annotations as hami
from engine.hami import vendor_annotations
from engine.hami.reason_codes import ReasonCode
from engine.hami.registration import Device
from engine.hami.vendors import Family, Vendor, Vendors
from engine.simulation.admission import AdmittedPod
from engine.simulation.cluster import SimulationCluster
from engine.simulation.setting import Note
from engine.simulation.workloads import PodTemplate
from engine.snapshot.quantity import is_tracked
from engine.snapshot.snapshot import Snapshot
from runtime.kubernetes.object_fields import get_object, get_text, iterate_objects

_MIN_LIKENESS: Final = 0.72
_MIG: Final = re.compile(r"(?P<vendor>[^/]+)/mig-(?P<slices>\d+)g\.(?P<size>\d+)gb")
_POLICIES: Final[Mapping[str, tuple[str, ...]]] = {
    hami.NODE_POLICY: ("binpack", "spread"),
    hami.DEVICE_POLICY: ("binpack", "spread", "mutex", "topology-aware"),
}
_MIG_MODE: Final = "mig"
TABLE_UNKNOWN: Final = "ResourceNotInTable"


def list_read_keys(vendors: Vendors) -> frozenset[str]:
    """List the annotations of a pod that HAMi's scheduler, webhook or device plugins read."""
    keys = {hami.NODE_POLICY, hami.DEVICE_POLICY, hami.SCORING_WEIGHTS, vendor_annotations.ASCEND_MODE}
    keys |= {vendor_annotations.METAX_QOS, vendor_annotations.METAX_LINKS, vendor_annotations.METAX_CLASS}
    keys |= {vendor_annotations.XPU_USE_UUID, vendor_annotations.XPU_NO_USE_UUID}
    for vendor in vendors:
        keys |= {key for key in astuple(vendor.pod) if key}
    return frozenset(keys)


def describe_misplaced(workload: PodTemplate, vendors: Vendors) -> Iterator[Note]:
    """Describe annotations of a workload that only its pods' template may carry."""
    template = get_object(workload.pod, "metadata", "annotations")
    for key in sorted(list_read_keys(vendors) & workload.annotations.keys()):
        words = {"key": key, "workload": f"{workload.kind}/{workload.name}", "value": str(workload.annotations[key])}
        phrase = "note_on_workload_too" if key in template else "note_on_workload"
        yield Note("AnnotationOnWorkload", write_phrase(phrase, **words))


def describe_keys(pod: Mapping[str, Any], vendors: Vendors) -> Iterator[Note]:
    """Describe annotations that are almost one that HAMi reads."""
    keys = list_read_keys(vendors)
    prefixes = {key.partition("/")[0] for key in keys}
    for key in sorted(get_object(pod, "metadata", "annotations")):
        if key in keys:
            continue
        name = key.partition("/")[2] or key
        candidates = {other.partition("/")[2]: other for other in sorted(keys)}
        full = difflib.get_close_matches(key, sorted(keys), 1, 0.8)
        near = difflib.get_close_matches(name, sorted(candidates), 1, _MIN_LIKENESS)
        is_of_vendor = key.partition("/")[0] in prefixes
        nearest = full[0] if full else candidates[near[0]] if near and (is_of_vendor or "/" not in key) else ""
        if nearest:
            yield Note("UnknownAnnotation", write_phrase("note_unknown_key", key=key, nearest=nearest))


def describe_values(pod: Mapping[str, Any], vendors: Vendors, columns: ClusterColumns) -> Iterator[Note]:
    """Describe values that no node or scheduler has: models, UUIDs, policies."""
    annotations = get_object(pod, "metadata", "annotations")
    for key, words in _POLICIES.items():
        value = annotations.get(key)
        unknown = [word for word in str(value).split(",") if word.strip() not in words] if value else []
        if unknown:
            yield Note(
                "UnknownPolicy",
                write_phrase("note_unknown_policy", key=key, value=str(value), policies=", ".join(words)),
            )
    devices = list(_iterate_devices(columns))
    for vendor in vendors:
        yield from _describe_models(annotations, vendor, [device.model for device in devices])
        yield from _describe_uuids(annotations, vendor, frozenset(device.uuid for device in devices))


def find_excluding_reason(pod: Mapping[str, Any], vendors: Vendors, columns: ClusterColumns) -> str:
    """Find the reason for which no registered device suits the pod's annotations; empty if one does, or none is
    registered."""
    annotations = get_object(pod, "metadata", "annotations")
    devices = list(_iterate_devices(columns))
    uuids, models = {device.uuid for device in devices}, {device.model.upper() for device in devices}
    for vendor in vendors if devices else ():
        wanted = _split(annotations.get(vendor.pod.use_uuid)) if vendor.pod.use_uuid else []
        if wanted and uuids.isdisjoint(wanted):
            return ReasonCode.CARD_UUID_MISMATCH
        words = _split(annotations.get(vendor.pod.use_type)) if vendor.pod.use_type else []
        if words and not any(word.upper() in model for word in words for model in models):
            return ReasonCode.CARD_TYPE_MISMATCH
        mode = str(annotations.get(vendor.pod.mode) or "") if vendor.pod.mode else ""
        if mode and all(device.mode not in mode for device in devices):
            return ReasonCode.CARD_TYPE_MISMATCH
    return ""


def _iterate_devices(columns: ClusterColumns) -> Iterator[Device]:
    for name in columns.node_names:
        registration = columns.get_registration(name)
        yield from registration.devices if registration else ()


def _split(value: Any) -> list[str]:
    return [word for part_ in str(value or "").split(",") if (word := part_.strip())]


def _describe_models(annotations: Mapping[str, Any], vendor: Vendor, models: Sequence[str]) -> Iterator[Note]:
    upper = {model.upper() for model in models}
    for key in (vendor.pod.use_type, vendor.pod.no_use_type):
        for word in _split(annotations.get(key)) if key else ():
            if upper and not any(word.upper() in model for model in upper):
                distinct = sorted(dict.fromkeys(models))
                near = difflib.get_close_matches(word, distinct, 1, 0.4)
                words = shorten_list([*near, *(model for model in distinct if model not in near)])
                yield Note("UnknownModel", write_phrase("note_unknown_model", key=key, word=word, models=words))


def _describe_uuids(annotations: Mapping[str, Any], vendor: Vendor, uuids: frozenset[str]) -> Iterator[Note]:
    for key in (vendor.pod.use_uuid, vendor.pod.no_use_uuid):
        for uuid in _split(annotations.get(key)) if key else ():
            if uuids and uuid not in uuids:
                near = difflib.get_close_matches(uuid, sorted(uuids), 1, 0.7)
                phrase = "note_unknown_uuid_near" if near else "note_unknown_uuid"
                words = {"key": key, "uuid": uuid, "nearest": near[0] if near else ""}
                yield Note("UnknownUuid", write_phrase(phrase, **words))


def list_unknown_resources(pod: Mapping[str, Any], vendors: Vendors) -> list[str]:
    """List resources of the vendors' names that the device table does not know."""
    table = frozenset(name for vendor in vendors for name in vendor.resources.names)
    domains = {name.partition("/")[0] for name in table}
    named = {
        name
        for field in ("initContainers", "containers")
        for container in iterate_objects(pod, "spec", field)
        for amounts in ("limits", "requests")
        for name in get_object(container, "resources", amounts)
    }
    return sorted(name for name in named - table if name.partition("/")[0] in domains and "/" in name)


def is_mig_resource(resource: str) -> bool:
    """Tell whether the resource is a profile of NVIDIA's own device plugin."""
    return _MIG.fullmatch(resource) is not None


def describe_resource(resource: str, snapshot: Snapshot, vendors: Vendors) -> Note:
    """Describe a resource that the device table does not know, by what the reader can do."""
    if mig := _MIG.fullmatch(resource):
        nvidia = next((vendor for vendor in vendors if vendor.family is Family.NVIDIA), None)
        memory = int(mig["size"]) * 1024
        if nvidia:
            words = {"resource": resource, "count": nvidia.resources.count, "memory": nvidia.resources.memory}
            return Note("MigResource", write_phrase("note_mig", **words, mib=str(memory), mode=nvidia.pod.mode))
    names = sorted(name for vendor in vendors for name in vendor.resources.names)
    near = difflib.get_close_matches(resource, names, 1, 0.5)
    offering = sorted(name for name, info in snapshot.nodes.items() if info.node.allocatable.get(resource, 0) > 0)
    phrase = "note_unknown_resource_offered" if offering else "note_unknown_resource"
    words = {"resource": resource, "nearest": near[0] if near else next(iter(names), "")}
    return Note("UnknownResource", write_phrase(phrase, **words, nodes=shorten_list(offering)))


def describe_quotas(quotas: Iterable[Mapping[str, Any]], pod: Mapping[str, Any], vendors: Vendors) -> Iterator[Note]:
    """Describe entries of the namespace's quotas that limit nothing: names that neither Kubernetes nor HAMi counts."""
    namespace = get_text(pod, "metadata", "namespace")
    counted = [name for vendor in vendors for name in (vendor.resources.memory, vendor.resources.cores) if name]
    named = {name for vendor in vendors for name in vendor.resources.names}
    domains = {name.partition("/")[0] for name in named}
    for quota in quotas:
        if (get_text(quota, "metadata", "namespace") or "default") != namespace:
            continue
        name = get_text(quota, "metadata", "name")
        for entry in get_object(quota, "spec", "hard"):
            prefix, _, resource = entry.partition(".")
            is_hamis = prefix == "limits" and resource in counted
            is_kubernetes = prefix == "requests" and resource in named
            if "/" not in resource or prefix not in ("requests", "limits") or is_hamis or is_kubernetes:
                continue
            if resource.partition("/")[0] in domains and is_tracked(resource):
                yield Note("QuotaName", _describe_quota_entry(f"{namespace}/{name}", entry, resource, counted))


def _describe_quota_entry(quota: str, entry: str, resource: str, counted: Sequence[str]) -> Any:
    near = difflib.get_close_matches(resource, counted, 1, 0.4)
    of_vendor = [name for name in counted if name.partition("/")[0] == resource.partition("/")[0]]
    nearest = near[0] if near else (of_vendor or list(counted))[0]
    others = [f"limits.{name}" for name in of_vendor if name != nearest]
    return write_phrase(
        "note_quota", quota=quota, entry=entry, nearest=f"limits.{nearest}", others=shorten_list(others)
    )


def find_table_obstacles(
    cluster: SimulationCluster, pod: Mapping[str, Any], admitted: AdmittedPod
) -> tuple[FoundObstacle, ...]:
    """Find resources that a device table which fits the cluster would know.

    Nodes that register devices and offer none under the table's name offer them under another: HAMi's resources are
    renamed there, and nothing is known about what the pod asks for.
    """
    if not admitted.is_hamis or not cluster.has_hami:
        return ()
    unknown = [name for name in list_unknown_resources(pod, cluster.vendors) if not is_mig_resource(name)]
    renamed = [name for name in unknown if _is_renamed(cluster, name)]
    if not renamed:
        return ()
    words: dict[str, Word] = {"resources": shorten_list(renamed), "count": len(renamed)}
    return (FoundObstacle(TABLE_UNKNOWN, words),)


def _is_renamed(cluster: SimulationCluster, resource: str) -> bool:
    domain = resource.partition("/")[0]
    names = [vendor.resources.count for vendor in cluster.vendors]
    counts = [name for name in names if name.partition("/")[0] == domain]
    nodes = [cluster.snapshot.nodes[name].node for name in cluster.columns.node_names if name in cluster.snapshot.nodes]
    return bool(nodes) and not any(node.allocatable.get(count, 0) for node in nodes for count in counts)
