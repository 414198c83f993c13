"""Sentences of schedulers, kubelets, autoscalers and the API server in a line of prose, without a row of a table.

Such words begin with a text of their own. A person who writes about them uses the same words: a sentence counts that
stands alone, behind a mark or behind a word that reports it, and that continues as its component writes it.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from engine.diagnosis.layers.kubelet import ALLOCATION_FAILED
from engine.hami.reason_codes import ReasonCode
from ingest.cases.descriptions import choose_reporter

_MAX_QUOTED: Final = 60
"""Characters before a sentence in its line, such as a field's name or a quotation mark."""
_QUOTES: Final = {
    '"': '"',
    "`": "`",
    "'": "'",
    "\u201c": "\u201d",
    "\u2018": "\u2019",
    "\u300c": "\u300d",
    "\u300e": "\u300f",
}
_PERSON: Final = r"(?:I|we|[Ww]e|[Mm]y|[Oo]ur|you|your|me|us|somebody|anybody|anyone|someone)(?:'\w+)?"
_ADDRESSES: Final = re.compile(rf"(?<![\w\"./-]){_PERSON}(?![\w\"./-])|\?(?:\s|$)")
"""Words of a person, and questions: no component writes them."""
_REPORTS: Final = re.compile(
    r"(?:[:;=>|\"'`\u201c({\[\].-]|\b(?:says?|said|shows?|including|see|seeing|gets?|got|getting|gives?|reads?|reports?|errors?|"
    r"messages?|events?|warnings?|status|reason|with|is|are|has|have|had|because|since|as)(?: that| the| a| an)?)\s*$",
    re.IGNORECASE,
)
"""End of what stands before a reported sentence."""
_DENIES: Final = re.compile(
    r"\b(?:used to (?:be|say|get|see|show)|no longer|instead of|never|rather than|unlike|before)\b[^:\"`]{0,40}$",
    re.IGNORECASE,
)
"""Words that say that the sentence is not, or no longer, true of the pod."""
_NEXT_SENTENCE: Final = re.compile(r"(?<=[a-z})\]])[.!]\s+(?=[A-Z][a-z']*\s(?!.*preemption: ))")
"""Place where an author continues behind the sentence of a component; kube-scheduler adds its own about preemption."""
_WIDE_STOP: Final = re.compile(r"[\u3002\uff0c\uff1b\uff01\uff1f]")
"""Punctuation of Chinese and Japanese, which no component writes."""
_ASIDE: Final = re.compile(r"[,;] (?=[a-z])| [-\u2013\u2014(] ?(?=[A-Za-z])")
_WRITTEN: Final = re.compile(
    r"Error|Exception\b|\b(?:ERROR|WARN)\s+\S|^\s*\[?(?:\d{4}-\d\d-\d\d[ ,T]+)?\d\d:\d\d:\d\d\b|"
    r"containers with (?:unready|incomplete) status: \["
)
"""Line that a program wrote, and not a person: an error, a line of a log, conditions of a pod in a row."""
_REPEATED: Final = " Received status: "
"""Words of fabric8's Kubernetes client before it writes the answer of the API server again."""
_COUNTED: Final = re.compile(r".*?available: \d")
_SPACED: Final = re.compile(r"^(\d+) /(?=\d+ nodes )")
"""Total of a count behind a space, which editors and people put there."""
_JOINED: Final = re.compile(r"^(\d+) ?nodes? (?=[A-Z])")
"""Beginning of HAMi's count of nodes, as people retype it."""
_UNMISTAKABLE: Final = (str(ReasonCode.FILTERING_FAILED), "FailedScaleUp")
"""Reasons of events whose words nobody writes by chance, wherever they stand in a sentence."""
_FREE: Final = ("FailedCreate", "FailedScaleUp")
"""Reasons of events whose words the author of a policy or a cloud wrote, who may address people."""


@dataclass(frozen=True, slots=True)
class PastedEvent:
    """One event of a text. ``kind`` and ``name`` are empty where the text does not say what the event is about."""

    reason: str
    note: str
    reporter: str = ""
    is_warning: bool = True
    age: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    host: str = ""
    """Node of the kubelet that reports the event; empty where no column names it."""
    time: str = ""
    """Time that stands in the row itself, in ISO 8601; empty where an age or nothing does."""


@dataclass(frozen=True, slots=True)
class _Sentence:
    """Words that only one component writes, and the reason of the events in which it does."""

    pattern: re.Pattern[str]
    reason: str
    reporter: str


_OF_POD: Final = re.compile(r"Resources were not found for pod (?P<namespace>[^\s/]+)/(?P<name>\S+) due to: ")
"""Words before those about a pod in the condition of its group, and in the group's event."""
_OF_GROUP: Final = re.compile(r"(?:PodGroup )?(?P<namespace>[a-z0-9][\w-]*):(?P<name>[\w.-]+) unschedule,reason: ")
"""Words before those about a group in the event of its Volcano job."""
_OF_TASK: Final = re.compile(r", task: <(?P<namespace>[^\s/<>]+)/(?P<name>[^\s<>]+)>, node:[^,]*?\.?$")
"""Words behind those of KAI about a pod, in its log and in events of its first versions."""
_OF_UNFIT: Final = re.compile(r"pod \((?P<name>[a-z0-9][\w.-]*)\) failed to fit in any node")
"""Words of kube-scheduler up to 1.6."""
_OF_MEMBER: Final = re.compile(
    r"child pod not collect enough, .*\bpodName: (?P<namespace>[^\s/,]+)/(?P<name>[^\s,]+)|"
    r"[Ff]ailed to find instance type option\(s\) for \[(?P<of>[^\s/\]]+)/(?P<pod>[^\s\]]+)\]"
)
"""Words of Koordinator about a member of a gang, and of Karpenter up to v0.7 about a pod."""
_OF_CLAIM: Final = re.compile(r"\bResourceClaim \S+ referenced by pod (?P<name>[a-z0-9][\w.-]*): ")
"""Words of a kubelet about the claim of a pod."""
_FILTERING_FAILED: Final = str(ReasonCode.FILTERING_FAILED)
_HAMI: Final = "hami-scheduler"
_SENTENCES: Final = tuple(
    _Sentence(re.compile(pattern), reason, reporter)
    for pattern, reason, reporter in (
        # Words about preemption alone are no reasons of nodes.
        (
            (
                r"(?<!preemption: )(?:In hyperNode \S+: )?\d+ ?/\d+ nodes (?:are )?(?:un)?available: "
                r"(?!\s*$|\d+ (?:No (?:preemption )?victims found|Preemption is not helpful)).*"
            ),
            "FailedScheduling",
            "",
        ),
        (r"pod \([a-z0-9][\w.-]*\) failed to fit in any node.*", "FailedScheduling", "default-scheduler"),
        (r"No nodes are available that match all of the .*", "FailedScheduling", ""),
        (r"(?<=Cannot schedule pods: )(?:Insufficient|node\(s\)) .*", "FailedScheduling", "default-scheduler"),
        (r"\d+ ?nodes? (?:Card|Node|Numa|Mode|Allocated|Exclusive)\w+ ?\([\w., -]+\)", _FILTERING_FAILED, _HAMI),
        (r"no available node, all node scores do not meet", _FILTERING_FAILED, _HAMI),
        (rf"{_OF_GROUP.pattern}.*", "Unschedulable", "volcano"),
        (r"queue resource quota insufficient\b.*", "Unschedulable", "volcano"),
        (r"resource in cluster is overused\b.*", "Unschedulable", "volcano"),
        (r"\d+/\d+ tasks in gang unschedulable: .*", "Unschedulable", "volcano"),
        (r"couldn't assign flavors to pod set .*", "Pending", "kueue-admission"),
        (r"running \"\w+\" filter plugin: .*", "FailedScheduling", ""),
        (r"waiting for dynamic resource controller to create the resourceclaim \".*", "FailedScheduling", ""),
        (r"gang child pod not collect enough, .*", "FailedScheduling", "koord-scheduler"),
        (r"running (?:PreFilter|Reserve|Permit|PreBind|Bind) plugin \"[^\"]+\": .*", "FailedScheduling", ""),
        (rf"{_OF_POD.pattern}.*", "Unschedulable", "kai-scheduler"),
        (r"Resources were found for \d+ pods while \d+ are required for gang .*", "Unschedulable", "kai-scheduler"),
        (r"(?i:no nodes with enough resources were found): .*", "Unschedulable", "kai-scheduler"),
        (r"pod didn't trigger scale-up(?: \(.*|:.*|[.\"'`]*$)", "NotTriggerScaleUp", "cluster-autoscaler"),
        (r"pod triggered scale-up: .*", "TriggeredScaleUp", "cluster-autoscaler"),
        (
            r"Node scale up in zones [^:]+ failed: .*?(?=\.? Pod is at risk of not being scheduled|$)",
            "FailedScaleUp",
            "cluster-autoscaler",
        ),
        (r"[Ff]ailed to find instance type option\(s\) for \[.*", "FailedScheduling", "karpenter"),
        (r"Pod should schedule on: .*", "Nominated", "karpenter"),
        (r"(?:launching \w+, )?creating (?:instance|machine), with fleet error.*", "FailedScaleUp", "karpenter"),
        (
            r"(?:(?:[Ff]ailed to|[Cc]ould not) schedule pod, )?incompatible with (?:nodepool|provisioner) .*",
            "FailedScheduling",
            "karpenter",
        ),
        (rf"(?:Pod was rejected: )?{ALLOCATION_FAILED} ?\S.*", "UnexpectedAdmissionError", "kubelet"),
        (r"Resources cannot be allocated with Topology locality.*", "TopologyAffinityError", "kubelet"),
        (r"Node didn't have enough resource: .*", "OutOfResource", "kubelet"),
        (r"SMT Alignment Error: .*", "SMTAlignmentError", "kubelet"),
        (r"Failed to create pod sandbox: .*", "FailedCreatePodSandBox", "kubelet"),
        (r"Failed to prepare dynamic resources: .*", "FailedPrepareDynamicResources", "kubelet"),
        (
            r"Error: failed to (?:create|start|generate) (?:containerd |shim )?(?:task|container)\b.*",
            "Failed",
            "kubelet",
        ),
        (r"pods? \"[^\"]*\" is forbidden: .*", "FailedCreate", ""),
        (r"(?:[Tt]he )?[A-Z]\w+ \"[^\"]+\" is invalid: .*|[Tt]he pod \"[^\"]+\" is invalid: .*", "FailedCreate", ""),
        (r"admission webhook \"[^\"]+\" denied the request: .*", "FailedCreate", ""),
    )
)
_REFUSED: Final = re.compile(
    r'(?:pods?|(?:[Tt]he )?(?P<kind>[A-Z]\w+)|[Tt]he pod) "(?P<name>[^"]+)" is (?:forbidden|invalid): '
)

_DENIED_POD: Final = re.compile(r"\bpod <(?P<namespace>[^\s/<>]+)/(?P<name>[^\s<>]+)>")
"""Pod in the words of Volcano's webhook."""


def find_sentence(line: str, *, is_quotation: bool = False) -> PastedEvent | None:
    """Find the first sentence of a component in a line; None in prose that only speaks of one.

    ``is_quotation``: the line is a component's, which may put any words before the sentence.
    """
    for sentence in _SENTENCES:
        match = sentence.pattern.search(line)
        # Words further inside are quoted by somebody else, such as in a question about them.
        is_code = match is not None and line[: match.start()].count("`") % 2 == 1
        is_certain = is_quotation or is_code or sentence.reason in _UNMISTAKABLE or _WRITTEN.search(line)
        limit = len(line) if is_certain else _MAX_QUOTED
        if match is None or match.start() > limit:
            continue
        note = match[0].partition("`")[0].strip() if is_code else _cut_quoted(line, match)
        note = _JOINED.sub(r"\1 nodes ", _SPACED.sub(r"\1/", _cut_prose(note, sentence).partition(_REPEATED)[0]))
        if not _is_reported(line[: match.start()], sentence) or (
            sentence.reason not in _FREE and _ADDRESSES.search(note)
        ):
            continue
        reporter = sentence.reporter or choose_reporter(sentence.reason, note)
        if _OF_POD.match(note):
            return name_by_words(PastedEvent(sentence.reason, note, reporter))
        refused = _REFUSED.match(note)
        name = refused["name"] if refused and not refused["name"].endswith("-") else ""
        if denied := _DENIED_POD.search(note) if sentence.reason in _FREE else None:
            return PastedEvent(
                sentence.reason, note, reporter, kind="Pod", namespace=denied["namespace"], name=denied["name"]
            )
        kind = (refused["kind"] or "Pod") if refused and name else ""
        return PastedEvent(sentence.reason, note, reporter, kind=kind, name=name)
    return None


def drop_cut_copies(events: Iterable[PastedEvent]) -> list[PastedEvent]:
    """Drop the events whose words are the beginning of another one's with the same subject and reason: a copy of it
    that ends too early."""
    events = list(events)
    words = sorted({_identify_words(event) for event in events if event.note})
    # In this order, what begins with the words stands right behind them.
    cut = {
        former for former, latter in pairwise(words) if former[:-1] == latter[:-1] and latter[-1].startswith(former[-1])
    }
    return [event for event in events if _identify_words(event) not in cut]


def _identify_words(event: PastedEvent) -> tuple[str, ...]:
    return event.reason, event.kind, event.namespace, event.name, event.note


def name_by_words(event: PastedEvent) -> PastedEvent:
    """Name the pod, or Volcano's group, that the words of an event name."""
    for kind, pattern in (("Pod", _OF_POD), ("PodGroup", _OF_GROUP)):
        if not event.name and (named := pattern.search(event.note)):
            note = event.note[named.end() :]
            return replace(event, kind=kind, note=note, namespace=named["namespace"], name=named["name"])
    if not event.name and (task := _OF_TASK.search(event.note)):
        note = event.note[: task.start()]
        return replace(event, kind="Pod", note=note, namespace=task["namespace"], name=task["name"])
    if not event.name and (unfit := _OF_UNFIT.match(event.note)):
        return replace(event, kind="Pod", name=unfit["name"])
    if not event.name and (member := _OF_MEMBER.search(event.note)):
        namespace, name = member["namespace"] or member["of"], member["name"] or member["pod"]
        return replace(event, kind="Pod", namespace=namespace, name=name)
    if not event.name and (user := _OF_CLAIM.search(event.note)):
        return replace(event, kind="Pod", name=user["name"])
    return event


def _is_reported(before: str, sentence: _Sentence) -> bool:
    """Tell whether the words before a sentence report it: an author's other words only mention it."""
    if _DENIES.search(before):
        return False
    return sentence.reason in _UNMISTAKABLE or _REPORTS.search(before) is not None or _ADDRESSES.search(before) is None


def _cut_quoted(line: str, match: re.Match[str]) -> str:
    """Cut a sentence at the end of the quotation that it begins."""
    note, start = match[0].strip(), match.start()
    closing = _QUOTES.get(line[start - 1 : start]) if start else None
    if closing is None:
        return note.rstrip("`\"'")
    end = re.search(rf"(?<=[.!)}}\]]){closing}", note) or re.search(rf"(?<!\\){closing}(?!.*(?<!\\){closing})", note)
    return (note[: end.start()] if end else note).replace(f"\\{closing}", closing)


def _cut_prose(note: str, sentence: _Sentence) -> str:
    """Cut what an author writes behind a sentence."""
    if sentence.reason in _FREE:
        return note
    note = _WIDE_STOP.split(note, maxsplit=1)[0]
    is_counted = _COUNTED.match(note) is not None
    for end in _NEXT_SENTENCE.finditer(note):
        if is_counted or _ADDRESSES.search(note, end.end()):
            return note[: end.start() + 1]
    aside = next((end for end in _ASIDE.finditer(note) if _ADDRESSES.search(note, end.end())), None)
    return note[: aside.start()] if aside else note
