"""What is said about a node in every decision, made once."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NodeFragment:
    """A registered node's name and device UUIDs, encoded once when the node registers.

    name_json: the name as a JSON string with its quotes. uuids_json: the UUIDs as JSON strings joined by commas, in
    registration order, without brackets. A node registered anew gets a new fragment, so an old decision keeps its own.
    """

    name: str
    name_json: bytes
    uuids_json: bytes
    uuids: tuple[str, ...]
