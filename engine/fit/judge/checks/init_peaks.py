"""What the init containers of a pod count against a quota (HAMi's `CollapseInitContainerUsage`).

They run one after the other, so on each device the largest counts: an init container on the devices of the one before
takes nothing more, one on other devices does.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from engine.fit.devices.device_matrix import Ints
from engine.fit.judge.checks.reference_fit import Amounts, ReferenceFit, raised

NO_PEAKS: Final[Mapping[str, Amounts]] = {}


class Peaks:
    """By vendor and node id, the largest share of each device that an init container took so far, by UUID."""

    def __init__(self) -> None:
        self._by_node: dict[tuple[str, int], dict[str, Amounts]] = {}

    def of(self, vendor: str, node: int) -> Mapping[str, Amounts]:
        return self._by_node.get((vendor, node), NO_PEAKS)

    def add(self, vendor: str, nodes: Ints, fits: Sequence[ReferenceFit]) -> None:
        """Add what one more init container took on these nodes."""
        for node, done in zip(nodes.tolist(), fits, strict=True):
            if done.picks:
                self._by_node[vendor, node] = raised(self.of(vendor, node), done.picks)
