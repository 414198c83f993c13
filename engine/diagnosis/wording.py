"""Wording of the steps' results, and their evidence."""

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, Literal

from engine.diagnosis.facts import DiagnosisFacts, Evidence, PodOnCluster
from engine.diagnosis.texts import write_phrase
from schemas.answers.diagnosis import InBothLanguages
from schemas.events import AttemptSummarized, Condition, PickedDevice, Request

MAX_NAMES: Final = 5
"""Limit of the names in a sentence; the answer lists more."""
_RUNTIME_LAYERS: Final = re.compile(
    r"^.*(?:nvidia-container-cli: |stderr: (?:Auto-detected mode as '\w+' )?|error running hook: |"
    r"unable to retrieve OCI runtime error \([^)]*\): |unable to start container process: "
    r"(?:error during container init: )?|OCI runtime \w+ failed: |failed to create shim task: |"
    r"rpc error: code = \w+ desc = )(?=\S)"
)
"""Words that containerd, runc and the container toolkit put before an error of the layer below."""
_CLAIM_LAYERS: Final = re.compile(
    r"^.*(?:NodePrepareResources failed for claim [^:]+: |error preparing devices for claim '?[^:]+:[^:]+: |"
    r"prepare devices failed: |error applying config: )(?=\S)"
)
"""Words that the kubelet and a DRA driver put before the cause for which a claim can't be prepared."""
_RUNTIME_END: Final = re.compile(r"(?:: unknown)?(?:, message: \"\")?$")
MAX_WHOLE: Final = 160
"""Characters of an error that is quoted with all its layers."""
MAX_QUOTED: Final = 300
NOTHING: Final = InBothLanguages(en="", zh="")
_UNITS: Final = (
    (timedelta(days=2), "days", 86_400),
    (timedelta(hours=2), "hours", 3_600),
    (timedelta(minutes=2), "minutes", 60),
)


def describe_duration(duration: timedelta) -> InBothLanguages:
    """Describe a duration as people say it: `45 s`, `12 min`, `5 h`, `3 days`."""
    seconds = max(int(duration.total_seconds()), 0)
    for least, unit, length in _UNITS:
        if duration >= least:
            return write_phrase(unit, n=seconds // length)
    return write_phrase("seconds", n=seconds)


def cut_first_line(words: str) -> str:
    """Cut words of several lines after the first one: compilers draw below it where an error is."""
    first, newline, _ = words.partition("\n")
    return f"{first} …" if newline else first


def shorten_list(names: Sequence[str]) -> InBothLanguages:
    """List the first ``names``, with the number of the others."""
    more = len(names) - MAX_NAMES
    parts = [*names[:MAX_NAMES], *([f"… (+{more})"] if more > 0 else [])]
    return InBothLanguages(en=", ".join(parts), zh="、".join(parts))


def join_phrases(phrases: Sequence[InBothLanguages]) -> InBothLanguages:
    """List the first phrases, with the number of the others."""
    en, zh = (shorten_list([getattr(phrase, language) for phrase in phrases]) for language in ("en", "zh"))
    return InBothLanguages(en=en.en, zh=zh.zh)


def enumerate_names(names: Sequence[str], word: Literal["and", "or"]) -> InBothLanguages:
    """Enumerate all names, as ``a, b or c``."""
    *others, last = names
    if not others:
        return InBothLanguages(en=last, zh=last)
    join = {"and": "和", "or": "或"}[word]
    return InBothLanguages(en=f"{', '.join(others)} {word} {last}", zh=f"{'、'.join(others)} {join} {last}")


def to_attempt_evidence(attempt: AttemptSummarized) -> Evidence:
    """Convert the attempt to evidence, with the scheduler's own words about its end."""
    report = attempt.reports[0] if attempt.reports else None
    numbers = {
        "offered_nodes": attempt.offered_nodes, "fit_nodes": attempt.fit_nodes,
        "judged_devices": attempt.judged_devices,
    }  # fmt: skip
    if attempt.attempts:
        numbers["attempts"] = attempt.attempts
    words = attempt.scheduler_message or attempt.error
    reporter = report.source if report else attempt.reader or attempt.scheduler
    return Evidence("attempt", attempt.attempt_id, attempt.started_at, reporter, numbers, words)


def to_existence_evidence(attempt: AttemptSummarized) -> Evidence:
    """Convert the attempt to evidence that it exists, without its outcome."""
    evidence = to_attempt_evidence(attempt)
    return Evidence(evidence.kind, evidence.record, evidence.time, evidence.reported_by)


def to_bind_evidence(attempt: AttemptSummarized) -> tuple[Evidence, ...]:
    if attempt.bind is None:
        return ()
    return (Evidence("bind", attempt.attempt_id, attempt.bind.ended_at, attempt.scheduler, words=attempt.bind.error),)


def to_condition_evidence(pod: PodOnCluster, condition: Condition) -> Evidence:
    words = f"{condition.type}={condition.status}: {condition.reason}: {condition.message}"
    return Evidence("pod", pod.source.record, condition.last_transition_at, pod.source.reported_by, words=words)


def get_requests(facts: DiagnosisFacts) -> Sequence[Request] | None:
    """Return the requests of the pod's containers; None if no source reports them."""
    attempted = facts.attempt.requests if facts.attempt else ()
    of_pod = facts.pod.requests if facts.pod else None
    # Events name no request, and their reader knows NVIDIA's resources only.
    if of_pod and not any(request.count for request in attempted):
        return of_pod
    return attempted or of_pod


def count_devices(requests: Sequence[Request]) -> int:
    """Count the most devices that the pod holds at a time: its containers run together, init containers one by one."""
    together = sum(request.count for request in requests if not request.init)
    return max([together, *(request.count for request in requests if request.init)])


def get_scheduler(facts: DiagnosisFacts) -> str:
    return (facts.pod and facts.pod.scheduler) or (facts.attempt.scheduler if facts.attempt else "")


def describe_devices(picked: Sequence[PickedDevice]) -> InBothLanguages:
    """Describe the devices of a placed pod, with the amounts that were booked of each; those that are alike at once."""
    alike: dict[tuple[str, int | None, int], list[str]] = {}
    for device in picked:
        alike.setdefault((device.model, device.memory_mib, device.cores_percent), []).append(device.uuid)
    groups = list(alike.items())
    parts = [_describe_alike(uuids, *amounts) for amounts, uuids in groups[:MAX_NAMES]]
    more = sum(len(uuids) for _, uuids in groups[MAX_NAMES:])
    english, chinese = [part.en for part in parts], [part.zh for part in parts]
    end = [f"… (+{more})"] if more > 0 else []
    return InBothLanguages(en="; ".join([*english, *end]), zh="；".join([*chinese, *end]))


def _describe_alike(uuids: Sequence[str], model: str, memory_mib: int | None, cores_percent: int) -> InBothLanguages:
    # The names of many say nothing that the map of the devices does not show better.
    names = write_phrase("devices", n=len(uuids)) if len(uuids) > MAX_NAMES else shorten_list(uuids)
    kind = f" ({model})" if model else ""
    names = InBothLanguages(en=names.en + kind, zh=names.zh + kind)
    if memory_mib is None:
        return names
    ending = "_of_each" if len(uuids) > 1 else ""
    if not cores_percent:
        # No share of the compute was asked for, which limits none.
        return write_phrase(f"card_memory{ending}", device=names, memory=memory_mib)
    return write_phrase(f"card{ending}", device=names, memory=memory_mib, cores=cores_percent)


def describe_share(refused: int, total: int, kind: InBothLanguages) -> InBothLanguages:
    """Describe a number of nodes: `7 of 8 nodes`, `the only node`; ``kind`` describes their kind."""
    return (
        write_phrase("only", such=kind) if total == 1 else write_phrase("share", refused=refused, of=total, such=kind)
    )


def quote(text: str) -> str:
    """Quote a source within a sentence: in one line, cut if it is long."""
    line = " ".join(text.split()).rstrip(".")
    return line if len(line) <= MAX_QUOTED else f"{line[:MAX_QUOTED]}…"


def quote_cause(text: str) -> str:
    """Quote the innermost cause of a container runtime's error, around which each layer has put words of its own."""
    line = " ".join(text.split())
    cause = _CLAIM_LAYERS.sub("", _RUNTIME_LAYERS.sub("", line)) if len(line) > MAX_WHOLE else line
    return quote(_RUNTIME_END.sub("", cause) or line)


def describe_age(moment: datetime, facts: DiagnosisFacts) -> InBothLanguages:
    return describe_duration(facts.now - moment)


def describe_moment(moment: datetime, facts: DiagnosisFacts) -> str:
    """Describe a moment of a log: with its date if the log ends on another day."""
    is_same_day = facts.log_ended_at is None or facts.log_ended_at.date() == moment.date()
    return moment.strftime("%H:%M:%S UTC" if is_same_day else "%Y-%m-%d %H:%M:%S UTC")
