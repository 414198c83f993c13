"""Device amounts of a pod that HAMi does not count as they are written, each with the next step."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from engine.diagnosis.texts import write_phrase
from engine.fit.judge.request.pod_request import read_request
from engine.hami.quantities import has_unit, is_quantity, parse_whole, round_up
from engine.hami.vendors import Vendor, Vendors
from engine.simulation.setting import Note
from runtime.kubernetes.object_fields import get_object, get_text, iterate_objects

_MIB: Final = 2**20
_INT32_MAX: Final = 2**31 - 1


def describe_uncounted(pod: Mapping[str, Any], vendors: Vendors) -> Iterator[Note]:
    """Describe amounts in requests only, memory that can't be used, and amounts without a number of devices.

    pod: as its owner wrote it.
    """
    for field in ("initContainers", "containers"):
        for container in iterate_objects(pod, "spec", field):
            for vendor in vendors:
                yield from _describe_container(container, vendor)


def _describe_container(container: Mapping[str, Any], vendor: Vendor) -> Iterator[Note]:
    limits, requests = (get_object(container, "resources", field) for field in ("limits", "requests"))
    names = vendor.resources
    name = get_text(container, "name")
    shares = [key for key in (names.count, names.memory, names.percentage, names.cores) if key]
    for key in shares:
        if key in requests and key not in limits:
            yield Note("RequestsOnly", write_phrase("note_requests_only", container=name, resource=key))
    if names.memory and (value := limits.get(names.memory)) is not None:
        yield from _describe_memory(container, vendor, value)
    counts = parse_whole(limits.get(names.count, requests.get(names.count))) if names.count else None
    if counts is not None and counts <= 0:
        yield Note(
            "NoDevices", write_phrase("note_count_zero", container=name, resource=names.count, value=str(counts))
        )
    named = [key for key in shares[1:] if key in limits]
    if named and names.count not in limits and not vendor.amounts.default_count:
        words = write_phrase("note_no_count", container=name, resource=named[0], count=names.count)
        yield Note("NoCount", words)


def _describe_memory(container: Mapping[str, Any], vendor: Vendor, value: Any) -> Iterator[Note]:
    """Describe an amount of memory with a unit, which HAMi reads as a number of MiB."""
    resource, name = vendor.resources.memory, get_text(container, "name")
    unit = max(vendor.amounts.memory_unit_mib, 1)
    amount = parse_whole(value)
    is_usable = amount is not None and 0 <= amount * unit <= _INT32_MAX
    if vendor.amounts.reads_bytes:
        return
    if not is_usable:
        words = {"container": name, "resource": resource, "value": str(value), "instead": _choose_amount(value, unit)}
        is_dropped = not read_request({**container, "resources": _with_count(container, vendor)}, False, vendor).asks
        phrase = "note_memory_dropped" if is_dropped else "note_memory_ignored"
        yield Note("MemoryNotCounted", write_phrase(phrase, **words))
    elif isinstance(value, str) and not value.isdigit() and has_unit(value):
        words = {"container": name, "resource": resource, "value": value, "mib": f"{(amount or 0) * unit:,}"}
        yield Note("MemoryUnit", write_phrase("note_memory_unit", **words))
    elif amount == 0:
        yield Note("MemoryZero", write_phrase("note_memory_zero", container=name, resource=resource))


def _choose_amount(value: Any, unit: int) -> str:
    """Choose the whole number of the unit (MiB) that the owner meant, or an example where the text has no amount."""
    amount = round_up(value) if is_quantity(value) else 0
    has_suffix = isinstance(value, str) and value[-1:].isalpha()
    mib = amount // _MIB if has_suffix else amount
    return str(max(mib // unit, 1)) if 0 < mib <= _INT32_MAX else "a number such as 8192"


def _with_count(container: Mapping[str, Any], vendor: Vendor) -> dict[str, Any]:
    """Return the container's resources with a device, as the webhook adds it."""
    resources = get_object(container, "resources")
    limits = get_object(resources, "limits")
    return {**resources, "limits": {vendor.resources.count: "1", **limits}}
