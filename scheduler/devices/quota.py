"""How much of its ResourceQuotas (`limits.nvidia.com/gpumem`, `limits.nvidia.com/gpucores`) a namespace has left."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from scheduler.devices.nvidia import CORES, MEMORY
from scheduler.devices.quantity import whole

_PREFIX: Final = "limits."
UNLIMITED: Final = 2**62
"""More than any request can add up to, with room to subtract from."""


@dataclass(frozen=True, slots=True)
class Room:
    """What a namespace may still take: MiB and percent of cards. Negative where it is over its quota."""

    memory_mib: int = UNLIMITED
    cores: int = UNLIMITED

    @property
    def is_limited(self) -> bool:
        return self.memory_mib < UNLIMITED or self.cores < UNLIMITED


@dataclass(slots=True)
class Quotas:
    """The quotas of all namespaces and what their pods hold; amounts in MiB and percent of one card."""

    limits: dict[str, dict[str, tuple[int | None, int | None]]] = field(default_factory=dict)
    used: dict[str, tuple[int, int]] = field(default_factory=dict)

    def apply(self, quota: Mapping[str, Any]) -> None:
        """Add or replace one ResourceQuota object. Of several for one resource, the latest counts, as with HAMi."""
        namespace, name = _identity(quota)
        spec = quota.get("spec")
        hard = spec.get("hard") if isinstance(spec, Mapping) else None
        amounts = hard if isinstance(hard, Mapping) else {}
        limits = (_limit(amounts, MEMORY), _limit(amounts, CORES))
        of_namespace = self.limits.setdefault(namespace, {})
        of_namespace.pop(name, None)
        of_namespace[name] = limits

    def delete(self, namespace: str, name: str) -> None:
        self.limits.get(namespace, {}).pop(name, None)

    def add_use(self, namespace: str, memory_mib: int, cores: int) -> None:
        """Count what a pod holds; negative amounts give it back."""
        memory_before, cores_before = self.used.get(namespace, (0, 0))
        after = (memory_before + memory_mib, cores_before + cores)
        if any(after):
            self.used[namespace] = after
        else:
            self.used.pop(namespace, None)

    def room(self, namespace: str, memory_factor: int) -> Room:
        """What the namespace may still take. `memory_factor` is what `nvidia.com/gpumem` is multiplied with."""
        limits = self.limits.get(namespace)
        if not limits:
            return Room()
        memory = [limit for limit, _ in limits.values() if limit is not None]
        cores = [limit for _, limit in limits.values() if limit is not None]
        used_memory, used_cores = self.used.get(namespace, (0, 0))
        return Room(
            memory[-1] * max(memory_factor, 1) - used_memory if memory else UNLIMITED,
            cores[-1] - used_cores if cores else UNLIMITED,
        )


def _identity(quota: Mapping[str, Any]) -> tuple[str, str]:
    metadata = quota.get("metadata")
    said = metadata if isinstance(metadata, Mapping) else {}
    return str(said.get("namespace", "")), str(said.get("name", ""))


def _limit(hard: Mapping[str, Any], resource: str) -> int | None:
    return whole(hard.get(_PREFIX + resource))
