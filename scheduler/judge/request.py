"""What the containers of a pod ask for (HAMi's `GenerateResourceRequests` for NVIDIA devices)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from scheduler.devices.nvidia import CORES, COUNT, MEMORY, MEMORY_PERCENTAGE, VENDOR
from scheduler.devices.quantity import whole

UNSET_PERCENTAGE: Final = 101
"""HAMi's word for "no percentage asked"."""

_INT32_MAX: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Defaults:
    """The values of HAMi's device configuration that fill what a container leaves out."""

    memory_mib: int = 0
    cores: int = 0
    memory_factor: int = 1


@dataclass(frozen=True, slots=True)
class ContainerRequest:
    """What one container asks for. `count` 0 or less asks for nothing; vendor is empty when no GPU was named.

    memory_mib wins where it is above 0; else memory_percentage of each card's total counts (101 = unset).
    cores: percent of one card.
    """

    name: str
    is_init: bool = False
    vendor: str = ""
    count: int = 0
    memory_mib: int = 0
    memory_percentage: int = 0
    cores: int = 0

    @property
    def asks(self) -> bool:
        return self.count > 0


def container_requests(pod: Mapping[str, Any], defaults: Defaults) -> tuple[ContainerRequest, ...]:
    """One request per container, init containers first, in the pod's order."""
    return tuple(container_request(container, is_init, defaults) for is_init, container in _containers(pod))


def _containers(pod: Mapping[str, Any]) -> Iterator[tuple[bool, Mapping[str, Any]]]:
    spec = pod.get("spec")
    if not isinstance(spec, Mapping):
        return
    for is_init, field in ((True, "initContainers"), (False, "containers")):
        listed = spec.get(field)
        for container in listed if isinstance(listed, list) else ():
            yield is_init, container if isinstance(container, Mapping) else {}


def container_request(container: Mapping[str, Any], is_init: bool, defaults: Defaults) -> ContainerRequest:
    """Limits first, else requests. An unusable `gpumem` drops the whole request, as HAMi does."""
    name = str(container.get("name", ""))
    amount = _Amounts(container.get("resources"))
    count = amount.whole(COUNT)
    memory = amount.whole(MEMORY) if amount.names(MEMORY) else 0
    memory_mib = -1 if memory is None else memory * max(defaults.memory_factor, 1)
    if count is None or not 0 <= memory_mib <= _INT32_MAX:
        return ContainerRequest(name, is_init)
    percentage = _percentage(amount.whole(MEMORY_PERCENTAGE))
    if memory_mib == 0 and percentage == UNSET_PERCENTAGE:
        memory_mib, percentage = (defaults.memory_mib, percentage) if defaults.memory_mib else (0, 100)
    cores = amount.whole(CORES)
    return ContainerRequest(
        name, is_init, VENDOR, count, memory_mib, percentage, defaults.cores if cores is None else cores
    )


def _percentage(asked: int | None) -> int:
    return UNSET_PERCENTAGE if asked is None or asked <= 0 else min(asked, 100)


class _Amounts:
    """The quantities of one container: what limits say, and only where they are silent, what requests say."""

    def __init__(self, resources: Any) -> None:
        parts = resources if isinstance(resources, Mapping) else {}
        maps = [parts.get(field) for field in ("limits", "requests")]
        self._maps = [amounts for amounts in maps if isinstance(amounts, Mapping)]

    def names(self, resource: str) -> bool:
        return any(resource in amounts for amounts in self._maps)

    def whole(self, resource: str) -> int | None:
        for amounts in self._maps:
            if resource in amounts:
                return whole(amounts[resource])
        return None
