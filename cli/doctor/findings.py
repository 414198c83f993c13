"""Findings of the checks with their text and JSON, and the check of clocks that several checks share. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Final

import orjson

PROVISION: Final = "run `schedulerlog pipeline provision` (in a cluster: the Job schedulerlog-provision)"
"""The remedy for topics and index templates that are missing or different."""
TOLERATED_DIFFERENCE: Final = timedelta(seconds=2)
"""Tolerated difference of clocks: the compared times have a resolution of a second."""


@dataclass(frozen=True, slots=True)
class Fault:
    check: str
    """The area: kafka, opensearch, certificates, kubernetes, rights, kube-scheduler, hami, clock."""
    about: str
    """The object: a topic, a file, an address."""
    problem: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Checkup:
    """Findings, the checks that ran, and the checks that a missing setting or right prevented."""

    findings: Sequence[Fault]
    checked: Sequence[str]
    skipped: Sequence[str]


def to_text(report: Checkup) -> str:
    """Write a paragraph for each finding, and a line for the rest."""
    parts = [
        f"{finding.check}: {finding.about}: {finding.problem}\n    {finding.remedy}" for finding in report.findings
    ]
    parts += [f"not checked: {check}" for check in report.skipped]
    checked = ", ".join(report.checked)
    # "Nothing is wrong" would be read as an answer.
    parts.append(f"checked: {checked}; {_count(len(report.findings))}" if checked else "nothing was checked")
    return "\n".join(parts)


def to_json(report: Checkup) -> str:
    """Convert to one object with lists ``findings``, ``checked`` and ``skipped``."""
    document = {
        "findings": [asdict(finding) for finding in report.findings],
        "checked": list(report.checked),
        "skipped": list(report.skipped),
    }
    return orjson.dumps(document, option=orjson.OPT_INDENT_2).decode()


def _count(number: int) -> str:
    return "nothing is wrong" if not number else f"{number} finding{'s' if number > 1 else ''}"


def check_clock(subject: str, theirs: datetime, sent_at: datetime, answered_at: datetime) -> Iterator[Fault]:
    """Check a server's clock: ``theirs`` was read between the two other times, which are ours."""
    off = max(sent_at - theirs, theirs - answered_at)
    if off > TOLERATED_DIFFERENCE:
        problem = f"its clock and that of this machine differ by {off.total_seconds():.0f} s"
        yield Fault("clock", subject, problem, "Run a time service (chrony, ntpd) on both.")
