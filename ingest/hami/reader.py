"""From lines to events: which attempt a line belongs to, and when an attempt is over.

Lines of many pods interleave, and HAMi prints an attempt's last event line from another goroutine, perhaps after the
pod's next attempt has begun; so attempts wait for their event lines in the order in which they started. An attempt
ends with the event line that says how it ended. One whose end never comes is told as it is known: when ten minutes of
log have passed it by, when too many wait, or when the log is closed.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, tzinfo
from typing import Final

from pydantic import TypeAdapter, ValidationError

from hami.reason_codes import ReasonCode
from ingest.hami.bind_lines import BindLines, CardLines
from ingest.hami.filter_lines import FilterLines
from ingest.hami.grammar import NOISE, Spelling, grammar
from ingest.hami.open_attempts import Book, Memory, names_of
from ingest.hami.registry import Cards
from ingest.lines import klog
from ingest.lines.blocks import Lines
from ingest.protocol import EVENT, Counts
from ingest.protocol import NOISE as NOISE_OUTCOME
from schemas.events import AttemptEvent

MAX_LINE: Final = 1_000_000
"""Longer lines that belong to an attempt are not believed to be HAMi's."""

_MEMORY: Final = TypeAdapter(Memory)

Step = Callable[[bytes, Spelling], bool]
"""Reads one line; False where it is not what it looks like."""


class HamiLog:
    """Reads what HAMi's scheduler prints. See ``ingest.protocol.Reader``."""

    def __init__(self, scheduler: str = "hami-scheduler", cards: Cards | None = None, zone: tzinfo = UTC) -> None:
        """``cards``: the cards of a node list, so that device lines find their nodes. ``zone``: of the log's times."""
        self._book = Book(scheduler, cards or {}, zone)
        self._filters, self._binds = FilterLines(self._book), BindLines(self._book)
        self._steps = self._all_steps(CardLines(self._book))

    def _all_steps(self, cards: CardLines) -> dict[str, Step]:
        filters, binds = self._filters, self._binds
        return {
            "attempt started": filters.start,
            "containers counted": filters.count_containers,
            "container named": filters.name_container,
            "requests collected": filters.collect_requests,
            "nothing asked": filters.forget,
            "nodes unregistered": filters.unregistered,
            "container tried": filters.try_container,
            "device tried": filters.try_device,
            "device fits": filters.judge_device,
            "device refused": filters.judge_device,
            "node refused": filters.refuse_node,
            "node fits": filters.accept_node,
            "no node fits": filters.no_node_fits,
            "node chosen": filters.choose,
            "event": self._event,
            "bind started": binds.start_bind,
            "bind failed": binds.fail_bind,
            "bound": binds.bound,
            "cards registered": cards.register,
            "cards listed": cards.list_cards,
        }

    @property
    def counts(self) -> Counts:
        return self._book.counts

    def feed(self, lines: Lines) -> Iterator[AttemptEvent]:
        book, spelling_of, steps = self._book, grammar().spelling, self._steps
        book.lines = lines
        told = noise = 0
        for place, text in enumerate(lines.texts):
            at = text.find(b"] ", 20, 300)
            spelling = spelling_of(text, at + 2) if at > 0 else None
            if spelling is None:
                if text:
                    book.counts.unknown(text)
                continue
            if spelling.says == NOISE:
                noise += 1
                continue
            book.place = place
            if len(text) > MAX_LINE or not steps[spelling.says](text, spelling):
                book.counts.unknown(text)
                continue
            told += 1
            if book.told:
                yield from book.take()
        book.counts.lines[EVENT] += told
        book.counts.lines[NOISE_OUTCOME] += noise

    def close(self) -> Iterator[AttemptEvent]:
        self._book.close()
        yield from self._book.take()

    def waits_for(self) -> set[str]:
        """The attempts and binds that were begun and not told."""
        return self._book.waits_for()

    def save(self) -> bytes:
        return _MEMORY.dump_json(self._book.memory)

    def restore(self, saved: bytes) -> None:
        try:
            self._book.memory = _MEMORY.validate_json(saved)
        except ValidationError as error:
            raise ValueError(f"another version's memory of the log: {error.errors()[0]['msg']}") from None

    def _event(self, text: bytes, spelling: Spelling) -> bool:
        pod, reason, message = (klog.quoted(text, key) for key in (b"object", b"reason", b"message"))
        now = self._book.time_of(text)
        if not pod or not reason or message is None or not now or not (names := names_of(pod)):
            return False
        message = message[:MAX_LINE]
        if reason == ReasonCode.FILTERING_SUCCEED:
            self._filters.succeed(names, message, now, spelling)
        elif reason == ReasonCode.FILTERING_FAILED:
            self._filters.fail(names, message, now, spelling)
        elif reason in (ReasonCode.BINDING_SUCCEED, ReasonCode.BINDING_FAILED):
            self._binds.conclude_bind(pod, message, now, is_bound=reason == ReasonCode.BINDING_SUCCEED)
        return True
