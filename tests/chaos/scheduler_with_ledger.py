"""The scheduler, which also writes down what its spool accepted: ``python -m tests.chaos.scheduler_with_ledger``.

The file that ``CHAOS_LEDGER`` names gets a line for every record, synced before the answer leaves as the spool itself
is. Arguments are those of ``python -m scheduler``.
"""

import base64
import json
import os
import sys
from collections.abc import Sequence
from typing import Any

from scheduler.__main__ import app
from scheduler.publish.spool.frames import Entry
from scheduler.publish.spool.spool import Spool
from tests.chaos.scheduler_bugs import BUGS

_append = Spool.append
# Open before the scheduler runs out of descriptors.
_ledger = open(os.environ["CHAOS_LEDGER"], "ab")  # noqa: PTH123, SIM115


def _append_and_note(spool: Spool, entries: Sequence[Entry]) -> None:
    _append(spool, entries)
    _ledger.write(b"".join(_encode_line(entry) for entry in entries))
    _ledger.flush()
    os.fsync(_ledger.fileno())


def _encode_line(entry: Entry) -> bytes:
    headers = {name: value.decode() for name, value in entry.record.headers}
    line: dict[str, Any] = {
        "topic": entry.topic,
        "id": headers["ce_id"],
        "type": headers["ce_type"],
        "key": entry.record.key.decode(),
        "value": base64.b64encode(entry.record.value).decode(),
    }
    return json.dumps(line).encode() + b"\n"


setattr(Spool, "append", _append_and_note)

if __name__ == "__main__":
    if bug := os.environ.get("CHAOS_BUG"):
        BUGS[bug]()
    sys.exit(app())
