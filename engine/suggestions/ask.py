"""What a pod asks of devices, in the form that changes are tried on."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, Self

from engine.fit.judge.request.pod_request import VendorRequest, container_requests
from engine.hami.annotations import DEVICE_POLICY
from engine.hami.json_values import to_mapping
from engine.hami.requests import UNSET_PERCENT
from engine.hami.vendors import Vendor, Vendors, find_code
from schemas.events import PodRef, Request

Constraint = Literal[
    "memory", "cores", "count", "type", "uuid", "mode", "numa", "policy", "quota", "cordon", "health", "use", "nodes",
    "registration", "lock",
]  # fmt: skip
"""What may keep a pod from a node. ``use``: what other pods hold. ``nodes``: kube-scheduler did not offer the node.
``registration``: no device plugin registers its devices. ``lock``: the node lock of a bind that has ended."""

Amount = Literal["memory_mib", "memory_percentage", "cores", "count"]
"""A field of a request."""

OF_ANNOTATIONS: Final[tuple[Constraint, ...]] = ("numa", "policy", "type", "uuid", "mode")
"""Constraints that stand in the pod's annotations."""
STRICT_POLICIES: Final = frozenset(("mutex", "topology-aware"))
"""Words of a device policy that exclude devices; the others only order them."""


@dataclass(frozen=True, slots=True)
class Ask:
    """requests: as `engine.fit.judge.request.pod_request` has them. metadata: the pod's namespace, name, uid and
    annotations."""

    requests: tuple[VendorRequest, ...]
    metadata: Mapping[str, Any]
    vendors: Vendors = field(compare=False)

    @classmethod
    def of_pod(cls, pod: Mapping[str, Any], vendors: Vendors) -> Self:
        """As the pod's object has it."""
        return cls(container_requests(pod, vendors), to_mapping(pod.get("metadata")), vendors)

    @classmethod
    def of_attempt(
        cls, pod: PodRef, requests: Sequence[Request], annotations: Mapping[str, str], vendors: Vendors
    ) -> Self:
        """As the events of an attempt have it. annotations: those that constrain devices."""
        metadata = {"namespace": pod.namespace, "name": pod.name, "uid": pod.uid, "annotations": dict(annotations)}
        return cls(tuple(_vendor_requests(requests)), metadata, vendors)

    @property
    def namespace(self) -> str:
        return str(self.metadata.get("namespace", ""))

    @property
    def annotations(self) -> Mapping[str, Any]:
        return to_mapping(self.metadata.get("annotations"))

    def asked_vendors(self) -> list[Vendor]:
        """The vendors whose devices some container asks for."""
        words = dict.fromkeys(request.vendor for request in self.requests if request.asks)
        return [self.vendors[find_code(self.vendors, word) - 1] for word in words]

    def places(self, name: Amount) -> list[int]:
        """Positions of the requests that name this amount."""
        return [place for place, request in enumerate(self.requests) if names_amount(request, name)]

    def capped(self, name: Amount, limit: int, places: Collection[int] | None = None) -> "Ask":
        """No request (at one of ``places``, if given) is for more than ``limit``; what is not named stays unnamed."""
        requests = enumerate(self.requests)
        capped = (
            _capped(request, name, limit, self.vendors) if places is None or place in places else request
            for place, request in requests
        )
        return replace(self, requests=tuple(capped))

    def annotation_keys(self, constraint: Constraint) -> list[str]:
        """The annotations of the pod that make the constraint."""
        keys: list[str] = []
        for vendor in self.asked_vendors():
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
        """Without the annotations that make these constraints."""
        gone = {key for constraint in constraints for key in self.annotation_keys(constraint)}
        return self.annotated({key: value for key, value in self.annotations.items() if key not in gone})

    def annotated(self, annotations: Mapping[str, Any]) -> "Ask":
        """With these annotations in place of its own."""
        return replace(self, metadata={**self.metadata, "annotations": dict(annotations)})

    def _has_strict_policy(self) -> bool:
        policy = self.annotations.get(DEVICE_POLICY)
        words = {word.strip() for word in policy.split(",")} if isinstance(policy, str) else set()
        return bool(words & STRICT_POLICIES)


def names_amount(request: VendorRequest, name: Amount) -> bool:
    """Whether the container asks for devices, and says so much about this amount."""
    if name == "memory_percentage":
        return request.asks and request.memory_mib == 0 and request.memory_percentage < UNSET_PERCENT
    return request.asks and getattr(request, name) > 0


def _capped(request: VendorRequest, name: Amount, limit: int, vendors: Vendors) -> VendorRequest:
    if not names_amount(request, name) or getattr(request, name) <= limit:
        return request
    if name == "memory_mib":
        vendor = vendors[find_code(vendors, request.vendor) - 1]
        limit = _size_within(limit, vendor)
    return replace(request, **{name: limit})  # type: ignore[arg-type]


def _size_within(limit_mib: int, vendor: Vendor) -> int:
    """The largest amount up to the limit that a pod can ask of this vendor; its smallest one where none is."""
    if sizes := vendor.amounts.shares_mib:
        return max((size for size in sizes if size <= limit_mib), default=sizes[0])
    unit = max(vendor.amounts.memory_unit_mib, 1)
    return max(limit_mib // unit, 1) * unit


def _vendor_requests(requests: Sequence[Request]) -> Iterator[VendorRequest]:
    before: Request | None = None
    for request in requests:
        yield VendorRequest(
            request.container,
            request.init,
            request.vendor,
            request.count,
            request.memory_mib or 0,
            UNSET_PERCENT if request.memory_percent is None else request.memory_percent,
            request.cores_percent,
            # One container that asks several vendors has a request for each, one after the other.
            is_further=before is not None and (before.container, before.init) == (request.container, request.init),
        )
        before = request
