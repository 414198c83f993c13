"""The documents of device verdicts: with every attempt what became of the devices, once a day which they are."""

from collections import OrderedDict
from typing import Final

from pipeline.sinks.bulk import Document, source
from pipeline.worker.open_attempts import DeviceRecord
from schemas.codec.device_record_layout import as_object, divided
from schemas.documents.devices import devices_document, inventory_document
from schemas.indices import DEVICES, INVENTORIES

_KNOWN_INVENTORIES: Final = 20_000
"""Of about a hundred nodes each. One that is forgotten is written again, which changes nothing."""


class DeviceDocuments:
    """Knows which inventories are in the index, so that a record says only its verdicts. Pure but for that."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str], None] = OrderedDict()

    def of(self, rows: DeviceRecord) -> list[Document]:
        """What is to be written of the record. What is given here counts as written: the writer tries until it is."""
        inventory = rows.event.inventory
        if not inventory:
            return [verdicts_document(rows, rows.value, None)]
        rest, devices = divided(rows.value, rows.event.inventory_at)
        index, told = INVENTORIES.name(rows.event.started_at), verdicts_document(rows, rest, inventory)
        if not self._is_new(index, inventory):
            return [told]
        kept = source(inventory_document(as_object(devices)))
        return [Document(index, inventory, kept, origin=rows.origin), told]

    def _is_new(self, index: str, inventory: str) -> bool:
        place = index, inventory
        is_new = place not in self._known
        self._known[place] = None
        self._known.move_to_end(place)
        if len(self._known) > _KNOWN_INVENTORIES:
            self._known.popitem(last=False)
        return is_new

    def clear(self) -> None:
        self._known.clear()


def verdicts_document(rows: DeviceRecord, value: bytes, inventory: str | None) -> Document:
    """The document of one record of device verdicts: there is only one telling of it."""
    event = rows.event
    written = source(devices_document(event, value, inventory))
    return Document(DEVICES.name(event.started_at), event.id, written, origin=rows.origin)
