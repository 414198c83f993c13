"""What is the same for all nodes of one attempt."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hami.mig import Placement
from hami.vendors import Vendor, code_of
from scheduler.devices.cluster_state import ClusterColumns
from scheduler.devices.node_entry import NodeEntry
from scheduler.devices.pod_usage import PodUse
from scheduler.devices.quota import Room
from scheduler.judge.device_matrix import Bools, Cards
from scheduler.judge.pod_annotations import Wishes


@dataclass(frozen=True, slots=True)
class Terms:
    """The pod's side and the cluster's.

    code: the vendor's in the table of the columns. own: what the pod holds already, and gives back. accepts_row, shape
    (device rows,): the pod's UUID lists; None where it has none. one_by_one: every node is walked card by card, which
    also tells the picks in their order.
    """

    columns: ClusterColumns
    vendor: Vendor
    code: int
    wishes: Wishes
    room: Room
    own: PodUse | None
    accepts_kind: Bools  # (kinds,)
    is_bare_kind: Bools  # (kinds,) the model is nothing but the vendor's name
    accepts_row: Bools | None
    one_by_one: bool = False

    @property
    def own_node(self) -> NodeEntry | None:
        """The node where the pod holds something already, if it is registered."""
        return self.columns.entry(self.own.node) if self.own else None

    def accepts_uuid(self, cards: Cards) -> Bools | None:
        """Whether the pod's UUID lists allow each card, shape (slots, n); None where it has none."""
        return None if self.accepts_row is None else self.accepts_row[cards.rows]

    def standing(self, entry: NodeEntry, row: int) -> list[Placement]:
        """The instances on a MIG card, without those that the pod itself gives back."""
        held = list(entry.held.get(row, ()))
        share = self.own.by_uuid.get(entry.fragment.uuids[row - entry.start]) if self.own else None
        if share and entry is self.own_node:
            for _, placement in share.instances:
                if placement in held:
                    held.remove(placement)
        return held


def terms_of(columns: ClusterColumns, metadata: Mapping[str, Any], wishes: Wishes, vendor: Vendor) -> Terms:
    """The terms of a pod about one vendor's cards, from its metadata and wishes."""
    own = columns.pod_use(str(metadata.get("uid", "")))
    namespace = str(metadata.get("namespace", ""))
    room = columns.quotas.room(namespace, vendor)
    if own and own.namespace == namespace:
        memory_mib, cores = own.quota_use().get(vendor.word, (0, 0))
        room = Room(room.memory_mib + memory_mib, room.cores + cores)
    kinds = columns.kinds
    return Terms(
        columns,
        vendor,
        code_of(columns.vendors, vendor.word),
        wishes,
        room,
        own,
        accepts_kind=np.array(
            [wishes.accepts_type(kind.model) and wishes.accepts_mode(kind.mode) for kind in kinds], bool
        ),
        is_bare_kind=np.array([kind.model == vendor.word for kind in kinds], bool),
        accepts_row=_accepts_row(columns, wishes),
    )


def _accepts_row(columns: ClusterColumns, wishes: Wishes) -> Bools | None:
    if not wishes.names_uuids:
        return None
    accepts = np.full(len(columns.devices["kind"]), not wishes.use_uuids)
    accepts[columns.rows_of(wishes.use_uuids)] = True
    accepts[columns.rows_of(wishes.no_use_uuids)] = False
    return accepts


def give_back(terms: Terms, cards: Cards) -> None:
    """Take what the pod holds already out of the used columns of its node, if that is among `cards`."""
    entry, own = terms.own_node, terms.own
    if entry is None or own is None:
        return
    for node in np.flatnonzero(cards.ids == entry.id).tolist():
        for uuid, share in own.by_uuid.items():
            for row in entry.rows.get(uuid, ()):
                at = (row - entry.start, node)
                cards.used_slots[at] -= share.slots
                cards.used_cores[at] -= share.cores
                cards.used_memory[at] -= share.memory_mib
                cards.unsound[at] -= entry.unsound(row, share)
