"""Words and files by which a line of Volcano's scheduler is recognised."""

from typing import Final

from ingest.lines import klog

FILES: Final = (
    b"allocate", b"enqueue", b"backfill", b"preempt", b"reclaim", b"statement", b"session", b"predicate_helper",
    b"scheduler_helper",
    b"predicates", b"proportion", b"capacity", b"gang", b"drf", b"priority", b"binpack", b"nodeorder", b"overcommit",
    b"deviceshare", b"device_info", b"job_info", b"event_handlers", b"cache", b"scheduler", b"framework",
    b"conformance", b"sla", b"tdm", b"numaaware", b"resourcequota", b"unschedule_info",
)  # fmt: skip
OWN_WORDS: Final = (
    b"redicates failed: task", b"redicate failed for task", b"> nodes for Job <", b"Binding Task <", b" fit failed: ",
    b"Considering Task <",
    b"(PodScheduled==", b" nodes are unavailable: ", b"deviceshare.go:", b"Open Session ", b"Close Session ",
    b"Try to allocate resource to ", b'"Try to allocate resource"', b"PodGroup to ", b"into cache.",
)  # fmt: skip
"""Words that only Volcano's scheduler writes; the names of its files are common."""


def is_volcano_line(line: bytes) -> bool:
    """Tell whether Volcano's scheduler wrote the line: one of its files, and words that only it writes."""
    if not klog.is_of_file(line, FILES) or not klog.has_header(line):
        return False
    head = line[:600]
    return any(words in head for words in OWN_WORDS)
