"""Extended resources that a device class serves (DRAExtendedResource): kube-scheduler makes up a claim for them."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from engine.claims.claims import ResourceClaim
from engine.claims.quantity import QuantityTextError, read_quantity
from engine.claims.requests import EXACT_COUNT, ClaimRequest, ClaimSpec, DeviceClass, RequestGroup
from engine.snapshot.fields import FieldError, Object, quote, read_items, read_mapping
from engine.snapshot.pods import Pod
from engine.snapshot.requests import Amounts, is_sidecar

CLASS_PREFIX: Final = "deviceclass.resource.kubernetes.io/"
MADE_UP_NAME: Final = "<extended-resources>"
"""Name of the claim that kube-scheduler makes up, until it is written to the API server."""

_QUALIFIED: Final = re.compile(
    r"(?=.{1,244}/)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
    r"/(?=.{1,63}\Z)[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"
)


def map_classes(classes: Iterable[DeviceClass]) -> Mapping[str, str]:
    """Map extended resources to the classes that serve them.

    Of several classes for one resource the newest counts, then the first name. One that loses against a class with a
    name before its own has no resource by its own name either, because kube-scheduler stops there.
    """
    by_resource: dict[str, DeviceClass] = {}
    for device_class in sorted(classes, key=lambda device_class: device_class.name):
        resource = device_class.extended_resource
        rival = by_resource.get(resource) if resource else None
        if rival and device_class.created <= rival.created:
            continue
        if resource:
            by_resource[resource] = device_class
        by_resource[CLASS_PREFIX + device_class.name] = device_class
    return {resource: device_class.name for resource, device_class in by_resource.items()}


def is_extended(resource: str) -> bool:
    """Return whether a resource may be served by a device class."""
    if resource.startswith(CLASS_PREFIX):
        return True
    return (
        "kubernetes.io/" not in resource
        and not resource.startswith("requests.")
        and bool(_QUALIFIED.fullmatch(resource))
    )


@dataclass(frozen=True, slots=True)
class ExtendedClaim:
    """The claim for the extended resources of a pod. prior: the one of an earlier attempt, if there is one."""

    pod: Pod
    amounts: Amounts
    classes: Mapping[str, str]
    prior: ResourceClaim | None

    @property
    def name(self) -> str:
        """Name of the claim."""
        return self.prior.name if self.prior else MADE_UP_NAME

    @property
    def title(self) -> str:
        """Namespace and name as verdicts write them."""
        return f"{self.pod.namespace}/{self.name}"

    def list_resources(self, allocatable: Amounts) -> tuple[str, ...] | None:
        """List the resources that a node has to serve by devices; None if it has no way to serve one of them."""
        served = []
        for resource, amount in self.amounts.items():
            if not amount or not is_extended(resource):
                continue
            if resource in self.classes and not allocatable.get(resource):
                served.append(resource)
            elif resource not in allocatable:
                return None
        return tuple(sorted(served))

    def make_spec(self, resources: Sequence[str]) -> ClaimSpec:
        """Make the spec that asks for resources on a node; raise FieldError for a malformed request of a container."""
        containers = _read_containers(self.pod.object)
        requests = [
            request
            for resource in resources
            for request in _make_requests(containers, resource, self.classes[resource])
        ]
        requests.sort(key=lambda request: request.name)
        return ClaimSpec(tuple(RequestGroup(request.name, request, ()) for request in requests), ())


def find_extended_claim(
    pod: Pod, amounts: Amounts, classes: Mapping[str, str], claims: Iterable[ResourceClaim]
) -> ExtendedClaim | None:
    """Find the claim for the extended resources of a pod; None if no class serves any."""
    if not any(amount and resource in classes and is_extended(resource) for resource, amount in amounts.items()):
        return None
    prior = (claim for claim in claims if claim.is_for_extended_resources and claim.owner == (pod.name, pod.uid))
    return ExtendedClaim(pod, amounts, classes, next(prior, None))


@dataclass(frozen=True, slots=True)
class _Container:
    """A container. is_brief: whether it ends before the containers after it start."""

    requests: Object
    path: str
    is_brief: bool


def _read_containers(pod: Object) -> list[_Container]:
    spec = read_mapping(pod, "spec")
    containers = []
    for key in ("initContainers", "containers"):
        for path, container in read_items(spec, key, "spec"):
            resources = read_mapping(container, "resources", path)
            requests = read_mapping(resources, "requests", f"{path}.resources")
            is_brief = key == "initContainers" and not is_sidecar(container)
            containers.append(_Container(requests, f"{path}.resources.requests", is_brief))
    return containers


def _make_requests(containers: Sequence[_Container], resource: str, class_name: str) -> list[ClaimRequest]:
    """Make the requests for one resource: one per lasting container, and one for the neediest of the brief ones."""
    lasting: list[ClaimRequest | None] = [
        None if container.is_brief else _make_request((position, container), resource, class_name, ())
        for position, container in enumerate(containers)
    ]
    neediest: ClaimRequest | None = None
    for position, container in enumerate(containers):
        if container.is_brief:
            # The devices of containers that start later are free for it.
            request = _make_request((position, container), resource, class_name, lasting[position:])
            if request and (neediest is None or neediest.count < request.count):
                neediest = request
    return [request for request in (neediest, *lasting) if request]


def _make_request(
    positioned: tuple[int, _Container], resource: str, class_name: str, reusable: Sequence[ClaimRequest | None]
) -> ClaimRequest | None:
    position, container = positioned
    count = _read_count(container, resource)
    if not count:
        return None
    for request in reusable:
        if request:
            count -= request.count
            if count <= 0:
                return None
    rank = sorted(container.requests).index(resource)
    return ClaimRequest(
        name=f"container-{position}-request-{rank}",
        parent="",
        class_name=class_name,
        mode=EXACT_COUNT,
        count=count,
        admin_access=None,
        selectors=(),
        tolerations=(),
        capacity=None,
    )


def _read_count(container: _Container, resource: str) -> int:
    amount = container.requests.get(resource)
    if amount is None:
        return 0
    try:
        return read_quantity(amount).integer or 0
    except QuantityTextError as error:
        cause = f"is {quote(amount)}, which is not a quantity: {error}"
        raise FieldError(f"{container.path}[{resource}]", cause) from None
