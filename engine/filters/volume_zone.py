"""VolumeZone: zone and region labels of volumes against those of nodes."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from engine.filters.cycle import SKIPPED, NodeCheck, Prepared, SchedulingCycle
from engine.filters.migrated_disks import ZONE_SEPARATOR
from engine.filters.verdicts import PluginRefusal, StatusCode, Unjudged, Verdict
from engine.snapshot import kinds
from engine.snapshot.node_info import NodeInfo
from engine.snapshot.snapshot import Snapshot
from engine.snapshot.volumes import PersistentVolume, VolumeClaim

NAME: Final = "VolumeZone"
_REFUSAL: Final = PluginRefusal(NAME, StatusCode.UNRESOLVABLE, ("node(s) had no available volume zone",))
_CURRENT: Final = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
_TOPOLOGY_LABELS: Final = (*_CURRENT.keys(), *_CURRENT.values())


@dataclass(frozen=True, slots=True)
class ZoneCheck(NodeCheck):
    """Judges the zone labels of a node."""

    topologies: tuple[tuple[str, frozenset[str]], ...]
    """Labels of the pod's volumes with the values that will do."""

    def judge(self, node: NodeInfo) -> Verdict:
        """Refuse a node in another zone or region; a node without any such label passes."""
        labels = node.node.labels
        if not any(label in labels for label in _TOPOLOGY_LABELS):
            return None
        for label, values in self.topologies:
            value = labels.get(label, labels.get(_CURRENT.get(label, label)))
            if value is None or value not in values:
                return _REFUSAL
        return None


class _RefusedError(Exception):
    """A claim or volume for which the plugin refuses the pod."""


def prepare(cycle: SchedulingCycle) -> Prepared:
    """Take the zone labels of the volumes behind the pod's claims."""
    names = [volume.claim for volume in cycle.pod.volumes if volume.is_named_claim]
    if not names:
        return SKIPPED
    if unread := cycle.snapshot.find_missing_kinds(kinds.VOLUME_CLAIM, kinds.VOLUME, kinds.STORAGE_CLASS):
        return Unjudged(NAME, unread)
    try:
        volumes = [_find_volume(cycle.snapshot, cycle.pod.namespace, name) for name in names]
    except _RefusedError as error:
        return PluginRefusal(NAME, StatusCode.UNRESOLVABLE, (str(error),))
    topologies = tuple(topology for volume in volumes if volume for topology in _iterate_topologies(volume))
    return ZoneCheck(topologies) if topologies else SKIPPED


def _find_volume(snapshot: Snapshot, namespace: str, name: str) -> PersistentVolume | None:
    """Return the volume of a claim; None while a consumer is still to decide it."""
    if not name:
        raise _RefusedError("PersistentVolumeClaim had no name")
    claim = snapshot.find_volume_claim(namespace, name)
    if claim is None:
        raise _RefusedError(f'persistentvolumeclaim "{name}" not found')
    if not claim.volume:
        _require_delayed_binding(snapshot, claim)
        return None
    volume = snapshot.find_volume(claim.volume)
    if volume is None:
        raise _RefusedError(f'persistentvolume "{claim.volume}" not found')
    return volume


def _require_delayed_binding(snapshot: Snapshot, claim: VolumeClaim) -> None:
    if not claim.storage_class:
        raise _RefusedError("PersistentVolumeClaim had no pv name and storageClass name")
    storage_class = snapshot.find_storage_class(claim.storage_class)
    if storage_class is None:
        raise _RefusedError(f'storageclass.storage.k8s.io "{claim.storage_class}" not found')
    if storage_class.binding_mode != "WaitForFirstConsumer":
        raise _RefusedError("PersistentVolume had no name")


def _iterate_topologies(volume: PersistentVolume) -> Iterator[tuple[str, frozenset[str]]]:
    for label in _TOPOLOGY_LABELS:
        if (text := volume.labels.get(label)) is not None and (values := _read_zones(text)):
            yield label, values


def _read_zones(text: str) -> frozenset[str]:
    """Read the zones of a label; a text with an empty part is passed over, as Kubernetes cannot read it."""
    zones = [part.strip() for part in text.split(ZONE_SEPARATOR)]
    return frozenset(zones) if all(zones) else frozenset()
