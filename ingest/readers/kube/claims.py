"""The devices that pods hold through resource claims (dynamic resource allocation), as the claims' status has them.

A claim is allocated before its pod is bound, but the two are watched apart: a pod on a node waits here for the claims
that it names, so that no observation shows it without its devices.
"""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from engine.hami import quantities
from ingest.readers.kube.objects import remember
from runtime.kubernetes.object_fields import Fields, get_object, get_text, iterate_objects
from schemas.events import DeviceAllocation, PodObserved

HELD_SECONDS: Final = 10.0
"""Limit of a pod's wait for its claims; then it is observed without them."""
_ENDED: Final = ("Succeeded", "Failed")
_MIB: Final = 1024 * 1024


class ClaimedDevice(NamedTuple):
    request: str
    """The request of the claim that it fulfils; one of several alternatives as ``request/alternative``."""
    id: str
    """``driver/pool/device``: unique in a cluster."""
    memory_mib: int | None
    """The claim's part of a device that several share; None if the claim does not name it, or has all of it."""


class _PodClaim(NamedTuple):
    key: str
    """``namespace/name`` of the claim; empty while it is not made yet."""
    containers: tuple[tuple[str, str, bool], ...]
    """Containers that use it: name, the request that they name (empty: all), and True for an init container."""


@dataclass(frozen=True, slots=True)
class _HeldPod:
    observed: PodObserved
    claims: list[_PodClaim]
    seen_at: float


def list_devices(claim: Fields) -> list[ClaimedDevice] | None:
    """List the devices of an allocated claim; None while it is not allocated."""
    allocation = get_object(claim, "status", "allocation")
    if not allocation:
        return None
    results = iterate_objects(allocation, "devices", "results")
    # Admin access monitors a device that others hold.
    return [
        _parse_device(result)
        for result in results
        if get_text(result, "device") and result.get("adminAccess") is not True
    ]


def _parse_device(result: Fields) -> ClaimedDevice:
    device_id = "/".join(get_text(result, name) for name in ("driver", "pool", "device"))
    consumed = get_object(result, "consumedCapacity")
    # Names of capacities may have their driver before them.
    memory = next((amount for name, amount in consumed.items() if name.rpartition("/")[2] == "memory"), None)
    amount = quantities.parse_whole(memory)
    return ClaimedDevice(get_text(result, "request"), device_id, None if amount is None else amount // _MIB)


class PodClaims:
    """``is_read``: are the cluster's claims watched? Where they are not, pods are observed without their devices."""

    def __init__(self) -> None:
        self.is_read = False
        self._devices: OrderedDict[str, list[ClaimedDevice]] = OrderedDict()
        """The devices of the allocated claims, by namespace and name."""
        self._held: OrderedDict[str, _HeldPod] = OrderedDict()

    def complete(self, observed: PodObserved, pod: Fields, now: float) -> PodObserved | None:
        """Complete the observation with the devices of the pod's claims; None if it waits for one of them."""
        self._held.pop(str(observed.pod), None)
        claims = list(_iterate_claims(pod)) if self.is_read and observed.node else []
        if all(claim.key in self._devices for claim in claims) or observed.phase in _ENDED:
            return self._with_devices(observed, claims)
        remember(self._held, str(observed.pod), _HeldPod(observed, claims, now))
        return None

    def note_claim(self, claim: Fields) -> list[PodObserved]:
        """Note the claim's devices, and release the observations that waited only for this claim."""
        key = f"{get_text(claim, 'metadata', 'namespace')}/{get_text(claim, 'metadata', 'name')}"
        devices = list_devices(claim)
        if devices is None:
            self._devices.pop(key, None)
            return []
        remember(self._devices, key, devices)
        return self._release([pod for pod, held in self._held.items() if self._is_complete(held)])

    def release_overdue(self, now: float) -> list[PodObserved]:
        """Release the observations that have waited for too long, with the devices known so far."""
        return self._release([pod for pod, held in self._held.items() if now - held.seen_at >= HELD_SECONDS])

    def forget(self, pod: str) -> None:
        """Forget a deleted pod."""
        self._held.pop(pod, None)

    def _is_complete(self, held: _HeldPod) -> bool:
        return all(claim.key in self._devices for claim in held.claims)

    def _release(self, pods: list[str]) -> list[PodObserved]:
        held = [self._held.pop(pod) for pod in pods]
        return [self._with_devices(held_pod.observed, held_pod.claims) for held_pod in held]

    def _with_devices(self, observed: PodObserved, claims: list[_PodClaim]) -> PodObserved:
        allocations = [
            _to_allocation(device, claim.containers) for claim in claims for device in self._devices.get(claim.key, ())
        ]
        return (
            observed.model_copy(update={"allocations": [*observed.allocations, *allocations]})
            if allocations
            else observed
        )


def _iterate_claims(pod: Fields) -> Iterator[_PodClaim]:
    namespace = get_text(pod, "metadata", "namespace")
    # Of a claim made from a template the name is in the pod's status; it is missing while the claim is not made.
    generated_names = {
        get_text(status, "name"): get_text(status, "resourceClaimName")
        for status in iterate_objects(pod, "status", "resourceClaimStatuses")
    }
    for named in iterate_objects(pod, "spec", "resourceClaims"):
        name = get_text(named, "name")
        claim = get_text(named, "resourceClaimName") or generated_names.get(name)
        # A claim that is not needed has a status without a name.
        if claim or name not in generated_names:
            yield _PodClaim(f"{namespace}/{claim}" if claim else "", tuple(_iterate_users(pod, name)))


def _iterate_users(pod: Fields, claim: str) -> Iterator[tuple[str, str, bool]]:
    for kind in ("initContainers", "containers"):
        for container in iterate_objects(pod, "spec", kind):
            for used in iterate_objects(container, "resources", "claims"):
                if get_text(used, "name") == claim:
                    yield get_text(container, "name"), get_text(used, "request"), kind == "initContainers"


def _to_allocation(device: ClaimedDevice, containers: tuple[tuple[str, str, bool], ...]) -> DeviceAllocation:
    users = {
        (name, is_init)
        for name, request, is_init in containers
        if request in ("", device.request, device.request.partition("/")[0])
    }
    # The pod holds it until its end, whichever of its containers use it.
    name = next(iter(users))[0] if len(users) == 1 else ""
    return DeviceAllocation(uuid=device.id, container=name, memory_mib=device.memory_mib)
