"""Sections of a description by kubectl: its fields, its containers with their amounts and states."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from schemas.json_types import Json

_FIELD: Final = re.compile(r"^(?P<name>[A-Z][\w./ -]*?):(?:\s+(?P<text>.*))?$")
_NOTHING: Final = ("", "<none>", "<unset>")
_STATES: Final = {"State": "state", "Last State": "lastState"}
_STATE_FIELDS: Final = {"Reason": "reason", "Message": "message", "Exit Code": "exitCode"}


@dataclass(slots=True)
class Section:
    """One field of a description: the text behind its name, and the indented lines below."""

    text: str = ""
    lines: list[str] = field(default_factory=list)

    def list_texts(self) -> list[str]:
        """List the text and the lines below it as entries, without those that say that there are none."""
        entries = [self.text, *(line.strip() for line in self.lines)]
        return [entry for entry in entries if entry not in _NOTHING]

    def collect_pairs(self, separator: str) -> dict[str, str]:
        """Collect the entries as names and values."""
        pairs = (entry.partition(separator) for entry in self.list_texts())
        return {name.strip(): text.strip() for name, delimiter, text in pairs if delimiter}


def divide_sections(lines: Sequence[str]) -> dict[str, Section]:
    sections: dict[str, Section] = {}
    current = Section()
    for line in lines:
        if line[:1].isspace() or not line:
            current.lines.append(line)
        elif match := _FIELD.match(line):
            current = sections.setdefault(match["name"], Section((match["text"] or "").strip()))
    return sections


def read_field(sections: dict[str, Section], name: str) -> str:
    text = sections.get(name, Section()).text
    return "" if text in _NOTHING else text


def build_metadata(name: str, sections: dict[str, Section]) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name}
    if namespace := read_field(sections, "Namespace"):
        metadata["namespace"] = namespace
    metadata["labels"] = sections.get("Labels", Section()).collect_pairs("=")
    metadata["annotations"] = sections.get("Annotations", Section()).collect_pairs(":")
    kind, has_owner, owner = read_field(sections, "Controlled By").partition("/")
    if has_owner:
        metadata["ownerReferences"] = [{"kind": kind, "name": owner, "controller": True}]
    return metadata


def list_containers(lines: Sequence[str]) -> list[Json]:
    """List the containers with their amounts; a name stands two columns in, its fields four, amounts six."""
    containers: list[Json] = []
    amounts: dict[str, str] | None = None
    for line in lines:
        indent = len(line) - len(line.lstrip())
        name, _, text = line.strip().partition(":")
        if indent == 2:
            containers.append({"name": name, "resources": {}})
            amounts = None
        elif indent == 4 and containers:
            amounts = (
                containers[-1]["resources"].setdefault(name.lower(), {}) if name in ("Limits", "Requests") else None
            )
        elif indent == 6 and amounts is not None:
            amounts[name] = text.strip()
    return containers


def list_container_statuses(lines: Sequence[str], started: str) -> list[Json]:
    """List the states of the containers that a description shows. ``started``: the start of the pod.

    A container's fields stand four columns in, those of its state six.
    """
    statuses: list[Json] = []
    state: dict[str, Any] = {}
    for line in lines:
        indent = len(line) - len(line.lstrip())
        name, _, text = line.strip().partition(":")
        text = text.strip()
        if indent == 2:
            statuses.append({"name": name})
        elif indent == 4 and statuses:
            state = {}
            if name in _STATES and text:
                # A state without a time of its own is as old as the pod.
                state = {} if text == "Waiting" else {"startedAt": started}
                statuses[-1][_STATES[name]] = {text.lower(): state}
            elif name == "Restart Count" and text.isdecimal():
                statuses[-1]["restartCount"] = int(text)
        elif indent == 6 and name in _STATE_FIELDS:
            state[_STATE_FIELDS[name]] = int(text) if name == "Exit Code" and text.isdecimal() else text
    return [status for status in statuses if "state" in status]


def to_timestamp(text: str, written_at: datetime) -> str:
    """Convert a time as kubectl describes it; without one the time at which kubectl ran."""
    try:
        time = datetime.strptime(text, "%a, %d %b %Y %H:%M:%S %z")
    except ValueError:
        time = written_at
    return f"{time.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
