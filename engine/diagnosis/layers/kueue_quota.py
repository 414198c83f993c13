"""Quota that a Workload of Kueue waits for: the amount in use, its holders, the borrowers, and the place in the queue.

Workloads of other namespaces are counted and not named: who may see the pod may not see them.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from engine.diagnosis.layers.kueue_messages import QuotaShortage, find_shortages
from engine.diagnosis.layers.kueue_workloads import CLUSTER_QUEUE, DOMAIN, Workload, list_competitors, sort_by_turn
from engine.diagnosis.outcome import FoundObstacle, Word
from engine.diagnosis.texts import load_texts, write_phrase
from engine.diagnosis.wording import join_phrases, shorten_list
from engine.hami.quantities import parse_whole
from runtime.kubernetes.object_fields import Fields, get_object, get_text, iterate_objects
from schemas.answers.diagnosis import InBothLanguages

_BY_USAGE: Final = "UsageBasedAdmissionFairSharing"
"""Mode in which the LocalQueue that has used least comes first, before priorities (Kueue's KEP 4136)."""
_BOOST: Final = f"{DOMAIN}/priority-boost"
"""Annotation that changes the priority where an alpha feature is on (KEP 7990), which no object shows."""
_LOOSE_ORDER: Final = "BestEffortFIFO"
_NUMBERS: Final = ("needed", "nominal", "used")
_WINNER: Final = re.compile(r"\(UID: (?P<uid>[^\s,)]+)")
_WINNER_QUEUE: Final = re.compile(r"preemptor path: \S*/(?P<queue>[^\s;/]+)")


def explain_shortage(workload: Workload, message: str, flavors: Sequence[InBothLanguages]) -> FoundObstacle:
    """Explain quota that is in use, or that was taken from the Workload. ``flavors``: why other flavors are out."""
    shortages = find_shortages(message)
    preemption = _describe_preemption(workload)
    words: dict[str, Word] = dict(preemption or {})
    clauses: list[str] = []
    if shortages:
        first = shortages[0]
        lacking = [_describe_shortage(shortage) for shortage in shortages[1:]]
        words |= {**first._asdict(), "others": join_phrases(lacking), "flavors": join_phrases(flavors)}
        details, detail_clauses = _describe_quota(workload, first)
        words |= details
        clauses += [*(["shortage"] if preemption else []), "needed" if first.needed else "limited", *detail_clauses]
        clauses += [*(["others"] if lacking else []), *(["flavors"] if flavors else [])]
    position, place_clauses = describe_place(workload)
    words |= position
    clauses += place_clauses
    clauses += ["preempting"] if "Pending the preemption of" in message else []
    numbers = {name: int(text) for name in _NUMBERS if (text := str(words.get(name, ""))).isdecimal()}
    code = "KueuePreempted" if preemption else "KueueWaitsForQuota"
    return FoundObstacle(code, words, numbers, clauses=clauses)


def _describe_shortage(shortage: QuotaShortage) -> InBothLanguages:
    return write_phrase("flavor_shortage" if shortage.needed else "flavor_limit", **shortage._asdict())


def _describe_quota(workload: Workload, first: QuotaShortage) -> tuple[dict[str, Word], list[str]]:
    """Describe the resource that lacks: its amounts, its holders and its borrowers, as words and clauses."""
    words = _describe_amounts(workload.queue, first.flavor, first.resource)
    clauses = list(_choose_clauses(words))
    for describe in (_describe_holders, _describe_borrowers, _describe_lenders):
        for clause, details in describe(workload, first, dict(words)):
            words |= details
            clauses.append(clause)
    return words, clauses


def is_preempted(workload: Workload) -> bool:
    """Tell whether Kueue took the quota of the Workload for another one, and it has not got it back."""
    condition = workload.find_condition("Preempted")
    return condition is not None and condition.status == "True" and not workload.has_quota


def _describe_preemption(workload: Workload) -> dict[str, Word] | None:
    condition = workload.find_condition("Preempted") if is_preempted(workload) else None
    if condition is None:
        return None
    has_phrase = f"preempted_{condition.reason}" in load_texts().phrases
    rule = write_phrase(f"preempted_{condition.reason}") if has_phrase else condition.reason
    time = condition.last_transition_at
    return {
        "at": time.strftime("%H:%M:%S UTC") if time else "?",
        "rule": rule,
        "winner": _describe_winner(workload, condition.message),
    }


def _describe_winner(workload: Workload, message: str) -> Word:
    uid, queue = _WINNER.search(message), _WINNER_QUEUE.search(message)
    for other in list_competitors(workload, everywhere=True):
        is_winner = uid is not None and get_text(other.object, "metadata", "uid") == uid["uid"]
        if is_winner and other.namespace == workload.namespace:
            return f"{other.subject} in ClusterQueue {other.cluster_queue}"
    return write_phrase("workload_of_queue", queue=queue["queue"]) if queue else write_phrase("workload_unnamed")


def describe_place(workload: Workload) -> tuple[dict[str, Word], list[str]]:
    """Describe the number of waiting Workloads, and those before this one if all of them were read: words and clauses.

    No place where Kueue goes by more than priority and time.
    """
    pending = get_object(workload.queue, "status").get("pendingWorkloads")
    if not isinstance(pending, int) or not pending:
        return {"pending": 0}, []
    words: dict[str, Word] = {"pending": pending}
    waiting = _list_waiting(workload)
    if rule := _find_other_rule(workload, waiting):
        return {**words, "rule": rule}, ["pending", *(["unordered"] if pending > 1 else [])]
    names = [(other.namespace, other.name) for other in waiting]
    if len(names) != pending or pending == 1 or (workload.namespace, workload.name) not in names:
        return words, ["pending"]
    index = names.index((workload.namespace, workload.name))
    words |= {"place": index + 1, "before": name_workloads(workload, waiting[:index])}
    is_loose = get_text(workload.queue, "spec", "queueingStrategy") == _LOOSE_ORDER
    return words, ["place", *(["before"] if index else []), *(["loose"] if index and is_loose else [])]


def find_head(workload: Workload) -> Workload | None:
    """Find the Workload whose turn it is before that of this one, among those that were read."""
    waiting = _list_waiting(workload)
    head = None if _find_other_rule(workload, waiting) else next(iter(waiting), None)
    return head if head and head.name != workload.name else None


def _list_waiting(workload: Workload) -> list[Workload]:
    """List the waiting Workloads of the queue that were read, with the Workload itself, by priority and time."""
    return sort_by_turn([other for other in list_competitors(workload) if not other.has_quota and other.is_active])


def _find_other_rule(workload: Workload, waiting: Iterable[Workload]) -> str:
    """Find the rule that changes the order of priority and time by amounts that no object has; empty without one."""
    if get_text(workload.queue, "spec", "admissionScope", "admissionMode") == _BY_USAGE:
        return _BY_USAGE
    is_boosted = any(get_text(other.object, "metadata", "annotations", _BOOST) for other in waiting)
    return _BOOST if is_boosted else ""


def name_workloads(workload: Workload, others: Sequence[Workload], amounts: Sequence[str] = ()) -> InBothLanguages:
    """Name Workloads of the same namespace, and count the others."""
    texts = amounts or ("",) * len(others)
    named = [
        f"{other.subject}{f' ({text})' if text else ''}"
        for other, text in zip(others, texts, strict=True)
        if other.namespace == workload.namespace
    ]
    parts = [InBothLanguages(en=name, zh=name) for name in named]
    if hidden := len(others) - len(named):
        parts.append(write_phrase("workloads_of_others", n=hidden))
    return join_phrases(parts)


def _describe_amounts(queue: Fields | None, flavor: str, resource: str) -> dict[str, Word]:
    """Describe the nominal quota, the amount in use, the part of it that is borrowed, and the limit of borrowing."""
    flavors = list(_iterate_flavors(queue))
    nominal, limit = (_find_amount(flavors, flavor, resource, name) for name in ("nominalQuota", "borrowingLimit"))
    used, borrowed = (_find_amount(_list_usage(queue), flavor, resource, name) for name in ("total", "borrowed"))
    words: dict[str, Word] = {"cohort": _get_cohort(queue)}
    pairs = {"nominal": nominal, "used": used, "borrowed": borrowed, "limit": limit}
    return words | {name: text for name, text in pairs.items() if text}


def _choose_clauses(amounts: dict[str, Word]) -> Iterator[str]:
    if "nominal" not in amounts or "used" not in amounts:
        return
    if amounts["nominal"] == "0" and amounts["cohort"]:
        yield "without_own"
        return
    yield "amounts"
    if amounts.get("borrowed", "0") != "0":
        yield "borrowed"
    if "limit" in amounts and amounts["cohort"]:
        yield "limit"


def _describe_holders(
    workload: Workload, first: QuotaShortage, _amounts: dict[str, Word]
) -> Iterator[tuple[str, dict[str, Word]]]:
    """Describe the Workloads of the same ClusterQueue that hold the resource."""
    holders = [other for other in list_competitors(workload) if other.has_quota]
    amounts = [_get_usage(other, first.resource) for other in holders]
    pairs = [(other, amount) for other, amount in zip(holders, amounts, strict=True) if amount not in ("", "0")]
    if pairs:
        names = name_workloads(workload, [other for other, _ in pairs], [amount for _, amount in pairs])
        yield "holders", {"holders": names}


def _get_usage(workload: Workload, resource: str) -> str:
    """Get the amount that a Workload holds; empty for one with several sets of pods that hold the resource."""
    sets = iterate_objects(workload.object, "status", "admission", "podSetAssignments")
    amounts = [text for entry in sets if (text := str(get_object(entry, "resourceUsage").get(resource, "")))]
    if len(amounts) > 1 and all(text.isdecimal() for text in amounts):
        return str(sum(map(int, amounts)))
    return amounts[0] if len(amounts) == 1 else ""


def _describe_borrowers(
    workload: Workload, first: QuotaShortage, amounts: dict[str, Word]
) -> Iterator[tuple[str, dict[str, Word]]]:
    """Describe the queues of the cohort that use more than their own, where this queue uses less."""
    nominal, used = str(amounts.get("nominal", "")), str(amounts.get("used", ""))
    if not (nominal.isdecimal() and used.isdecimal() and (int(used) < int(nominal) or nominal == "0")):
        return
    borrowers = [
        f"{get_text(queue, 'metadata', 'name')} ({amount})"
        for queue in workload.objects.select(CLUSTER_QUEUE)
        if amounts["cohort"] and _get_cohort(queue) == amounts["cohort"] and queue is not workload.queue
        if (amount := _find_amount(_list_usage(queue), first.flavor, first.resource, "borrowed")) not in ("", "0")
    ]
    if borrowers:
        yield "borrowers", {"borrowers": shorten_list(borrowers)}
        policy = get_text(workload.queue, "spec", "preemption", "reclaimWithinCohort") or "Never"
        if policy == "Never" and nominal != "0":
            yield "not_reclaimed", {}
    elif nominal != "0":
        yield ("lent" if amounts["cohort"] else "too_few"), {"free": str(int(nominal) - int(used))}


def _describe_lenders(
    workload: Workload, first: QuotaShortage, amounts: dict[str, Word]
) -> Iterator[tuple[str, dict[str, Word]]]:
    """Describe the queues of the cohort that have free quota and lend not all of it."""
    lenders = []
    for queue in workload.objects.select(CLUSTER_QUEUE) if amounts["cohort"] else ():
        if _get_cohort(queue) == amounts["cohort"] and queue is not workload.queue:
            lenders += [_write_lender(queue, free, first)] if (free := _count_reserved(queue, first)) else []
    if lenders:
        yield "lenders", {"lenders": shorten_list(lenders)}


def _write_lender(queue: Fields, free: int, first: QuotaShortage) -> str:
    limit = _find_amount(_iterate_flavors(queue), first.flavor, first.resource, "lendingLimit")
    return f"{get_text(queue, 'metadata', 'name')} ({free}, lendingLimit {limit})"


def _count_reserved(queue: Fields, first: QuotaShortage) -> int:
    """Count the free quota that the queue keeps for itself; 0 without a limit, and for amounts with fractions."""
    names = first.flavor, first.resource
    flavors = list(_iterate_flavors(queue))
    nominal = parse_whole(_find_amount(flavors, *names, "nominalQuota"))
    limit = parse_whole(_find_amount(flavors, *names, "lendingLimit"))
    used = parse_whole(_find_amount(_list_usage(queue), *names, "total") or "0")
    return max(nominal - limit - used, 0) if nominal is not None and limit is not None and used is not None else 0


def _get_cohort(queue: Fields | None) -> str:
    return get_text(queue, "spec", "cohortName") or get_text(queue, "spec", "cohort")


def _iterate_flavors(queue: Fields | None) -> Iterator[Fields]:
    for group in iterate_objects(queue, "spec", "resourceGroups"):
        yield from iterate_objects(group, "flavors")


def _list_usage(queue: Fields | None) -> list[Fields]:
    reserved = list(iterate_objects(queue, "status", "flavorsReservation"))
    return reserved or list(iterate_objects(queue, "status", "flavorsUsage"))


def _find_amount(flavors: Iterable[Fields], flavor: str, resource: str, field: str) -> str:
    for entry in flavors:
        for amount in iterate_objects(entry, "resources") if get_text(entry, "name") == flavor else ():
            if get_text(amount, "name") == resource and field in amount:
                return str(amount[field])
    return ""
