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
    scoped: set[tuple[str, str]] = field(default_factory=set)
    """Namespaces and names of the quotas that count only pods of a scope."""

    def apply(self, quota: Mapping[str, Any]) -> None:
        """Add or replace one ResourceQuota object. Which of several counts is a rule of HAMi's release."""
        namespace, name = _read_identity(quota)
        spec = quota.get("spec")
        hard = spec.get("hard") if isinstance(spec, Mapping) else None
        of_namespace = self.limits.setdefault(namespace, {})
        # Removed first: only then does the next line make it the latest in the order of the dict.
        of_namespace.pop(name, None)
        of_namespace[name] = _read_limits(hard if isinstance(hard, Mapping) else {})
        self.scoped.discard((namespace, name))
        if isinstance(spec, Mapping) and (spec.get("scopes") or spec.get("scopeSelector")):
            self.scoped.add((namespace, name))

    def delete(self, namespace: str, name: str) -> None:
        self.limits.get(namespace, {}).pop(name, None)
        self.scoped.discard((namespace, name))

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
        memory = self._find_limit(namespace, vendor.resources.memory, vendor)
        cores = self._find_limit(namespace, vendor.resources.cores, vendor)
        used_memory, used_cores = self.used.get((namespace, vendor.word), (0, 0))
        return QuotaLeft(
            UNLIMITED if memory is None else _clamp(memory * max(vendor.amounts.memory_unit_mib, 1) - used_memory),
            UNLIMITED if cores is None else _clamp(cores - used_cores),
        )

    def _find_limit(self, namespace: str, resource: str, vendor: Vendor) -> int | None:
        """Find the limit of a resource: the smallest, or up to v2.10 the latest; None for none."""
        quotas = self.limits[namespace]
        if not vendor.rules.takes_smallest_quota:
            return next((limits[resource] for limits in reversed(list(quotas.values())) if resource in limits), None)
        counting = (limits for name, limits in quotas.items() if (namespace, name) not in self.scoped)
        return min((limits[resource] for limits in counting if resource in limits), default=None)


def _clamp(left: int) -> int:
    # A quota may be any number of 64 bits, and its unit may be larger than 1.
    return max(min(left, UNLIMITED), -UNLIMITED)


def _read_identity(quota: Mapping[str, Any]) -> tuple[str, str]:
    value = quota.get("metadata")
    metadata = value if isinstance(value, Mapping) else {}
    return str(metadata.get("namespace", "")), str(metadata.get("name", ""))


def _read_limits(hard: Mapping[str, Any]) -> dict[str, int]:
    """Read limits by resource name. A quantity that is not a whole number limits nothing, as with HAMi."""
    limits = ((name, parse_whole(value)) for name, value in hard.items() if name.startswith(_PREFIX))
    return {name.removeprefix(_PREFIX): limit for name, limit in limits if limit is not None}
