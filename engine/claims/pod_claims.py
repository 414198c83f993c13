"""The claims of a pod, and the refusals of DynamicResources before any node is looked at."""

from collections.abc import Iterable
from dataclasses import dataclass

from engine.claims.claims import ResourceClaim
from engine.claims.extended import ExtendedClaim, find_extended_claim
from engine.claims.inventory import Inventory
from engine.claims.request_plans import AskedClaim
from engine.filters.dynamic_resources import NAME
from engine.filters.verdicts import PluginRefusal, StatusCode
from engine.snapshot import kinds
from engine.snapshot.fields import Object, RejectedObject, read_items, read_mapping, read_text
from engine.snapshot.pods import Pod
from engine.snapshot.requests import Amounts


@dataclass(frozen=True, slots=True, eq=False)
class ClaimsOfPod:
    """The claims of a pod in its order. extended: the claim for its extended resources, which comes last."""

    pod: Pod
    claims: tuple[ResourceClaim, ...]
    extended: ExtendedClaim | None
    pre_enqueue: PluginRefusal | None
    """Refusal that keeps the pod from the queue."""
    pre_filter: PluginRefusal | None
    """Refusal of the pod before any node is looked at."""

    @property
    def is_empty(self) -> bool:
        """Return whether there is nothing to decide."""
        return not self.claims and self.extended is None

    @property
    def stored(self) -> tuple[ResourceClaim, ...]:
        """Claims that exist in the cluster."""
        prior = self.extended.prior if self.extended else None
        return (*self.claims, prior) if prior else self.claims

    @property
    def unallocated(self) -> tuple[AskedClaim, ...]:
        """Claims without devices that do not depend on the node."""
        return tuple([AskedClaim(claim.title, claim.spec) for claim in self.claims if claim.allocation is None])

    @property
    def to_allocate(self) -> tuple[str, ...]:
        """Names of the claims for which devices have to be found."""
        names = [claim.name for claim in self.claims if claim.allocation is None]
        extended = self.extended
        if extended and (extended.prior is None or extended.prior.allocation is None):
            names.append(extended.name)
        return tuple(names)


class ClaimRejectedError(Exception):
    """A claim of the pod, or a class of one, that is left out of the inventory because of a malformed field."""

    def __init__(self, rejected: RejectedObject) -> None:
        """Keep the kind, the field and the cause."""
        super().__init__(rejected.to_sentence())
        self.kind = rejected.kind


class _RefusedError(Exception):
    """A claim that refuses the pod; the text is kube-scheduler's."""


def collect_claims(inventory: Inventory, pod: Pod, request: Amounts) -> ClaimsOfPod:
    """Collect the claims of a pod that asks for amounts of resources, and check them.

    A pod that is refused has those claims that exist nevertheless. Raises FieldError for a malformed pod and
    ClaimRejectedError for a malformed claim.
    """
    claims: list[ResourceClaim] = []
    refusal: PluginRefusal | None = None
    references = _PodReferences(inventory, pod)
    for path, reference in read_items(read_mapping(pod.object, "spec"), "resourceClaims", "spec"):
        try:
            claim = references.find_claim(path, reference)
            if claim:
                claims.append(claim)
                references.check_claim(claim, is_generated=reference.get("resourceClaimName") is None)
        except _RefusedError as error:
            refusal = refusal or _refuse(str(error))
    extended = None
    if inventory.gates.extended_resources:
        extended = find_extended_claim(pod, request, inventory.extended_classes, inventory.claims.values())
    return ClaimsOfPod(pod, tuple(claims), extended, refusal, refusal or _find_refusal(inventory, claims))


class _PodReferences:
    """Follows what a pod says about its claims."""

    def __init__(self, inventory: Inventory, pod: Pod) -> None:
        self._inventory = inventory
        self._pod = pod
        self._pod_title = f"{pod.namespace}/{pod.name}"
        self._generated = _read_generated_names(pod.object)

    def find_claim(self, path: str, reference: Object) -> ResourceClaim | None:
        """Find a claim that the pod names; None for a template that asks for nothing."""
        if reference.get("resourceClaimName") is not None:
            return self._get_claim(read_text(reference, "resourceClaimName", path))
        name = self._find_generated_name(path, reference)
        return None if name is None else self._get_claim(name)

    def check_claim(self, claim: ResourceClaim, *, is_generated: bool) -> None:
        """Check that a claim may be used by the pod; one that was made from a template belongs to one pod."""
        if claim.is_deleted:
            raise _RefusedError(f'resourceclaim "{claim.name}" is being deleted')
        if is_generated and claim.owner[1] != self._pod.uid:
            cause = "Pod is not owner"
            raise _RefusedError(f"ResourceClaim {claim.title} was not created for Pod {self._pod_title} ({cause})")

    def _find_generated_name(self, path: str, reference: Object) -> str | None:
        name = read_text(reference, "name", path)
        if reference.get("resourceClaimTemplateName") is None:
            cause = "none of the supported fields are set"
            raise _RefusedError(f'pod "{self._pod_title}", spec.resourceClaim "{name}": {cause}')
        if name not in self._generated:
            raise _RefusedError(f'pod "{self._pod_title}": ResourceClaim not created yet')
        return self._generated[name]

    def _get_claim(self, name: str) -> ResourceClaim:
        key = self._pod.namespace, name
        claim = self._inventory.claims.get(key)
        if claim is None:
            _raise_for_rejected(self._inventory, kinds.RESOURCE_CLAIM, key)
            raise _RefusedError(f'could not find ResourceClaim "{self._pod.namespace}/{name}"')
        return claim


def _read_generated_names(pod: Object) -> dict[str, str | None]:
    """Read the names of claims that were made from templates, by their name in the pod."""
    statuses = read_items(read_mapping(pod, "status"), "resourceClaimStatuses", "status")
    names: dict[str, str | None] = {}
    for path, status in statuses:
        absent = status.get("resourceClaimName") is None
        names.setdefault(
            read_text(status, "name", path), None if absent else read_text(status, "resourceClaimName", path)
        )
    return names


def _find_refusal(inventory: Inventory, claims: Iterable[ResourceClaim]) -> PluginRefusal | None:
    """Find the first request of an unallocated claim that no node can meet."""
    for claim in claims:
        if claim.allocation is None:
            refusal = _check_claim(inventory, claim)
            if refusal:
                return refusal
    return None


def _check_claim(inventory: Inventory, claim: ResourceClaim) -> PluginRefusal | None:
    for group in claim.spec.groups:
        where = f"resource claim {claim.title}, request {group.name}"
        if not group.choices:
            return _refuse(f"{where}: unknown request type")
        if not group.exact and not inventory.gates.prioritized_list:
            return _refuse(f"{where}: has subrequests, but the DRAPrioritizedList feature is disabled")
        for request in (group.exact,) if group.exact else group.alternatives:
            if not request.class_name:
                cause = f"request {request.full_name}: unsupported request type"
                return PluginRefusal(NAME, StatusCode.ERROR, (cause,))
            if request.class_name not in inventory.classes:
                _raise_for_rejected(inventory, kinds.DEVICE_CLASS, ("", request.class_name))
                return _refuse(f"request {request.full_name}: device class {request.class_name} does not exist")
    return None


def _raise_for_rejected(inventory: Inventory, kind: str, key: tuple[str, str]) -> None:
    """Raise ClaimRejectedError for an object that was left out, which is not one that does not exist."""
    for rejected in inventory.rejected:
        if (rejected.kind, rejected.namespace, rejected.name) == (kind, *key):
            raise ClaimRejectedError(rejected)


def _refuse(text: str) -> PluginRefusal:
    return PluginRefusal(NAME, StatusCode.UNRESOLVABLE, (text,))
