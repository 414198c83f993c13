"""Devices that a placed pod holds: those of its annotations (HAMi, Koordinator, Volcano), and those of its claims."""

from collections.abc import Iterator, Mapping

from engine.device_parts.koordinator import DEVICE
from engine.device_parts.node_devices import list_node_devices, list_part_allocations
from engine.hami.allocation import list_allocations
from engine.hami.node_registration import read_node
from engine.hami.vendor_catalog import list_vendors
from engine.snapshot import kinds
from engine.snapshot.case_objects import CaseObjects
from runtime.kubernetes.object_fields import Fields, get_object, get_text, iterate_objects
from schemas.events import PickedDevice


def list_held_devices(pod: Fields, objects: CaseObjects) -> list[PickedDevice]:
    """List the devices of a pod on a node; none of a pod without a node, whose annotations may be those of a decision
    that was given up."""
    node = get_text(pod, "spec", "nodeName")
    if not node:
        return []
    return [
        *_list_booked(pod, objects.find(kinds.NODE, node)),
        *_iterate_claimed(pod, objects),
        *_iterate_parts(pod, objects),
    ]


def holds_shares(pod: Fields) -> bool:
    """Tell whether the pod holds parts of devices that objects of another kind describe."""
    return bool(list_part_allocations(pod))


def _iterate_parts(pod: Fields, objects: CaseObjects) -> Iterator[PickedDevice]:
    """Iterate over the devices of Koordinator or Volcano that the pod holds parts of."""
    name = get_text(pod, "spec", "nodeName")
    devices = list_node_devices(objects.find(kinds.NODE, name) or {}, objects.find(DEVICE, name), [pod])
    observed = {device.id: device for device in devices if device.shares}
    for share in list_part_allocations(pod):
        device = observed.get(share.uuid)
        memory = sum(held.memory_mib for held in device.shares) if device else share.memory_mib
        yield PickedDevice(
            container=0, uuid=share.uuid, model=device.model if device else "", memory_mib=memory or None,
            cores_percent=share.cores_percent or 0,
        )  # fmt: skip


def _list_booked(pod: Fields, node: Fields | None) -> list[PickedDevice]:
    """List the devices that the pod's containers share, each once with the sum of their amounts."""
    allocations = [device for device in list_allocations(pod) if not device.init]
    models = _read_models(node) if node and allocations else {}
    booked: dict[str, PickedDevice] = {}
    for device in allocations:
        other = booked.get(device.uuid)
        booked[device.uuid] = PickedDevice(
            container=0,
            uuid=device.uuid,
            model=models.get(device.uuid, ""),
            memory_mib=(device.memory_mib or 0) + ((other.memory_mib or 0) if other else 0),
            cores_percent=(device.cores_percent or 0) + (other.cores_percent if other else 0),
        )
    return list(booked.values())


def _read_models(node: Fields) -> Mapping[str, str]:
    vendors = list_vendors(get_object(node, "metadata", "annotations"))
    registered = read_node(node, vendors).combine_devices(vendors)
    return {device.uuid: device.model for device in registered.registration.devices} if registered else {}


def _iterate_claimed(pod: Fields, objects: CaseObjects) -> Iterator[PickedDevice]:
    created = {
        get_text(entry, "name"): get_text(entry, "resourceClaimName")
        for entry in iterate_objects(pod, "status", "resourceClaimStatuses")
    }
    for reference in iterate_objects(pod, "spec", "resourceClaims"):
        name = get_text(reference, "resourceClaimName") or created.get(get_text(reference, "name"), "")
        claim = objects.find(kinds.RESOURCE_CLAIM, name, get_text(pod, "metadata", "namespace") or "default")
        for device in iterate_objects(claim or {}, "status", "allocation", "devices", "results"):
            identity = "/".join(get_text(device, part) for part in ("driver", "pool", "device"))
            yield PickedDevice(container=0, uuid=identity)
