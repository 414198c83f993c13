"""Spellings of kube-scheduler's lines by version: 1.19 and later write them structured, 1.18 as sentences."""

import re
from typing import Final, Literal, NamedTuple

from ingest.lines import klog

LineKind = Literal["begun", "refused", "failed", "bound", "preempted", "plugin failed"]


class LinePattern(NamedTuple):
    kind: LineKind
    pattern: re.Pattern[bytes]


_POD: Final = rb"(?P<pod>[^\s/\"]{1,253}/[^\s\"]{1,253})"
_TEXT: Final = rb"(?P<text>.{0,200000}?)"
_NO_NODE: Final = rb"no (?:fit|nodes are registered to the cluster)"
_PATTERNS: Final[tuple[tuple[LineKind, bytes], ...]] = (
    ("begun", rb'"?(?:About to try and|Attempting to) schedule pod"? ?"?(?:pod=")?' + _POD),
    ("begun", rb"Attempting to schedule pod: " + _POD),
    ("refused", rb'"Unable to schedule pod; ' + _NO_NODE + rb'; waiting" .{0,2000}?pod="' + _POD),
    ("refused", rb"Unable to schedule " + _POD + rb": " + _NO_NODE + rb"(?:: " + _TEXT + rb")?; waiting"),
    ("refused", rb'"PreFilter failed" .{0,2000}?pod="' + _POD),
    ("failed", rb'"Error scheduling pod; retrying" .{0,200000}?pod="' + _POD),
    ("failed", rb"Error scheduling " + _POD + rb": " + _TEXT + rb"; retrying"),
    ("bound", rb'"Successfully bound pod to node" pod="' + _POD + rb'" node="(?P<node>[^"]{1,253})"'),
    ("bound", rb"pod " + _POD + rb' is bound successfully on node "(?P<node>[^"]{1,253})"'),
    ("preempted", rb'"Preemptor [Pp]od preempted victim [Pp]od" preemptor="' + _POD
        + rb'" victim="(?P<victim>[^"]{1,507})" node="(?P<node>[^"]{1,253})"'),
    ("plugin failed", rb'"Failed running (?P<phase>Reserve|Permit|PreBind|Bind) plugin" .{0,200000}?pod="' + _POD),
    ("plugin failed", rb'"Plugin [Ff]ailed" (?!.{0,200000}operation=").{0,200000}?pod="' + _POD),
)  # fmt: skip
LINE_PATTERNS: Final = tuple(LinePattern(kind, re.compile(pattern, re.DOTALL)) for kind, pattern in _PATTERNS)
"""Since 1.19 the words of a refusal stand in ``err="…"``."""

FIRST_WORDS: Final = (
    b'"About to try', b'"Attempting to schedule', b'"Unable to schedule', b'"Error scheduling pod',
    b'"PreFilter failed',
    b'"Successfully bound pod', b'"Preemptor ', b'"Failed running ', b'"Plugin ',
    b"Attempting to schedule pod", b"About to try", b"Unable to schedule ",
    b"Error scheduling ", b"pod ",
)  # fmt: skip

_FILES: Final = (
    b"schedule_one", b"schedule_one_podgroup", b"scheduling_queue", b"eventhandlers", b"preemption",
    b"default_preemption", b"default_binder", b"extender", b"nominator", b"framework", b"runtime_queue",
    b"taint_toleration", b"node_affinity", b"fit", b"resource_allocation", b"dynamicresources", b"binder",
    b"volume_binding", b"cycle_state", b"active_queue", b"backoff_queue", b"factory", b"generic_scheduler",
    b"interpodaffinity", b"filtering", b"coscheduling",
)  # fmt: skip


def find_line_pattern(message: bytes) -> tuple[LinePattern, re.Match[bytes]] | None:
    """Find the pattern of a message, with its parts."""
    if not message.startswith(FIRST_WORDS):
        return None
    for line_pattern in LINE_PATTERNS:
        if match := line_pattern.pattern.match(message):
            return line_pattern, match
    return None


def is_from_its_files(line: bytes) -> bool:
    """Tell whether one of kube-scheduler's files printed the line; only a few of them matter here."""
    return klog.is_of_file(line, _FILES)


def is_kube_scheduler_line(line: bytes) -> bool:
    """Tell whether kube-scheduler wrote the line: it has klog's header and one of its decisions or files."""
    start = klog.find_message(line)
    return start > 0 and klog.has_header(line) and (
        find_line_pattern(line[start : start + 4_000]) is not None or is_from_its_files(line)
    )  # fmt: skip
