"""The reader of HAMi's log: finds the step for each line, and emits attempts that have ended.

Lines of many pods interleave, and HAMi prints an attempt's event line from another goroutine, possibly after the pod's
next attempt has begun; so attempts wait for their event lines in the order in which they started. An attempt ends with
its event line. One without an event line is finished as far as it is known: after ten minutes of log without a line
about it, when too many attempts are open, or when the log is closed.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, tzinfo
from typing import Final

from pydantic import TypeAdapter, ValidationError

from ingest.lines.blocks import Lines
from ingest.readers.hami.bind_lines import BindLines, StartLines
from ingest.readers.hami.cause_lines import CauseLines
from ingest.readers.hami.devices import RegisteredDevices
from ingest.readers.hami.event_lines import EventLines
from ingest.readers.hami.filter_lines import FilterLines
from ingest.readers.hami.grammar import NOISE as NOISE_KIND
from ingest.readers.hami.grammar import Spelling, load_grammar
from ingest.readers.hami.memory import AttemptMemory
from ingest.readers.hami.node_lines import NodeLines
from ingest.readers.hami.open_attempts import OpenHamiAttempts
from ingest.reading.protocol import EVENT, NOISE, Counts, NoteFact
from schemas.events import DEFAULT_CLUSTER, Event

MAX_LINE: Final = 1_000_000
"""A longer line is counted as unknown: HAMi writes none of this length about an attempt."""

_CRASHES: Final = (b"panic: ", b"fatal error: ")
_MEMORY: Final = TypeAdapter(AttemptMemory)

Step = Callable[[bytes, Spelling], bool]
"""Reads one line; False where the line is not what its beginning promises."""


class HamiLog:
    """Reads what HAMi's scheduler prints. See ``ingest.reading.protocol.LogReader``."""

    def __init__(
        self,
        scheduler: str = "hami-scheduler",
        devices: RegisteredDevices | None = None,
        zone: tzinfo = UTC,
        *,
        cluster: str = DEFAULT_CLUSTER,
        note: NoteFact | None = None,
    ) -> None:
        """Start at the beginning of a log.

        ``devices``: from a node list, which gives device lines their nodes. ``zone``: the log's time zone. ``note``:
        takes the facts that lines hold without being a verdict, and the attempts without one.
        """
        self._attempts = OpenHamiAttempts(cluster, scheduler, devices or {}, zone, note)
        self._steps = _map_steps(self._attempts)
        self._has_causes = note is not None

    @property
    def counts(self) -> Counts:
        return self._attempts.counts

    def feed(self, lines: Lines) -> Iterator[Event]:
        attempts, spelling_of, steps = self._attempts, load_grammar().find_spelling, self._steps
        attempts.lines = lines
        # Counted here and added once: this loop runs a quarter of a million times for one attempt.
        understood = noise = 0
        for index, text in enumerate(lines.texts):
            # klog's header has 21 bytes before the pid at least; a ``] `` further on is part of a message.
            header_end = text.find(b"] ", 20, 300)
            spelling = spelling_of(text, header_end + 2) if header_end > 0 else None
            if spelling is None:
                if text and not self._read_crash(text, index):
                    attempts.counts.count_unknown(text)
                continue
            if spelling.kind == NOISE_KIND or (spelling.cause and not self._has_causes):
                noise += 1
                continue
            attempts.index = index
            # A known beginning with another rest is a line of a version that the grammar does not know.
            if len(text) > MAX_LINE or not steps[spelling.kind](text, spelling):
                attempts.counts.count_unknown(text)
                continue
            understood += 1
            if attempts.finished_events:
                yield from attempts.take()
        attempts.counts.lines[EVENT] += understood
        attempts.counts.lines[NOISE] += noise

    def _read_crash(self, text: bytes, index: int) -> bool:
        """Note a panic, which Go prints without klog's header; False for any other line."""
        if not self._has_causes or (not text.startswith(_CRASHES) and b"http: panic serving" not in text[:60]):
            return False
        self._attempts.index = index
        self._attempts.note_crash(text)
        return True

    def close(self) -> Iterator[Event]:
        self._attempts.close()
        yield from self._attempts.take()

    def list_unfinished(self) -> set[str]:
        """List the attempts and binds that have not ended yet, by name."""
        return self._attempts.list_unfinished()

    def save(self) -> bytes:
        return _MEMORY.dump_json(self._attempts.memory)

    def restore(self, saved: bytes) -> None:
        try:
            self._attempts.restore(_MEMORY.validate_json(saved))
        except ValidationError as error:
            raise ValueError(f"another version saved the state of the log: {error.errors()[0]['msg']}") from None


def _map_steps(attempts: OpenHamiAttempts) -> dict[str, Step]:
    """Map the kinds of lines in ``grammar.toml`` to steps."""
    filters, nodes = FilterLines(attempts), NodeLines(attempts)
    binds, starts = BindLines(attempts), StartLines(attempts)
    return _map_causes(CauseLines(attempts, filters.judge_device)) | {
        "attempt started": filters.start,
        "containers counted": filters.count_containers,
        "container named": filters.name_container,
        "requests collected": filters.collect_requests,
        "nothing requested": filters.forget,
        "nodes unregistered": nodes.list_unregistered,
        "container tried": filters.try_container,
        "device tried": filters.try_device,
        "device fits": filters.judge_device,
        "device refused": filters.judge_device,
        "node too small": nodes.run_out_of_devices,
        "node not registered": nodes.leave_unregistered,
        "node begun": nodes.begin_node,
        "node filtered out": nodes.filter_node_out,
        "node refused": nodes.refuse_node,
        "node fits": nodes.accept_node,
        "no node fits": filters.end_without_node,
        "node chosen": filters.choose,
        "flag": starts.read_flag,
        "version": starts.read_version,
        "event": EventLines(attempts).read_event,
        "bind started": binds.start_bind,
        "bind failed": binds.fail_bind,
        "bound": binds.bound,
        "bind ended": binds.end_bind,
        "devices registered": starts.register,
        "devices listed": starts.list_devices,
    }


def _map_causes(causes: CauseLines) -> dict[str, Step]:
    """Map the kinds of lines that hold a cause to steps."""
    return {
        "devices dropped": causes.drop_devices,
        "node and device": causes.read_node_device,
        "registration skipped": causes.skip_registration,
        "node reserved": causes.reserve_node,
        "admission": causes.admit,
        "validation failed": causes.fail_validation,
        "lock set": causes.set_lock,
        "lock released": causes.release_lock,
        "pod added": causes.add_pod,
        "pod deleted": causes.delete_pod,
        "device shown": causes.show_device,
        "request rejected": causes.reject_request,
        "quota measured": causes.measure_quota,
        "quota not fitted": causes.note_quota,
        "not leader": causes.wait_for_leader,
        "cache not synced": causes.wait_for_cache,
        "setting ignored": causes.ignore_setting,
    }
