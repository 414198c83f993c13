"""Differences between the releases of kube-scheduler, 1.28 to 1.36, where they decide or change a text."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

_VERSION: Final = re.compile(r"v?1\.([0-9]{1,3})(?:\.([0-9]{1,3}))?")
_DEFAULT_SINCE: Final = {
    "DynamicResourceAllocation": 34,
    "DRAExtendedResource": 36,
    "NodeDeclaredFeatures": 36,
    "SidecarContainers": 29,
}
"""First minor release in which a gate is on by default; a gate that is not listed is off."""


@dataclass(frozen=True, slots=True)
class SchedulerRelease:
    """A release with the feature gates that differ from its defaults."""

    minor: int = 36
    patch: int = 3
    gates: Mapping[str, bool] = field(default_factory=dict)

    def has(self, gate: str) -> bool:
        """Return whether a feature gate is on."""
        return self.gates.get(gate, self.minor >= _DEFAULT_SINCE.get(gate, self.minor + 1))

    @property
    def names_taint(self) -> bool:
        """True if a refusal names the taint; since 1.34.2 it does not."""
        return (self.minor, self.patch) < (34, 2)

    @property
    def has_volume_conflict_text(self) -> bool:
        """True if a volume's node affinity is refused as a "conflict", as before 1.34."""
        return self.minor < 34

    @property
    def marks_oversized_request(self) -> bool:
        """True if a request beyond the whole node is unresolvable, as since 1.34; only preemption's text shows it."""
        return self.minor >= 34

    @property
    def counts_sidecar_ports(self) -> bool:
        """True if host ports of sidecars count, as since 1.33.6."""
        return (self.minor, self.patch) >= (33, 6)

    @property
    def names_filtering_plugins(self) -> bool:
        """True if nodes outside a PreFilter's set are counted under the plugins' names, as since 1.31."""
        return self.minor >= 31


LATEST: Final = SchedulerRelease()


def parse_release(version: str, gates: Mapping[str, bool] | None = None) -> SchedulerRelease:
    """Read a version such as ``v1.34.1`` or ``v1.33.2-eks-1a2b``; what is not one is taken for the latest release.

    Without a patch number, the last patch of the minor release is meant.
    """
    form = _VERSION.match(version)
    if not form:
        return SchedulerRelease(gates=gates or {})
    return SchedulerRelease(int(form[1]), int(form[2] or 999), gates or {})
