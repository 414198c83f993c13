"""Remainders of namespaces' ResourceQuotas (`limits.nvidia.com/gpumem`, `limits.nvidia.com/gpucores`, …)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from engine.hami.quantities import parse_whole
from engine.hami.vendors import Vendor

_PREFIX: Final = "limits."
UNLIMITED: Final = 2**62
"""Amount above every sum of requests; a quarter of int64, so that sums and differences do not overflow."""


class QuotaLeft(NamedTuple):
    """Amounts that a namespace may still take: MiB, and percent of one device. Negative where it is over its quota."""

    memory_mib: int = UNLIMITED
    cores: int = UNLIMITED

    @property
    def is_limited(self) -> bool:
        return self.memory_mib < UNLIMITED or self.cores < UNLIMITED


@dataclass(slots=True)
class Quotas:
    """Quotas of all namespaces, and what their pods hold of each vendor: MiB, and percent of one device."""

    limits: dict[str, dict[str, Mapping[str, int]]] = field(default_factory=dict)
    used: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)

    def apply(self, quota: Mapping[str, Any]) -> None:
        """Add or replace one ResourceQuota object. Of several for one resource, the latest counts, as with HAMi."""
        namespace, name = _read_identity(quota)
        spec = quota.get("spec")
        hard = spec.get("hard") if isinstance(spec, Mapping) else None
        of_namespace = self.limits.setdefault(namespace, {})
        # Removed first: only then does the next line make it the latest in the order of the dict.
        of_namespace.pop(name, None)
        of_namespace[name] = _read_limits(hard if isinstance(hard, Mapping) else {})

    def delete(self, namespace: str, name: str) -> None:
        self.limits.get(namespace, {}).pop(name, None)

    def add_use(self, namespace: str, vendor: str, memory_mib: int, cores: int) -> None:
        """Count what a pod holds; negative amounts give it back."""
        memory_before, cores_before = self.used.get((namespace, vendor), (0, 0))
        after = (memory_before + memory_mib, cores_before + cores)
        # A namespace without pods leaves no entry, so the dict does not grow with every name ever used.
        if any(after):
            self.used[namespace, vendor] = after
        else:
            self.used.pop((namespace, vendor), None)

    def compute_left(self, namespace: str, vendor: Vendor) -> QuotaLeft:
        """Compute what the namespace may still take of a vendor's devices.

        A quota counts memory in the vendor's own unit.
        """
        quotas = self.limits.get(namespace)
        if not quotas:
            return QuotaLeft()
        memory = _find_latest(quotas, vendor.resources.memory)
        cores = _find_latest(quotas, vendor.resources.cores)
        used_memory, used_cores = self.used.get((namespace, vendor.word), (0, 0))
        return QuotaLeft(
            UNLIMITED if memory is None else _clamp(memory * max(vendor.amounts.memory_unit_mib, 1) - used_memory),
            UNLIMITED if cores is None else _clamp(cores - used_cores),
        )


def _clamp(left: int) -> int:
    # A quota may be any number of 64 bits, and its unit may be larger than 1.
    return max(min(left, UNLIMITED), -UNLIMITED)


def _find_latest(quotas: Mapping[str, Mapping[str, int]], resource: str) -> int | None:
    return next((limits[resource] for limits in reversed(list(quotas.values())) if resource in limits), None)


def _read_identity(quota: Mapping[str, Any]) -> tuple[str, str]:
    value = quota.get("metadata")
    metadata = value if isinstance(value, Mapping) else {}
    return str(metadata.get("namespace", "")), str(metadata.get("name", ""))


def _read_limits(hard: Mapping[str, Any]) -> dict[str, int]:
    """Read limits by resource name. A quantity that is not a whole number limits nothing, as with HAMi."""
    limits = ((name, parse_whole(value)) for name, value in hard.items() if name.startswith(_PREFIX))
    return {name.removeprefix(_PREFIX): limit for name, limit in limits if limit is not None}
