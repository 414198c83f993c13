"""The documents of device records: the verdicts with every attempt, the inventory of the devices once a day."""

from typing import Final

from pipeline.sinks.bulk import Document, source
from pipeline.worker.open_attempts import DeviceRecord
from process.bounded_cache import BoundedCache
from schemas.codec.device_record_layout import as_object, divided
from schemas.documents.devices import devices_document, inventory_document
from schemas.indices import DEVICES, INVENTORIES

_KNOWN_INVENTORIES: Final = 20_000
"""Each of about a hundred nodes. An inventory that drops out is written again, which changes nothing."""


class DeviceDocuments:
    """Makes the documents of device records. It remembers which inventories are in the index: pure but for that."""

    def __init__(self) -> None:
        self._known: BoundedCache[tuple[str, str], None] = BoundedCache(_KNOWN_INVENTORIES)

    def of(self, record: DeviceRecord) -> list[Document]:
        """The documents of the record: its verdicts, and its inventory where that is not stored yet.

        An inventory that was returned counts as stored: the sink retries until it is.
        """
        inventory = record.event.inventory
        if not inventory:
            return [verdicts_document(record, record.value, None)]
        # The day of the attempt and not of today: inventory and verdicts lie in indices of one day and expire together.
        rest, devices = divided(record.value, record.event.inventory_at)
        index, verdicts = INVENTORIES.name(record.event.started_at), verdicts_document(record, rest, inventory)
        if not self._is_new(index, inventory):
            return [verdicts]
        json = source(inventory_document(as_object(devices)))
        return [Document(index, inventory, json, origin=record.origin), verdicts]

    def _is_new(self, index: str, inventory: str) -> bool:
        key = index, inventory
        is_new = key not in self._known
        # Before it is written: a crash in between loses this memory too, and the next owner writes it again.
        self._known.put(key, None)
        return is_new

    def clear(self) -> None:
        # Of what another worker wrote since, or did not finish to write, nothing is known here.
        self._known.clear()


def verdicts_document(record: DeviceRecord, value: bytes, inventory: str | None) -> Document:
    """The document of the verdicts. It has no version: a device record is written once and never changes."""
    event = record.event
    json = source(devices_document(event, value, inventory))
    return Document(DEVICES.name(event.started_at), event.id, json, origin=record.origin)
