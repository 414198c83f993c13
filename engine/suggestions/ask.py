"""Device requests of a pod, in the form that changes are tried on."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, Self

from engine.fit.judge.request.pod_request import VendorRequest, list_requests
from engine.hami.annotations import DEVICE_POLICY
from engine.hami.go_values import to_mapping
from engine.hami.quantities import UNSET_PERCENT
from engine.hami.vendors import BY_SPECIFICATION, Family, Vendor, Vendors, asks_slices, find_code, find_vendor
from schemas.events import PodRef, Request

Constraint = Literal[
    "memory", "cores", "count", "type", "uuid", "mode", "numa", "policy", "quota", "cordon", "health", "use", "nodes",
    "registration", "lock", "taint", "selector", "request", "uncordon", "node", "claim", "class", "volume",
]  # fmt: skip
"""Constraint that may keep a pod from a node. ``use``: devices that other pods hold. ``nodes``: kube-scheduler did not
offer the node. ``registration``: no device plugin registers its devices. ``lock``: the node lock of a bind that has
ended. ``taint``, ``selector``, ``request``, ``uncordon``: taints, labels, amounts other than devices, and cordons of
nodes, which kube-scheduler's filters look at. ``node``: one more node. ``claim``: a bound in a selector of a
ResourceClaim. ``class``: the device class of a request in one. ``volume``: a claim for a volume that
other nodes do not reach."""

Amount = Literal["memory_mib", "memory_percentage", "cores", "count"]
"""A field of a request."""

ANNOTATION_CONSTRAINTS: Final[tuple[Constraint, ...]] = ("numa", "policy", "type", "uuid", "mode")
"""Constraints that the pod's annotations state."""
STRICT_POLICIES: Final = frozenset(("mutex", "topology-aware"))
"""Words of a device policy that exclude devices; the others only order them."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Device requests and metadata of a pod. requests: as `engine.fit.judge.request.pod_request` has them. metadata:
    the pod's namespace, name, uid and annotations."""

    requests: tuple[VendorRequest, ...]
    metadata: Mapping[str, Any]
    vendors: Vendors = field(compare=False)

    @classmethod
    def from_pod(cls, pod: Mapping[str, Any], vendors: Vendors) -> Self:
        """Build the requests from a pod's object."""
        return cls(list_requests(pod, vendors), to_mapping(pod.get("metadata")), vendors)

    @classmethod
    def from_attempt(
        cls, pod: PodRef, requests: Sequence[Request], annotations: Mapping[str, str], vendors: Vendors
    ) -> Self:
        """Build the requests from the events of an attempt. annotations: those that constrain devices."""
        metadata = {"namespace": pod.namespace, "name": pod.name, "uid": pod.uid, "annotations": dict(annotations)}
        return cls(tuple(_to_vendor_requests(requests, vendors)), metadata, vendors)

    @property
    def namespace(self) -> str:
        return str(self.metadata.get("namespace", ""))

    @property
    def annotations(self) -> Mapping[str, Any]:
        return to_mapping(self.metadata.get("annotations"))

    def list_vendors(self) -> list[Vendor]:
        """List the vendors whose devices a container requests."""
        words = dict.fromkeys(request.vendor for request in self.requests if request.asks)
        return [self.vendors[find_code(self.vendors, word) - 1] for word in words]

    def find_positions(self, name: Amount) -> list[int]:
        """Find the positions of the requests that name this amount."""
        return [position for position, request in enumerate(self.requests) if names_amount(request, name)]

    def cap(self, name: Amount, limit: int, positions: Collection[int] | None = None) -> "Ask":
        """Cap requests (at ``positions``, if given) at ``limit``; amounts that are not named stay unnamed."""
        requests = enumerate(self.requests)
        capped = (
            _cap(request, name, limit, self.vendors) if positions is None or position in positions else request
            for position, request in requests
        )
        return replace(self, requests=tuple(capped))

    def list_annotation_keys(self, constraint: Constraint) -> list[str]:
        """List the annotations of the pod that state the constraint."""
        keys: list[str] = []
        for vendor in self.list_vendors():
            pod = vendor.pod
            keys += {
                "type": [pod.use_type, pod.no_use_type],
                "uuid": [pod.use_uuid, pod.no_use_uuid],
                "mode": [pod.mode],
                "numa": [pod.numa_bind],
                "policy": [DEVICE_POLICY] if self._has_strict_policy() else [],
            }.get(constraint, [])
        return [key for key in dict.fromkeys(keys) if key and self.annotations.get(key)]

    def without(self, constraints: Sequence[Constraint]) -> "Ask":
        """Remove the annotations that state these constraints."""
        dropped = {key for constraint in constraints for key in self.list_annotation_keys(constraint)}
        return self.with_annotations({key: value for key, value in self.annotations.items() if key not in dropped})

    def with_annotations(self, annotations: Mapping[str, Any]) -> "Ask":
        """Replace the annotations by these."""
        return replace(self, metadata={**self.metadata, "annotations": dict(annotations)})

    def _has_strict_policy(self) -> bool:
        policy = self.annotations.get(DEVICE_POLICY)
        words = {word.strip() for word in policy.split(",")} if isinstance(policy, str) else set()
        return bool(words & STRICT_POLICIES)


def names_amount(request: VendorRequest, name: Amount) -> bool:
    """Tell whether the container requests devices and names this amount."""
    if name == "memory_percentage":
        return request.asks and request.memory_mib == 0 and request.memory_percentage < UNSET_PERCENT
    return request.asks and getattr(request, name) > 0


def _cap(request: VendorRequest, name: Amount, limit: int, vendors: Vendors) -> VendorRequest:
    if not names_amount(request, name) or getattr(request, name) <= limit:
        return request
    if name == "memory_mib":
        vendor = vendors[find_code(vendors, request.vendor) - 1]
        limit = _fit_size(limit, vendor)
    return replace(request, **{name: limit})  # type: ignore[arg-type]


def _fit_size(limit_mib: int, vendor: Vendor) -> int:
    """Fit an amount into the limit: the largest that a pod can request of this vendor, else the vendor's smallest."""
    if sizes := vendor.amounts.shares_mib:
        return max((size for size in sizes if size <= limit_mib), default=sizes[0])
    unit = max(vendor.amounts.memory_unit_mib, 1)
    return max(limit_mib // unit, 1) * unit


def _to_vendor_requests(requests: Sequence[Request], vendors: Vendors) -> Iterator[VendorRequest]:
    before: Request | None = None
    for request in requests:
        yield VendorRequest(
            request.container,
            request.init,
            request.vendor,
            request.count,
            request.memory_mib or 0,
            _restore_percentage(request, vendors),
            request.cores_percent,
            # A container that requests devices of several vendors has a request for each, one after the other.
            is_further=before is not None and (before.container, before.init) == (request.container, request.init),
        )
        before = request


def _restore_percentage(request: Request, vendors: Vendors) -> int:
    """Restore HAMi's percentage, which for Enflame says what the memory is: slices, or an amount that asks for some."""
    vendor = find_vendor(vendors, request.vendor)
    if vendor and vendor.family is Family.ENFLAME:
        return 0 if asks_slices(request.memory_mib or 0, request.cores_percent) else BY_SPECIFICATION
    return UNSET_PERCENT if request.memory_percent is None else request.memory_percent
