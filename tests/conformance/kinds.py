"""The kinds of recorded answers: where their cases lie, how one is replayed, which rules may explain what differs.

A further kind is a further row of KINDS.
"""

import json
import lzma
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.conformance import rules
from tests.conformance.bind_replay import compare_bind
from tests.conformance.codec_replay import compare_codec
from tests.conformance.difference import Case, Difference
from tests.conformance.filter_replay import compare_filter
from tests.conformance.log_replay import get_differences, read_logs
from tests.conformance.rules import Rule
from tests.conformance.webhook_replay import compare_webhook


@dataclass(frozen=True, slots=True)
class Kind:
    """source: the file or folder inside a folder of cases. read: its cases, each with an `id`."""

    source: str
    read: Callable[[Path], Iterator[Case]]
    differences: Callable[[Case], Iterable[Difference]]
    rules: tuple[Rule, ...] = ()


def to_packed(path: Path) -> Path:
    """Return the path where the same cases are compressed."""
    return path.with_name(f"{path.name}.xz")


def read_lines(path: Path) -> Iterator[Case]:
    """Read one case per line, as JSON; the file may be compressed with xz instead."""
    with path.open() if path.exists() else lzma.open(to_packed(path), "rt") as lines:
        yield from (json.loads(line) for line in lines)


KINDS: Final = {
    "filter": Kind("filter_cases.jsonl", read_lines, compare_filter, rules.FILTER),
    "bind": Kind("bind_cases.jsonl", read_lines, compare_bind),
    "webhook": Kind("webhook_cases.jsonl", read_lines, compare_webhook, rules.WEBHOOK),
    "logs": Kind("logs", read_logs, get_differences),
    "codec": Kind("codec_cases.jsonl", read_lines, compare_codec, rules.CODEC),
    "vendor filter": Kind("vendor_filter_cases.jsonl", read_lines, compare_filter, rules.VENDOR_FILTER),
    "vendor webhook": Kind("vendor_webhook_cases.jsonl", read_lines, compare_webhook, rules.WEBHOOK),
    "vendor codec": Kind("vendor_codec_cases.jsonl", read_lines, compare_codec, rules.CODEC),
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """Differences of one case, and the rules behind all of them; a case without rules must not differ."""

    id: object
    differences: tuple[Difference, ...]
    rules: tuple[str, ...]

    @property
    def agrees(self) -> bool:
        return not self.differences

    @property
    def is_wrong(self) -> bool:
        """Neither HAMi's answer nor ours by a rule."""
        return bool(self.differences) and not self.rules

    @property
    def is_explained(self) -> bool:
        return bool(self.rules)


def judge(kind: Kind, case: Case) -> Verdict:
    try:
        differences = tuple(kind.differences(case))
    except Exception as error:  # noqa: BLE001 - a crash is an answer that is not HAMi's; the cases after it still count
        return Verdict(case["id"], (Difference("", "answer", repr(error), "an answer"),), ())
    names = rules.explain(kind.rules, case, differences, kind.differences) if differences else []
    return Verdict(case["id"], differences, tuple(names))
