"""Replays HAMi's recorded annotation codecs and request rules through ours."""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.judge.request.pod_annotations import WeightsError, parse_weights, read_pod_annotations
from engine.fit.judge.request.pod_request import read_request
from engine.hami import allocation, node_lock, node_registration, registration
from engine.hami.allocation import AllocatedDevice
from engine.hami.registration import Device, Malformed, Registration
from engine.hami.vendors import NVIDIA, Vendor
from engine.summaries.text import read_reasons, write_reasons
from tests.conformance.configured import configure_nvidia, read_shipped_vendors
from tests.conformance.difference import Case, Difference
from tests.conformance.objects import build_node

REFUSED: Final = "refused"
"""Stands for any error: HAMi passes on the texts of Go's standard library, ours say where and what to write instead."""


def compare_codec(case: Case) -> Iterator[Difference]:
    """Compare our answer with HAMi's."""
    argument = case["out"] if case["fn"] in _READ_BACK else case["in"]
    answer, expected = _OURS[case["fn"]](argument), _expect_answer(case)
    if answer != expected:
        yield Difference("", f"{case['fn']} of {str(case['in'])[:300]}", answer, expected)


def answer_codec(case: Case) -> Iterator[Any]:
    """Return only our answer."""
    yield _OURS[case["fn"]](case["out"] if case["fn"] in _READ_BACK else case["in"])


def _expect_answer(case: Case) -> Any:
    fn, out = case["fn"], case["out"]
    if case["error"]:
        return case["error"] if fn in ("scoring_weights_parse", "node_lock_parse") else REFUSED
    if fn in ("register_json_decode", "register_colon_decode", "node_devices"):
        return [_complete_device(device) for device in out]
    if fn in _READ_BACK:
        return (
            [_complete_device(device) for device in case["in"]]
            if fn == "register_json_encode"
            else _drop_mig_profiles(case["in"])
        )
    if fn in ("pair_scores_decode", "mig_allocations_decode"):
        return out or []
    if fn == "register_sequence":
        return [step.get("device_ids") for step in out]
    return out


def _complete_device(device: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    return device and {**device, "migProfiles": device["migProfiles"] or []}


def _drop_mig_profiles(devices: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Drop MIG profiles, which the colon form cannot hold."""
    return [{**device, "migProfiles": []} for device in devices]


def _to_devices(devices: tuple[Device, ...] | Malformed) -> Any:
    return REFUSED if isinstance(devices, Malformed) else [_to_device(device) for device in devices]


def _decode_node_devices(annotations: Mapping[str, Any]) -> Any:
    decoded = node_registration.decode_nvidia(annotations)
    return _to_devices(decoded.registration.devices) if isinstance(decoded, node_registration.NodeDevices) else REFUSED


def _to_device(device: Device) -> dict[str, Any]:
    return {
        "id": device.uuid,
        "index": device.index,
        "count": device.slots,
        "devmem": device.memory_mib,
        "devcore": device.cores,
        "type": device.model,
        "numa": device.numa,
        "mode": device.mode,
        "health": device.is_healthy,
        "migProfiles": [
            {
                "name": profile.name,
                "memoryMB": profile.memory_mib,
                "core": profile.cores,
                "sliceCount": profile.slices,
                "placements": [{"start": placement.start, "size": placement.size} for placement in profile.placements],
            }
            for profile in device.mig_profiles
        ],
    }


def _decode_pair_scores(text: str) -> Any:
    scores = node_registration.decode_pair_scores(text)
    return REFUSED if isinstance(scores, Malformed) else [{"uuid": k, "score": dict(v)} for k, v in scores.items()]


def _decode_pod_devices(text: str) -> Any:
    try:
        containers = allocation.decode_devices(text)
    except allocation.AllocationError:
        return REFUSED
    names = ("uuid", "type", "usedmem", "usedcores")
    return [
        [dict(zip(names, (h.uuid, h.type, h.memory_mib, h.cores), strict=True)) for h in held] for held in containers
    ]


def _encode_pod_devices(containers: list[list[Mapping[str, Any]]]) -> str:
    return allocation.encode_devices(
        [[AllocatedDevice(h["uuid"], h["type"], h["usedmem"], h["usedcores"]) for h in held] for held in containers]
    )


def _decode_mig_allocations(text: str) -> Any:
    try:
        allocations = allocation.decode_mig(text)
    except allocation.AllocationError:
        return REFUSED
    return [_to_mig_allocation(row) for row in allocations]


def _to_mig_allocation(row: allocation.MigAllocation) -> dict[str, Any]:
    fields = {
        "containerIndex": row.container,
        "deviceIndex": row.device,
        "gpuUUID": row.uuid,
        "profile": row.profile,
        "placement": {"start": row.placement.start, "size": row.placement.size},
    }
    runtime = {
        "migUUID": row.mig_uuid,
        "gpuInstanceID": row.gpu_instance,
        "computeInstanceID": row.compute_instance,
    }
    return fields | (runtime if row.mig_uuid else {})


def _read_weights(text: str) -> Any:
    try:
        weights = parse_weights(text)
    except WeightsError as error:
        return str(error)
    return {"slot": weights.slot, "core": weights.core, "memory": weights.memory}


def _read_container_request(case: Mapping[str, Any]) -> dict[str, Any]:
    container = case["container"]
    vendor = configure_nvidia(case["config"]) if "config" in case else _find_vendor(case)
    request = read_request({"name": container["name"], "resources": container}, False, vendor)
    return {
        "Nums": request.count,
        "Type": request.vendor,
        "Memreq": request.memory_mib,
        "MemPercentagereq": request.memory_percentage,
        "Coresreq": request.cores,
    }


def _find_vendor(case: Mapping[str, Any]) -> Vendor:
    return next(vendor for vendor in read_shipped_vendors(case["device_config"]) if vendor.word == case["vendor"])


def _read_vendor_devices(case: Mapping[str, Any]) -> Any:
    registration = node_registration.read_vendor(build_node(case["node"]["name"], case["node"]), _find_vendor(case))
    return (
        [_to_vendor_device(device) for device in registration.devices]
        if isinstance(registration, Registration)
        else REFUSED
    )


def _to_vendor_device(device: Device) -> dict[str, Any]:
    written = _to_device(device)
    written.pop("migProfiles")
    extra = {key: dict(value) if isinstance(value, tuple) else value for key, value in device.extra}
    return written | ({"custominfo": extra} if extra else {})


def _register_repeatedly(states: list[Mapping[str, Any]]) -> list[list[str] | None]:
    """List the devices that count after each look at the node; None while it is unregistered."""
    columns, seen = ClusterColumns(accepts_colon_form=False), []
    for state in states:
        node = {
            "metadata": {"name": "node", "annotations": state["annotations"]},
            "status": {"allocatable": state.get("allocatable") or {}},
        }
        columns.apply_node(node, datetime.strptime(state["clock"], "%Y-%m-%dT%H:%M:%SZ"))  # noqa: DTZ007
        fragment = columns.get_fragment("node")
        seen.append(list(fragment.uuids) if fragment else None)
    return seen


def _lock(text: str) -> Any:
    try:
        lock = node_lock.parse_lock(text)
    except node_lock.NodeLockError as error:
        return str(error)
    time = lock.since.isoformat(timespec="milliseconds" if lock.since.microsecond else "seconds")
    return {"namespace": lock.owner[0], "name": lock.owner[1], "time": time.replace("+00:00", "Z")}


_READ_BACK: Final = ("register_json_encode", "register_colon_encode")
"""Written by device plugins: what they write must be read as what they meant."""

_OURS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "register_json_decode": lambda text: _to_devices(registration.decode_json(text)),
    "register_colon_decode": lambda text: _to_devices(registration.decode_colon(text)),
    "register_json_encode": lambda text: _to_devices(registration.decode_json(text)),
    "register_colon_encode": lambda text: _to_devices(registration.decode_colon(text)),
    "node_devices": _decode_node_devices,
    "node_lock_parse": _lock,
    "reason_parse": lambda text: {reason.code: reason.refused for reason in read_reasons(text) if reason},
    "reason_format": lambda argument: write_reasons(argument["counts"], argument["devices"]),
    "pair_scores_decode": _decode_pair_scores,
    "pod_devices_decode": _decode_pod_devices,
    "pod_devices_encode": _encode_pod_devices,
    "mig_allocations_decode": _decode_mig_allocations,
    "scoring_weights_parse": _read_weights,
    "container_request": _read_container_request,
    "vendor_node_devices": _read_vendor_devices,
    "type_filter": lambda argument: read_pod_annotations(argument["annotations"], "", "", NVIDIA).accepts_type(
        argument["type"]
    ),
    "uuid_filter": lambda argument: read_pod_annotations(argument["annotations"], "", "", NVIDIA).accepts_uuid(
        argument["uuid"]
    ),
    "register_sequence": _register_repeatedly,
}
