"""The programs of a folder, kept in ``state.json``: their ports and the processes that were started last."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal, get_args

from dev.embedded.errors import EmbeddedError
from dev.embedded.ports import KUBERNETES_PORTS, find_free_port
from dev.embedded.process import ProcessId

FILE_NAME: Final = "state.json"
ProgramName = Literal["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"]
NAMES: Final[tuple[ProgramName, ...]] = get_args(ProgramName)


@dataclass(frozen=True, slots=True)
class ProgramRecord:
    """One program: only etcd uses ``peer_port``; ``process`` is the last one started, alive or not."""

    name: ProgramName
    port: int
    peer_port: int
    process: ProcessId | None = None


def create_records() -> tuple[ProgramRecord, ...]:
    """Create records of all programs, never started, on ports that are free now."""
    ports: list[int] = []
    # Two for every program, so that a record has one form; only etcd uses the second.
    for _ in range(2 * len(NAMES)):
        ports.append(find_free_port(KUBERNETES_PORTS, besides=ports))
    return tuple(ProgramRecord(name, ports[2 * index], ports[2 * index + 1]) for index, name in enumerate(NAMES))


def read_records(folder: Path) -> tuple[ProgramRecord, ...]:
    """Empty if no program was ever started here; raises EmbeddedError if the file cannot be understood."""
    file = folder / FILE_NAME
    try:
        return _parse_records(json.loads(file.read_bytes()))
    except FileNotFoundError:
        return ()
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise EmbeddedError(
            f"{file}: cannot be read ({error!r}). Stop the programs of this folder by hand (ps), then delete it."
        ) from error


def write_records(folder: Path, records: Sequence[ProgramRecord]) -> None:
    """Replace the file in one step, so that neither a reader nor a kill ever leaves half a file."""
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / f"{FILE_NAME}.part"
    part.write_text(json.dumps([asdict(record) for record in records], indent=2) + "\n", encoding="utf-8")
    part.replace(folder / FILE_NAME)


def _parse_records(document: Any) -> tuple[ProgramRecord, ...]:
    # Written by another version: guessing which process is which could stop the wrong one.
    if [entry["name"] for entry in document] != list(NAMES):
        raise ValueError(f"expected the programs {', '.join(NAMES)}")
    return tuple(_parse_record(entry) for entry in document)


def _parse_record(document: Any) -> ProgramRecord:
    process = document["process"]
    return ProgramRecord(
        name=document["name"],
        port=int(document["port"]),
        peer_port=int(document["peer_port"]),
        # The start time belongs to the identity: process ids are used again.
        process=None if process is None else ProcessId(int(process["pid"]), str(process["started"])),
    )
