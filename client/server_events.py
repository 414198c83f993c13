"""The events of a stream of ``text/event-stream``, as the HTML standard defines them. Pure."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple


class ServerEvent(NamedTuple):
    kind: str
    """The event's type; ``message`` where it names none."""
    data: str
    id: str
    """Of the event, to continue after it; empty where it has none."""


def server_events(lines: Iterable[bytes]) -> Iterator[ServerEvent]:
    """The events of the lines; comments, which keep the connection open, are none. An event ends with an empty line."""
    fields: dict[str, list[str]] = {}
    for line in lines:
        text = line.decode("utf-8", "replace").rstrip("\r\n")
        if not text:
            if "data" in fields:
                yield _event(fields)
            fields = {}
            continue
        name, _, value = text.partition(":")
        if name:
            fields.setdefault(name, []).append(value.removeprefix(" "))


def _event(fields: dict[str, list[str]]) -> ServerEvent:
    return ServerEvent(fields.get("event", ["message"])[-1], "\n".join(fields["data"]), fields.get("id", [""])[-1])
