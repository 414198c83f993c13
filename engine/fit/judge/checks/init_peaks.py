"""Amounts of a pod's init containers that count against a quota (HAMi's `CollapseInitContainerUsage`).

They run one after the other, so on each device the largest counts: an init container on the devices of the one before
takes nothing more, one on other devices does.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from engine.fit.devices.device_matrix import Ints
from engine.fit.judge.checks.reference_fit import Amounts, ReferenceFit, raise_peaks

NO_PEAKS: Final[Mapping[str, Amounts]] = {}


class Peaks:
    """Largest share of each device that an init container took so far, by vendor and node id, and by UUID.

    Init containers run one after the other, so on each device the largest counts against a quota (HAMi's
    `CollapseInitContainerUsage`): one on the devices of the container before takes nothing more, one on other devices
    does.
    """

    def __init__(self) -> None:
        self._by_node: dict[tuple[str, int], dict[str, Amounts]] = {}

    def get_peaks(self, vendor: str, node: int) -> Mapping[str, Amounts]:
        return self._by_node.get((vendor, node), NO_PEAKS)

    def add(self, vendor: str, nodes: Ints, fits: Sequence[ReferenceFit]) -> None:
        """Add what one more init container took on these nodes."""
        for node, done in zip(nodes.tolist(), fits, strict=True):
            if done.picks:
                self._by_node[vendor, node] = raise_peaks(self.get_peaks(vendor, node), done.picks)
