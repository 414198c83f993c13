"""The kinds of recorded answers: where their cases lie, how one is replayed, which rules may explain what differs.

A further kind is a further row of KINDS.
"""

import gzip
import json
import lzma
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from scheduler.answering.extender_protocol import UnusableBodyError
from tests.conformance import rules
from tests.conformance.bind_replay import compare_bind
from tests.conformance.cel_replay import compare_cel
from tests.conformance.codec_replay import compare_codec
from tests.conformance.difference import Case, Difference
from tests.conformance.filter_replay import compare_filter
from tests.conformance.kube_dra_replay import compare_kube_dra
from tests.conformance.kube_filter_replay import compare_kube_filter
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


def find_file(path: Path) -> Path | None:
    """Find a file of cases, plain or compressed; None if there is none."""
    candidates = (path, *(path.with_name(f"{path.name}{suffix}") for suffix in _OPENERS))
    return next((candidate for candidate in candidates if candidate.exists()), None)


def read_lines(path: Path) -> Iterator[Case]:
    """Read one case per line, as JSON; the file may be compressed with xz or gzip instead."""
    file = find_file(path) or path
    with _OPENERS.get(file.suffix, Path.open)(file, "rt") as lines:
        yield from (json.loads(line) for line in lines)


_OPENERS: Final[Mapping[str, Callable[..., IO[str]]]] = {".xz": lzma.open, ".gz": gzip.open}
KINDS: Final = {
    "filter": Kind("filter_cases.jsonl", read_lines, compare_filter, rules.FILTER),
    "bind": Kind("bind_cases.jsonl", read_lines, compare_bind),
    "webhook": Kind("webhook_cases.jsonl", read_lines, compare_webhook, rules.WEBHOOK),
    "logs": Kind("logs", read_logs, get_differences),
    "codec": Kind("codec_cases.jsonl", read_lines, compare_codec, rules.CODEC),
    "vendor filter": Kind("vendor_filter_cases.jsonl", read_lines, compare_filter, rules.VENDOR_FILTER),
    "vendor webhook": Kind("vendor_webhook_cases.jsonl", read_lines, compare_webhook, rules.WEBHOOK),
    "vendor codec": Kind("vendor_codec_cases.jsonl", read_lines, compare_codec, rules.CODEC),
    "kube filter": Kind("filter.jsonl", read_lines, compare_kube_filter),
    "kube filter, gated": Kind("filter_gated.jsonl", read_lines, compare_kube_filter),
    "kube DRA": Kind("dra.jsonl", read_lines, compare_kube_dra),
    "kube DRA, gated": Kind("dra_gated.jsonl", read_lines, compare_kube_dra),
    "CEL": Kind("cel.jsonl", read_lines, compare_cel),
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
        """Neither the recorded answer nor ours by a rule."""
        return bool(self.differences) and not self.rules

    @property
    def is_explained(self) -> bool:
        return bool(self.rules)


def judge(kind: Kind, case: Case) -> Verdict:
    try:
        differences = tuple(kind.differences(case))
    except UnusableBodyError as error:
        return _judge_renamed(kind, case, error)
    except Exception as error:  # noqa: BLE001 - a crash is not the recorded answer; the cases after it still count
        return Verdict(case["id"], (Difference("", "answer", repr(error), "an answer"),), ())
    names = rules.explain(kind.rules, case, differences, kind.differences) if differences else []
    return Verdict(case["id"], differences, tuple(names))


def _judge_renamed(kind: Kind, case: Case, error: UnusableBodyError) -> Verdict:
    """Judge a case whose body we refuse with its namespaces renamed to what Kubernetes allows."""
    difference = Difference("", "answer", repr(error), "an answer")
    renamed = rules.rename_namespaces(case)
    if renamed == case:
        return Verdict(case["id"], (difference,), ())
    verdict = judge(kind, renamed)
    return Verdict(case["id"], (difference,), () if verdict.is_wrong else (rules.KNOWN_NAMES, *verdict.rules))
