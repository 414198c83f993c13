"""Devices that the containers of a pod got so far, as the rules of single vendors read them."""

from collections.abc import Mapping, Sequence

from engine.fit.devices.device_matrix import Ints
from engine.fit.devices.node_entry import NodeEntry
from engine.fit.judge.checks.reference_fit import Pick, ReferenceFit
from engine.fit.judge.request.pod_annotations import PodAnnotations
from engine.fit.judge.request.pod_request import VendorRequest
from engine.fit.judge.vendors.metax import QOS
from engine.hami import vendor_annotations as keys
from engine.hami.vendors import Family, Vendor

Earlier = tuple[tuple[int, ...], ...]


class VendorState:
    """Knowledge of single vendors' rules about all nodes of a batch, by node id."""

    def __init__(self) -> None:
        self.picks: dict[tuple[str, int], list[tuple[bool, Sequence[Pick]]]] = {}
        """Picks by vendor word and node id, per container: whether it is an init container, and what it got."""
        self._qos: dict[tuple[int, int], str] = {}

    def list_earlier(self, vendor: str, node: int, *, is_init: bool) -> Earlier:
        """List the positions of the devices of the containers before, of the same sort."""
        return tuple(
            tuple(pick.device.position for pick in picks)
            for of_init, picks in self.picks.get((vendor, node), ())
            if of_init is is_init
        )

    def list_changed_qos(self, entry: NodeEntry) -> Mapping[int, str]:
        """List the devices, by position, whose quality of service the pod's app containers set, and to what."""
        return {position: qos for (node, position), qos in self._qos.items() if node == entry.id}

    def add(
        self,
        vendor: Vendor,
        nodes: Ints,
        request: VendorRequest,
        fits: Sequence[ReferenceFit],
        annotations: PodAnnotations,
    ) -> None:
        for node, done in zip(nodes.tolist(), fits, strict=True):
            picks = done.picks if done.passed else []
            self.picks.setdefault((vendor.word, node), []).append((request.is_init, picks))
            if vendor.family is Family.METAX_SGPU and not request.is_init:
                self._note_qos(node, picks, annotations.texts)

    def _note_qos(self, node: int, picks: Sequence[Pick], texts: Mapping[str, str]) -> None:
        if texts.get(keys.METAX_CLASS) == keys.ONLINE:
            return
        for pick in picks:
            if QOS in pick.device.extra:
                # A device that is given whole has none.
                self._qos[node, pick.device.position] = "" if pick.cores == 100 else texts.get(keys.METAX_QOS, "")
