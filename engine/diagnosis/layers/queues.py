"""Queues and quotas of schedulers that count what a pod's team may use before they look at a node.

One obstacle for all: the queue, the resource, what is used, allowed and asked, as far as the scheduler names them. The
texts: Koordinator's and scheduler-plugins' ElasticQuota, KAI's queues (capacity_policy), Volcano's enqueue (capacity,
proportion, resourcequota) on the PodGroup; those of YuniKorn are in ``yunikorn``.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Final

from engine.diagnosis.facts import DiagnosisFacts
from engine.diagnosis.layers import chosen_nodes, yunikorn
from engine.diagnosis.layers.group_members import find_group, iterate_group_statements
from engine.diagnosis.layers.statements import Statement, find_refusal, read_amounts, to_decimal
from engine.diagnosis.layers.volcano_queues import SYSTEM, describe_refusal, explain_queue
from engine.diagnosis.outcome import FoundObstacle, TreeStep, Word
from engine.diagnosis.texts import write_phrase
from engine.diagnosis.vendor_words import KAI
from engine.diagnosis.wording import shorten_list
from runtime.kubernetes.object_fields import get_text

QUESTION: Final = "QueueHasRoom"
_QUESTIONS: Final = {
    "RequestUnschedulable": "NodePassed", "RequiredNodeFull": "NodePassed", "BindTriedAgain": chosen_nodes.QUESTION,
}  # fmt: skip
"""Question by the obstacle where a scheduler's words of the same kind of event are not about a queue."""
_KOORDINATOR: Final = re.compile(
    r"[Ii]nsufficient (?P<kind>non-preemptible )?quotas(?: \[[^,]*\])?, "
    r"quotaName(?:: |Topo: \[(?:[^\s\]]+ )*)(?P<queue>[^,\s\]]+)\]?, (?:runtime|min|available): (?P<limit>.*?), "
    r"(?:remained: .*?, )?(?:used|nonPreemptibleUsed): (?P<used>.*?), pod's request: (?P<asked>.*?), "
    r"exceedDimensions: \[(?P<resources>[^\]]*)\]"
)
"""Words of Koordinator's plugins ElasticQuota of all versions; some name the resources before the quota too."""
_CAPACITY: Final = re.compile(
    r"is rejected in PreFilter because (?:ElasticQuota|quota) (?P<queue>\S+) is more than (?P<bound>Max|min)"
)
_CAPACITY_TOTAL: Final = re.compile(r"is rejected in PreFilter because total ElasticQuota used is more than min")
_KAI_LIMIT: Final = re.compile(
    r"(?P<queue>\S+) quota has reached the allowable limit of (?P<resource>[^.]+)\. Limit is (?P<limit>[\d.]+)[^,]*, "
    r"currently (?P<used>[\d.]+).*? allocated and workload requested (?P<asked>[\d.]+)"
)
_KAI_NON_PREEMPTIBLE: Final = re.compile(
    r"Workload requested (?P<asked>[\d.]+) (?P<resource>[^,]+), but (?P<queue>.+?) quota is (?P<limit>[\d.]+)[^,]*, "
    r"while (?P<used>[\d.]+)[^.]*? (?:is|are) already allocated for non-preemptible pods"
)
_KAI_NO_QUEUE: Final = re.compile(r"Queue '(?P<queue>[^']+)' does not exist")
_VOLCANO: Final = re.compile(
    # Up to v1.9 without the resources.
    r"^(?:queue )?resource quota insufficient(?:$|: (?:insufficient )?(?P<resources>.*))|"
    r"^resource in cluster is overused: (?P<overused>.*)"
)
_VOLCANO_ORIGIN: Final = re.compile(r"\. Origin reason is: (?P<reason>.*)", re.DOTALL)
_VOLCANO_NAMESPACE: Final = re.compile(
    r"resource quota insufficient, requested: (?P<asked>.*?), used: (?P<used>.*?), limited: (?P<limit>.*)", re.DOTALL
)
_KAI_NO_REASON: Final = re.compile(r"^Unable to schedule pod\.?$")
_KAI_LABELS: Final = ("kai.scheduler/queue", "runai/queue")
_KAI_QUEUE: Final = "Queue.scheduling.run.ai"


def check_queues(facts: DiagnosisFacts) -> Iterator[TreeStep]:
    """Check whether the pod's queue or quota has room for it."""
    obstacle = (
        _find_in_refusal(facts) or yunikorn.find_in_events(facts) or _find_in_group(facts) or _find_top_queue(facts)
    )
    if obstacle:
        yield TreeStep(_QUESTIONS.get(obstacle.code, QUESTION), "no", obstacle.evidence, (), [obstacle])


def _find_in_refusal(facts: DiagnosisFacts) -> FoundObstacle | None:
    refusal = find_refusal(facts)
    return (_find_in_texts([refusal]) or yunikorn.describe_request(facts, refusal)) if refusal else None


def _find_in_texts(statements: Iterable[Statement]) -> FoundObstacle | None:
    for statement in statements:
        for pattern, describe in _TEXTS:
            if match := pattern.search(statement.text):
                return describe(match, statement)
    return None


def _find_in_group(facts: DiagnosisFacts) -> FoundObstacle | None:
    """Find why Volcano or KAI does not let the pod's group into its queue."""
    group = find_group(facts)
    if group is not None and group.system == "KAI" and find_refusal(facts) is None:
        return _find_in_texts(iterate_group_statements(facts, group))
    if group is not None and group.system != SYSTEM:
        return None
    if obstacle := explain_queue(facts, group):
        return obstacle
    if group is None:
        return None
    statements = iterate_group_statements(facts, group) if group.phase in ("", "Pending") else _find_origin(facts)
    for statement in statements:
        if match := _VOLCANO_NAMESPACE.search(statement.text):
            return _build("quota_namespace", facts.namespace, "Volcano", _read_maps(match), statement)
        if match := _VOLCANO.search(statement.text):
            overused = match["overused"] or ""
            resources = (match["resources"] or overused).replace("insufficient ", "").replace("overused ", "")
            return describe_refusal(facts, group, resources, statement, is_of_cluster=bool(overused))
    return None


def _find_top_queue(facts: DiagnosisFacts) -> FoundObstacle | None:
    """Find the queue of KAI without a parent in which a pod waits whose scheduler names no reason."""
    pod, refusal = facts.pod, find_refusal(facts)
    if pod is None or facts.objects is None or pod.scheduler != KAI:
        return None
    if refusal and not _KAI_NO_REASON.search(refusal.text):
        return None
    name = next((pod.labels[label] for label in _KAI_LABELS if label in pod.labels), "")
    queue = facts.objects.find(_KAI_QUEUE, name)
    if queue is None or get_text(queue, "spec", "parentQueue"):
        return None
    evidence = [refusal.evidence] if refusal else [pod.source]
    return FoundObstacle("QueueWithoutParent", {"queue": name, "system": "KAI"}, evidence=evidence)


def _find_origin(facts: DiagnosisFacts) -> Iterator[Statement]:
    """Find the reason of the whole group that Volcano repeats in its text about a pod."""
    refusal = find_refusal(facts)
    if refusal and (match := _VOLCANO_ORIGIN.search(refusal.text)):
        yield refusal._replace(text=match["reason"])


def _read_maps(match: re.Match[str]) -> dict[str, Mapping[str, str]]:
    return {name: read_amounts(match[name]) for name in ("asked", "used", "limit")}


def _describe_koordinator(match: re.Match[str], statement: Statement) -> FoundObstacle:
    resources = [name for name in re.split(r"[,\s]+", match["resources"]) if name]
    kind = "quota_not_preemptible" if match["kind"] else "quota_quota"
    return _build(kind, match["queue"], "Koordinator", _read_maps(match), statement, resources)


def _build(
    kind: str,
    queue: str,
    system: str,
    amounts: Mapping[str, Mapping[str, str]],
    statement: Statement,
    resources: list[str] | None = None,
) -> FoundObstacle:
    """Build the obstacle of a quota that names what it allows, what is used and what the pod asks for."""
    exceeded = resources or [name for name in amounts["limit"] if _is_exceeded(amounts, name)]
    resource = exceeded[0] if exceeded else ""
    words: dict[str, Word] = {"queue": queue, "system": system, "kind": write_phrase(kind), "resource": resource or "?"}
    words |= {name: amounts[name].get(resource, "?") for name in ("asked", "used", "limit")}
    words["others"] = shorten_list(exceeded[1:])
    clauses = ["amounts"] if resource in amounts["limit"] else []
    is_never = resource in amounts["limit"] and _is_exceeded({**amounts, "used": {}}, resource)
    clauses += ["never"] if is_never else []
    clauses += ["others"] if exceeded[1:] else []
    numbers = {name: int(value) for name in ("asked", "used", "limit") if (value := str(words[name])).isdecimal()}
    return FoundObstacle("QueueFull", words, numbers, evidence=[statement.evidence], clauses=clauses)


def _is_exceeded(amounts: Mapping[str, Mapping[str, str]], name: str) -> bool:
    total = sum(to_decimal(amounts[part].get(name, "0")) for part in ("asked", "used"))
    return total > to_decimal(amounts["limit"][name])


def _describe_capacity(match: re.Match[str], statement: Statement) -> FoundObstacle:
    words: dict[str, Word] = {"queue": match["queue"], "bound": match["bound"].lower()}
    return FoundObstacle("ElasticQuotaFull", words, evidence=[statement.evidence], clauses=["queue"])


def _describe_capacity_total(_match: re.Match[str], statement: Statement) -> FoundObstacle:
    return FoundObstacle("ElasticQuotaFull", {"bound": "min"}, evidence=[statement.evidence])


def _describe_kai(match: re.Match[str], statement: Statement) -> FoundObstacle:
    """Describe a limit of a KAI queue; where the numbers fit, KAI's own sum is the fault."""
    request, used, limit = (Decimal(match[name].rstrip(".")) for name in ("asked", "used", "limit"))
    is_hard = match.re is _KAI_LIMIT
    words: dict[str, Word] = {
        "queue": match["queue"].removeprefix("OverLimit: "),
        "system": "KAI",
        "kind": write_phrase("quota_queue" if is_hard else "quota_not_preemptible"),
        "resource": match["resource"],
        "asked": str(request),
        "used": str(used),
        "limit": str(limit),
        "sum": str(used + request),
    }
    if used + request <= limit:
        step = _find_step(request, used, limit)
        words |= {"more": str(limit + step), "less": str(max(request - step, Decimal(0)))}
        return FoundObstacle("QueueContradicts", words, evidence=[statement.evidence])
    clauses = ["amounts", *([] if is_hard else ["preemptible"])]
    return FoundObstacle("QueueFull", words, evidence=[statement.evidence], clauses=clauses)


def _find_step(*amounts: Decimal) -> Decimal:
    """Find the smallest step that rounding can't swallow: a tenth of the last decimal place that is used."""
    exponents = [exponent for amount in amounts if isinstance(exponent := amount.as_tuple().exponent, int)]
    return Decimal(1).scaleb(min([*exponents, 0]) - 1)


def _describe_missing_queue(match: re.Match[str], statement: Statement) -> FoundObstacle:
    return FoundObstacle("QueueMissing", {"queue": match["queue"], "system": "KAI"}, evidence=[statement.evidence])


_TEXTS: Final[tuple[tuple[re.Pattern[str], Callable[[re.Match[str], Statement], FoundObstacle]], ...]] = (
    (_KOORDINATOR, _describe_koordinator),
    (_CAPACITY_TOTAL, _describe_capacity_total),
    (_CAPACITY, _describe_capacity),
    (_KAI_LIMIT, _describe_kai),
    (_KAI_NON_PREEMPTIBLE, _describe_kai),
    (_KAI_NO_QUEUE, _describe_missing_queue),
)
