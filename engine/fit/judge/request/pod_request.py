"""Requests of a pod's containers of each vendor (HAMi's `GenerateResourceRequests`)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from engine.fit.devices.pod_usage import SIDECAR_POLICY
from engine.fit.judge.request.vendor_requests import read_vendor_request
from engine.hami.quantities import UNSET_PERCENT, parse_whole
from engine.hami.vendors import Family, Vendor, Vendors, get_rules
from schemas.events import MAX_REQUESTS

MAX_ASKING: Final = 16
"""Containers of a pod that may ask for devices: each is judged on every device of every node, and that is recorded."""
MAX_QUANTITIES: Final = 10_000
"""Limits and requests of a pod's containers, all together; twenty for each container of the largest pod."""
_INT32_MAX: Final = 2**31 - 1
_CORES_IN_PERCENT: Final = (Family.NVIDIA, Family.CUSTOM, Family.HYGON, Family.CAMBRICON, Family.AMD)
"""Families whose cores are percent of one device, however many devices a container requests."""


@dataclass(frozen=True, slots=True)
class VendorRequest:
    """Request of one container of one vendor.

    count: devices; 0 or less requests none. vendor: empty where the container names no vendor's resource. memory_mib:
    MiB per device; where 0, memory_percentage of each device's total counts (101: unset). cores: percent of one device.
    is_further: one more vendor's request of the container before it in the list. is_sidecar: an init container that
    HAMi's release counts with the app containers. mistake: an amount for which the release refuses the pod.
    """

    name: str
    is_init: bool = False
    vendor: str = ""
    count: int = 0
    memory_mib: int = 0
    memory_percentage: int = 0
    cores: int = 0
    is_further: bool = False
    is_sidecar: bool = False
    mistake: str = ""

    @property
    def is_lasting(self) -> bool:
        """True for a container that holds its devices as long as the pod."""
        return not self.is_init or self.is_sidecar

    @property
    def asks(self) -> bool:
        return self.count > 0


def deny_asking(asking: int) -> str:
    """Return the denial of a pod of which too many containers ask for devices; empty where it is accepted."""
    if asking <= MAX_ASKING:
        return ""
    return f"{asking} containers of the pod ask for devices, {MAX_ASKING} may: divide it into several pods"


def deny_requests(requests: Sequence[VendorRequest]) -> str:
    """Return the denial of a pod with too many containers; empty where it is accepted."""
    return deny_containers(len(requests)) or deny_asking(sum(request.asks for request in requests))


def deny_containers(containers: int) -> str:
    """Return the denial of a pod that asks for devices and has too many containers; empty where it is accepted."""
    if containers <= MAX_REQUESTS:
        return ""
    # The name of each is in every record about nodes.
    return f"the pod has {containers} containers, {MAX_REQUESTS} are judged at most: divide it into several pods"


def count_containers(pod: Mapping[str, Any]) -> int:
    return sum(len(listed) for _, listed in _list_container_fields(pod))


def deny_size(pod: Mapping[str, Any]) -> str:
    """Return the denial of a pod with devices and too many containers or quantities; empty where it is accepted."""
    if denial := deny_containers(count_containers(pod)):
        return denial
    quantities = sum(map(len, _list_quantities(pod)))
    if quantities <= MAX_QUANTITIES:
        return ""
    return f"the containers of the pod name {quantities} quantities of resources, {MAX_QUANTITIES} are read at most"


def names_devices(pod: Mapping[str, Any], vendors: Vendors) -> bool:
    """Tell whether a container names any resource of a vendor, in whatever amount."""
    names = frozenset(name for vendor in vendors for name in vendor.resources.names)
    return not all(map(names.isdisjoint, _list_quantities(pod)))


def _list_quantities(pod: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """List limits and requests of the containers, as far as they name anything."""
    for _, container in _list_containers(pod):
        resources = container.get("resources")
        if isinstance(resources, dict):
            parts = (resources.get("limits"), resources.get("requests"))
            yield from (amounts for amounts in parts if isinstance(amounts, dict))


def list_requests(pod: Mapping[str, Any], vendors: Vendors) -> tuple[VendorRequest, ...]:
    """List what ``iterate_requests`` gives."""
    return tuple(iterate_requests(pod, vendors))


def iterate_requests(pod: Mapping[str, Any], vendors: Vendors) -> Iterator[VendorRequest]:
    """Iterate over one request per container and requested vendor, init containers first, in the pod's order.

    A container that requests nothing has one request too: the annotation keeps an empty slot for it.
    """
    for is_init, container in _list_containers(pod):
        yield from _list_container_requests(container, is_init, vendors)


def _list_container_requests(container: Mapping[str, Any], is_init: bool, vendors: Vendors) -> list[VendorRequest]:
    quantities = _Quantities(container.get("resources"))
    # A vendor of which the container names neither count, memory nor cores is not asked.
    named = quantities.list_named(vendors) or vendors[:1]
    requests = [read_request(container, is_init, vendor) for vendor in named]
    if is_init and container.get("restartPolicy") == SIDECAR_POLICY and get_rules(vendors).counts_sidecars:
        requests = [replace(request, is_sidecar=True) for request in requests]
    asking = [request for request in requests if request.asks or request.mistake]
    return [asking[0], *(replace(more, is_further=True) for more in asking[1:])] if asking else requests[:1]


def _list_containers(pod: Mapping[str, Any]) -> Iterator[tuple[bool, Mapping[str, Any]]]:
    for is_init, listed in _list_container_fields(pod):
        for container in listed:
            yield is_init, container if isinstance(container, Mapping) else {}


def _list_container_fields(pod: Mapping[str, Any]) -> Iterator[tuple[bool, Sequence[Any]]]:
    spec = pod.get("spec")
    if not isinstance(spec, Mapping):
        return
    for is_init, field in ((True, "initContainers"), (False, "containers")):
        if isinstance(listed := spec.get(field), list):
            yield is_init, listed


def read_request(container: Mapping[str, Any], is_init: bool, vendor: Vendor) -> VendorRequest:
    """Read the request of one container for one vendor's devices; limits come before requests.

    An unusable amount of memory (not a whole number, negative, above int32) drops the whole request, as HAMi does up to
    v2.10; later releases refuse the pod.
    """
    request = _read_usable_request(container, is_init, vendor)
    quantities = _Quantities(container.get("resources"))
    if vendor.rules.denies_unread and (mistake := _find_mistake(quantities, request, vendor)):
        return VendorRequest(request.name, is_init, vendor.word, mistake=mistake)
    return request


def _find_mistake(quantities: "_Quantities", request: VendorRequest, vendor: Vendor) -> str:
    """Find the amount for which HAMi since v2.11 refuses the pod; empty for none, and for a count of 0."""
    names = vendor.resources
    if not quantities.names(names.count) or quantities.parse_whole(names.count) == 0:
        return ""
    count, cores = quantities.parse_whole(names.count), quantities.parse_whole(names.cores)
    if count is None or not 0 < count <= _INT32_MAX:
        return f"{names.count}: the count of devices is no whole number from 1 to {_INT32_MAX}"
    # No share of AMD's compute units is empty; of the others 0 leaves the cores open.
    least = 1 if vendor.family is Family.AMD else 0
    if (
        vendor.family in _CORES_IN_PERCENT
        and quantities.names(names.cores)
        and (cores is None or not least <= cores <= 100)
    ):
        return f"{names.cores}: the cores are no whole number from {least} to 100"
    if request.asks:
        return ""
    are_cores_usable = not quantities.names(names.cores) or (cores is not None and 0 <= cores <= _INT32_MAX)
    unusable = names.memory if are_cores_usable else names.cores
    return f"{unusable if quantities.names(unusable) else names.count}: the amount can't be used"


def _read_usable_request(container: Mapping[str, Any], is_init: bool, vendor: Vendor) -> VendorRequest:
    name, names, rules = str(container.get("name", "")), vendor.resources, vendor.amounts
    quantities = _Quantities(container.get("resources"))
    if vendor.family not in (Family.NVIDIA, Family.CUSTOM):
        amounts = read_vendor_request(quantities.limits, quantities.requests, vendor)
        return VendorRequest(name, is_init, vendor.word, *amounts) if amounts else VendorRequest(name, is_init)
    count, memory_mib = quantities.parse_whole(names.count), _read_memory(quantities, vendor)
    if count is None or memory_mib is None:
        return VendorRequest(name, is_init)
    percentage = _clamp_percentage(quantities.parse_whole(names.percentage))
    # HAMi gives the whole memory where the container names neither form.
    if memory_mib == 0 and percentage == UNSET_PERCENT:
        memory_mib, percentage = (rules.default_memory_mib, percentage) if rules.default_memory_mib else (0, 100)
    cores = quantities.parse_whole(names.cores)
    return VendorRequest(
        name, is_init, vendor.word, count, memory_mib, percentage, rules.default_cores if cores is None else cores
    )


def _read_memory(quantities: "_Quantities", vendor: Vendor) -> int | None:
    """Read MiB; 0 where the container names no memory, None where its amount can't be used."""
    names, rules = vendor.resources, vendor.amounts
    if not quantities.names(names.memory):
        return 0
    amount, unit = quantities.parse_whole(names.memory), max(rules.memory_unit_mib, 1)
    if rules.reads_bytes and quantities.has_suffix(names.memory):
        amount, unit = amount and amount >> 20, 1
    memory_mib = -1 if amount is None else amount * unit
    if not 0 <= memory_mib <= _INT32_MAX:
        return None
    # A request for cores means sharing in software, which can cut a device anywhere: no rounding to a template.
    return memory_mib if quantities.names(names.cores) else rules.round_up(memory_mib)


def _clamp_percentage(percentage: int | None) -> int:
    # As HAMi: 0 and below count as unset, more than 100 as 100.
    return UNSET_PERCENT if percentage is None or percentage <= 0 else min(percentage, 100)


class _Quantities:
    """Resource quantities of one container: its limits, and its requests where limits do not name a resource."""

    def __init__(self, resources: Any) -> None:
        parts = resources if isinstance(resources, Mapping) else {}
        quantities = [parts.get(field) for field in ("limits", "requests")]
        self.limits, self.requests = (amounts if isinstance(amounts, Mapping) else {} for amounts in quantities)
        self._maps = (self.limits, self.requests)

    def list_named(self, vendors: Vendors) -> Sequence[Vendor]:
        """List the vendors of which count, memory or cores are named."""
        # A vendor without one of the three has an empty name for it.
        named = (self.limits.keys() | self.requests.keys()) - {""}
        if not named:
            return ()
        pairs = ((vendor, vendor.resources) for vendor in vendors)
        return [vendor for vendor, names in pairs if not named.isdisjoint((names.count, names.memory, names.cores))]

    def names(self, resource: str) -> bool:
        return any(resource in amounts for amounts in self._maps)

    def parse_whole(self, resource: str) -> int | None:
        for amounts in self._maps:
            if resource in amounts:
                return parse_whole(amounts[resource])
        return None

    def has_suffix(self, resource: str) -> bool:
        """Tell whether the quantity ends in a letter, as `16Gi` does."""
        quantity = next((amounts[resource] for amounts in self._maps if resource in amounts), "")
        return isinstance(quantity, str) and quantity[-1:].isalpha()
