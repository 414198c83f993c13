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
from tests.conformance.bind_replay import bind_differences
from tests.conformance.codec_replay import codec_differences
from tests.conformance.difference import Case, Difference
from tests.conformance.filter_replay import filter_differences
from tests.conformance.log_replay import log_differences, read_logs
from tests.conformance.rules import Rule
from tests.conformance.webhook_replay import webhook_differences


@dataclass(frozen=True, slots=True)
class Kind:
    """source: the file or folder inside a folder of cases. read: its cases, each with an `id`."""

    source: str
    read: Callable[[Path], Iterator[Case]]
    differences: Callable[[Case], Iterable[Difference]]
    rules: tuple[Rule, ...] = ()


def packed(path: Path) -> Path:
    """Where the same cases are kept compressed."""
    return path.with_name(f"{path.name}.xz")


def read_lines(path: Path) -> Iterator[Case]:
    """One case a line, as JSON; the file may be compressed with xz instead."""
    with path.open() if path.exists() else lzma.open(packed(path), "rt") as lines:
        yield from (json.loads(line) for line in lines)


KINDS: Final = {
    "filter": Kind("filter_cases.jsonl", read_lines, filter_differences, rules.FILTER),
    "bind": Kind("bind_cases.jsonl", read_lines, bind_differences),
    "webhook": Kind("webhook_cases.jsonl", read_lines, webhook_differences, rules.WEBHOOK),
    "logs": Kind("logs", read_logs, log_differences),
    "codec": Kind("codec_cases.jsonl", read_lines, codec_differences, rules.CODEC),
    "vendor filter": Kind("vendor_filter_cases.jsonl", read_lines, filter_differences, rules.VENDOR_FILTER),
    "vendor webhook": Kind("vendor_webhook_cases.jsonl", read_lines, webhook_differences, rules.WEBHOOK),
    "vendor codec": Kind("vendor_codec_cases.jsonl", read_lines, codec_differences, rules.CODEC),
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What differs in one case, and the rules behind all of it; a case without rules must not differ."""

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


def judged(kind: Kind, case: Case) -> Verdict:
    try:
        found = tuple(kind.differences(case))
    except Exception as error:  # noqa: BLE001 - a crash is an answer that is not HAMi's; the cases after it still count
        return Verdict(case["id"], (Difference("", "answer", repr(error), "an answer"),), ())
    names = rules.explained(kind.rules, case, found, kind.differences) if found else []
    return Verdict(case["id"], found, tuple(names))
