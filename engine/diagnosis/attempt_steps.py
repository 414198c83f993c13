"""Questions about an attempt: whether the filter ran, whether a node passed, and why the others did not."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from engine.diagnosis.bind_steps import build_lock_obstacle
from engine.diagnosis.cluster_steps import check_registered_devices
from engine.diagnosis.device_numbers import Numbers, collect_numbers, compare_with_largest, list_models, select_rows
from engine.diagnosis.facts import DiagnosisFacts, Evidence
from engine.diagnosis.log_ends import find_unfinished
from engine.diagnosis.logged_steps import explain_by_log, find_unread_request
from engine.diagnosis.missing_resources import add_offered, describe_missing_resource, is_label
from engine.diagnosis.open_nodes import Closed
from engine.diagnosis.outcome import FoundObstacle, TreeStep, Word, to_answer
from engine.diagnosis.refused_nodes import RefusedNodes, count_judged_nodes, group_refused_nodes, is_about_devices
from engine.diagnosis.texts import (
    GPU_MEMORY_OF_KAI,
    NAMED_TAINTS,
    find_obstacle_of_error,
    find_taint_obstacle,
    get_counted_resource,
    write_phrase,
)
from engine.diagnosis.wording import NOTHING, describe_share, enumerate_names, quote, shorten_list, to_attempt_evidence
from engine.hami.node_checks import is_deleted
from engine.hami.node_lock import find_locked_node, is_contention
from engine.hami.quantities import parse_whole
from engine.hami.reason_codes import EXTENDER_REASON_CODES, ReasonCode
from engine.hami.vendor_catalog import is_share_resource
from schemas.events import AttemptSummarized

_SHOWN_BY_NODES: Final = frozenset(
    ("NodeCordoned", "NodeNotReady", "NodeConditionTaint", "ControlPlaneTaint", "TaintNotTolerated", "AffinityMismatch")
)
_QUOTA_PREFIX: Final = "limits."
_NUMBERS: Final = (
    "memory_total_mib", "memory_used_mib", "cores_total_percent", "cores_used_percent", "slots_total", "slots_used",
)  # fmt: skip
"""Numbers of a device that a step shows."""
_ANNOTATIONS: Final[Mapping[str, tuple[str, ...]]] = {
    ReasonCode.CARD_TYPE_MISMATCH: ("type", "mode"),
    ReasonCode.MODE_NOT_FIT: ("mode",),
    ReasonCode.CARD_UUID_MISMATCH: ("uuid",),
    ReasonCode.NUMA_NOT_FIT: ("numa",),
}
"""Parts of the names of annotations; each vendor has its own: `nvidia.com/use-gputype`, `hygon.com/use-dcutype`."""
_WITH_CAUSE: Final = (
    ReasonCode.NODE_UNREGISTERED,
    ReasonCode.NODE_OF_ANOTHER_SCHEDULER,
    ReasonCode.CARD_INSUFFICIENT_MEMORY,
)
KUBE_SCHEDULER_LOG: Final = "kube-scheduler-log"
_MAX_REASONS: Final = 3
_INSUFFICIENT: Final = "InsufficientResource"
_OF_EXTENDER: Final = "ResourceOfExtender"
_NOT_HELPFUL: Final = re.compile(
    r"preemption: 0/(?P<all>\d+) nodes are available: (?P<helpless>\d+) Preemption is not helpful"
)
_REFUSED_BEFORE: Final = re.compile(r"\d+/\d+ nodes are available: ")
"""Beginning of kube-scheduler's text about a refusal; an error has no such beginning."""
_COUNTED: Final = re.compile(r"0/(?P<total>\d+) nodes are available: (?:.*\bpreemption: |.*[^.]\.{1,2}$)", re.DOTALL)
"""kube-scheduler's text about nodes, with its end: cut texts have neither the words of preemption nor a full stop."""
_WITHOUT_REASON: Final = re.compile(r"0/[1-9]\d* nodes are available: preemption: ")
"""Beginning of kube-scheduler's text about nodes that an extender left out without a reason."""
_MAX_DEVICES: Final = 2
"""Limit of the devices that are evidence for a reason."""


def answer_attempt_questions(
    facts: DiagnosisFacts, attempt: AttemptSummarized, closed: Mapping[str, Closed]
) -> Iterator[TreeStep]:
    """Answer the questions about an attempt.

    ``closed``: the nodes that kube-scheduler's own checks refuse now; they say more than its count of them.
    """
    attempt_evidence = to_attempt_evidence(attempt)
    if unread := find_unread_request(facts):
        yield TreeStep("AsksForDevices", "no", unread.evidence, (), [unread], is_end=True)
        return
    if unfinished := find_unfinished(facts, attempt):
        yield TreeStep("FilterRan", "not known", [attempt_evidence], (), [unfinished], is_end=True)
        return
    if attempt.error:
        yield TreeStep(
            "FilterRan",
            "no",
            [attempt_evidence],
            (),
            [_derive_error_obstacle(facts, attempt, attempt_evidence)],
            is_end=True,
        )
        return
    has_ended = attempt.ended_at is not None
    yield TreeStep(
        "FilterRan", "yes" if has_ended else "not known", [attempt_evidence], facts.select_unknown("records")
    )
    if attempt.chosen is not None or attempt.fit_nodes:
        yield TreeStep("NodePassed", "yes", [attempt_evidence])
        return
    if attempt.nominated:
        node = attempt.nominated
        waits = FoundObstacle("WaitsForVictims", {"node": node}, nodes=[node], evidence=[attempt_evidence])
        yield TreeStep("NodePassed", "no", [attempt_evidence], (), [waits], is_end=True)
        return
    groups = group_refused_nodes(attempt, facts.excluded_by)
    unregistered = _list_unregistered(groups, facts)
    # Verdicts on nodes of which nothing is known now, or that have changed since, are the attempt's own.
    node_codes = _SHOWN_BY_NODES & {state.code for state in closed.values()}
    obstacles = [_derive_obstacle(group, groups, facts, attempt) for group in groups if group.code not in node_codes]
    if has_ended and not groups:
        words: dict[str, Word] = {"scheduler": attempt.scheduler, "of": attempt.offered_nodes}
        has_no_reason = _WITHOUT_REASON.match(attempt.scheduler_message) is not None
        code = "RefusedWithoutReason" if has_no_reason else ReasonCode.FILTERING_FAILED
        obstacles = [FoundObstacle(code, words, evidence=[attempt_evidence])]
    obstacles = explain_by_log(obstacles, facts, attempt)
    if groups and (uncounted := _count_uncounted(attempt)):
        words = {"rest": uncounted, "of": count_judged_nodes(attempt), "scheduler": attempt.scheduler}
        obstacles.append(FoundObstacle("NodesWithoutReason", words, node_count=uncounted, evidence=[attempt_evidence]))
    evidence, unknown = (
        [attempt_evidence, *_list_device_evidence(groups, facts, attempt_evidence)],
        facts.select_unknown("devices", "records"),
    )
    yield TreeStep("NodePassed", to_answer(False if has_ended or groups else None), evidence, unknown, obstacles)
    if unregistered and facts.is_latest and (step := check_registered_devices(facts, frozenset(unregistered))):
        yield step


def _count_uncounted(attempt: AttemptSummarized) -> int:
    """Count the nodes that an uncut text of kube-scheduler names in its total and under no reason."""
    match = _COUNTED.match(attempt.scheduler_message)
    if match is None or attempt.nodes or not attempt.refused_nodes:
        return 0
    return max(int(match["total"][:9]) - sum(attempt.refused_nodes.values()), 0)


def _list_unregistered(groups: Sequence[RefusedNodes], facts: DiagnosisFacts) -> list[str]:
    """List the nodes that were refused as unregistered.

    If the attempt only counts them: those without devices now, and those that HAMi's scheduler has given up.
    """
    refused = [group for group in groups if group.code == ReasonCode.NODE_UNREGISTERED]
    names = [name for group in refused for name in group.names]
    if names or not refused:
        return names
    possible = [
        state.name
        for state in facts.nodes or ()
        if state.devices == 0 or any(is_deleted(problem.handshake) for problem in state.problems or ())
    ]
    return possible if len(possible) <= sum(group.count for group in refused) else []


def _derive_error_obstacle(
    facts: DiagnosisFacts, attempt: AttemptSummarized, attempt_evidence: Evidence
) -> FoundObstacle:
    if (locked := find_locked_node(attempt.error)) and is_contention(attempt.error):
        return build_lock_obstacle(facts, locked, [attempt_evidence])
    code = find_obstacle_of_error(attempt.error)
    # The errors of claims begin alike; that of a claim which is lost or being deleted is not that it is missing.
    is_other_claim = code == "ClaimMissing" and "not found" not in attempt.error
    if is_other_claim or (code == "FilterError" and _REFUSED_BEFORE.match(attempt.scheduler_message)):
        code = "RefusedBeforeNodes"
    words: dict[str, Word] = {"scheduler": attempt.scheduler, "namespace": facts.namespace}
    words["words"] = quote(attempt.error)
    wanted = {"ClaimMissing": "", "ClaimUnbound": "Pending"}.get(code)
    claim = next((candidate for candidate in facts.claims or () if candidate.phase == wanted), None)
    if claim is None:
        return FoundObstacle(code, words, evidence=[attempt_evidence])
    words |= {"claim": claim.name, "phase": claim.phase}
    return FoundObstacle(code, words, evidence=[attempt_evidence, claim.source], clauses=["claim"])


def _derive_obstacle(
    group: RefusedNodes, groups: Sequence[RefusedNodes], facts: DiagnosisFacts, attempt: AttemptSummarized
) -> FoundObstacle:
    # The scheduler did not judge the devices of nodes that it refused completely: one of them may be larger.
    are_all_judged = all(other.has_devices or other.code == ReasonCode.NODE_UNREGISTERED for other in groups)
    is_memory = group.code == ReasonCode.CARD_INSUFFICIENT_MEMORY
    if is_memory and are_all_judged and (numbers := compare_with_largest(group, facts)):
        return _build_obstacle("MemoryBeyondDevice", group, numbers, {}, facts, attempt)
    total, kind = max(count_judged_nodes(attempt), facts.cluster_nodes), NOTHING
    # A placement of a group, or a plugin after the choice, looks at one node of many.
    if total == 1 and len(facts.nodes or ()) > 1:
        kind = write_phrase("looked_at")
    if group.has_devices and group.has_accepted_devices:
        others = sum(other.count for other in groups if not other.has_accepted_devices)
        models = _list_accepted_models(groups, facts)
        # Nobody has looked at the devices of a node that kube-scheduler's filters refused.
        if others and all(is_about_devices(other.code) or not other.has_accepted_devices for other in groups):
            # Nodes that were not offered have such devices or not: nobody has looked.
            total = max(count_judged_nodes(attempt) - others, group.count)
            kind = (
                write_phrase("with_models", models=enumerate_names(models, "or"))
                if models
                else write_phrase("accepted")
            )
    words: dict[str, Word] = {
        "refused": group.count,
        "of": total,
        "share": describe_share(group.count, total, kind),
        "namespace": facts.namespace,
        "scheduler": attempt.scheduler,
        # Details after the resource are the amounts of single nodes.
        "resource": shorten_list(group.details[:1] if group.code == _INSUFFICIENT else group.details),
        "words": quote(shorten_list(group.details).en),
    }
    code = "ManagedResourceCounted" if _is_booked_by_extender(group) else _choose_code(group)
    if code == _INSUFFICIENT and (missing := describe_missing_resource(group, facts, total)):
        return missing._replace(evidence=[to_attempt_evidence(attempt)])
    if code == _INSUFFICIENT and _is_beyond_nodes(groups, facts, attempt):
        code = "ResourceBeyondNodes"
    elif code == _INSUFFICIENT and facts.nodes is None and group.details[0] == GPU_MEMORY_OF_KAI:
        code = "KaiMemoryShortOrUnknown"
    elif code == _INSUFFICIENT and facts.nodes is None and "/" in get_counted_resource(group.details[0]):
        # A scheduler writes the same of a node that has no such device.
        words["resource"] = get_counted_resource(group.details[0])
        code = "ResourceIsLabel" if is_label(group.details[0]) else "ResourceShortOrMissing"
    obstacle = _build_obstacle(code, group, collect_numbers(group, facts), words, facts, attempt)
    return add_offered(obstacle, facts) if code == _OF_EXTENDER else obstacle


def _is_beyond_nodes(groups: Sequence[RefusedNodes], facts: DiagnosisFacts, attempt: AttemptSummarized) -> bool:
    """Tell whether kube-scheduler proves that nodes refused for one resource offer less of it than the pod asks for.

    From 1.31 on its filter of resources calls such a refusal unresolvable, and preemption counts the node as one on
    which it does not help; of a node where pods only have to end it says something else. Of claims it proves nothing.
    """
    resources = {detail for group in groups if group.code == _INSUFFICIENT for detail in group.details[:1]}
    match = _NOT_HELPFUL.search(attempt.scheduler_message)
    if match is None or match["all"] != match["helpless"] or facts.claims:
        return False
    # Where a node has reasons of several filters, as other schedulers write, another may be the unresolvable one.
    has_one_reason_each = sum(group.count for group in groups) <= int(match["all"])
    return len(resources) == 1 and has_one_reason_each


def _choose_code(group: RefusedNodes) -> str:
    """Choose the obstacle of the taints, if they all have the same."""
    codes = {find_taint_obstacle(group.code, details) for details in group.details}
    return codes.pop() if len(codes) == 1 else group.code


def _is_booked_by_extender(group: RefusedNodes) -> bool:
    """Tell whether kube-scheduler counted a resource that no node offers, because an extender counts it."""
    return group.code == _INSUFFICIENT and bool(group.details) and is_share_resource(group.details[0])


def _list_accepted_models(groups: Sequence[RefusedNodes], facts: DiagnosisFacts) -> list[str]:
    """List the models of all nodes with a device that the pod accepts; empty unless all of them are reported."""
    accepted = [group for group in groups if group.has_accepted_devices]
    if facts.select_unknown("devices") or not all(group.has_devices for group in accepted):
        return []
    return list_models([row for group in accepted for row in select_rows(group, facts)])


def _build_obstacle(
    code: str,
    group: RefusedNodes,
    numbers: Numbers,
    words: Mapping[str, Word],
    facts: DiagnosisFacts,
    attempt: AttemptSummarized,
) -> FoundObstacle:
    words, clauses = {**words, **numbers.words}, list(numbers.clauses)
    evidence = [to_attempt_evidence(attempt)]
    if code == ReasonCode.RESOURCE_QUOTA_NOT_FIT and (amounts := _find_fullest_quota(facts)):
        source, more = amounts
        words |= more
        clauses.append("amounts")
        evidence.append(source)
    if code in NAMED_TAINTS and group.details:
        words["taints"] = shorten_list(group.details)
        clauses.append("taints")
    if wanted := _write_annotations(code, attempt):
        words["wanted"] = quote(wanted)
        clauses.append("wanted")
    if group.details and code in _WITH_CAUSE:
        clauses.append("cause")
    if group.details and code == ReasonCode.NODE_INSUFFICIENT_DEVICE and "asked" not in clauses:
        clauses.append("cause")
    # kube-scheduler only counts the nodes that its extender refused.
    if code in EXTENDER_REASON_CODES and any(report.source == KUBE_SCHEDULER_LOG for report in attempt.reports):
        clauses.append("in_extender")
    return FoundObstacle(code, words, _collect_numbers(words, group), group.names, group.count, evidence, clauses)


def _write_annotations(code: str, attempt: AttemptSummarized) -> str:
    """Write the pod's annotations that the reason is about."""
    parts = _ANNOTATIONS.get(code, ())
    annotations = sorted((attempt.constraints or {}).items())
    return ", ".join(f"{name}={value}" for name, value in annotations if any(part in name for part in parts))


def _collect_numbers(words: Mapping[str, Word], group: RefusedNodes) -> dict[str, int]:
    """Collect the numbers of the sentence, with units where the words have none. The requested amounts have names of
    their own."""
    units = {"refused": "nodes", "of": "of_nodes", "count": "devices_asked", "good": "suitable_devices"}
    units |= {"slots": "slots_total", **{what: f"{words.get('resource')}.{what}" for what in ("used", "hard")}}
    free = "free_memory_mib" if group.code == ReasonCode.CARD_INSUFFICIENT_MEMORY else "free_cores_percent"
    units |= {"free": free, "largest": "largest_memory_mib"}
    numbers = {units.get(name, name): word for name, word in words.items() if isinstance(word, int) and name != "asked"}
    request = group.request
    if request and request.count:
        request_amounts = {"memory_mib": request.memory_mib, "memory_percent": request.memory_percent,
                 "cores_percent": request.cores_percent or None}  # fmt: skip
        numbers |= {f"asked_{name}": amount for name, amount in request_amounts.items() if amount is not None}
        numbers["devices_asked"] = request.count
    return numbers


def _find_fullest_quota(facts: DiagnosisFacts) -> tuple[Evidence, dict[str, Word]] | None:
    """Find the quota on device amounts with the largest used share."""
    usages = []
    for quota in facts.quotas or ():
        for name, amount in quota.hard.items():
            hard, used = parse_whole(amount), parse_whole(quota.used.get(name, "0"))
            # Kubernetes counts `requests.nvidia.com/…` itself, HAMi the names `limits.nvidia.com/…`.
            if name.startswith(_QUOTA_PREFIX) and "/" in name and hard and used is not None:
                usages.append((used / hard, name, used, hard, quota.source))
    if not usages:
        return None
    _, name, used, hard, source = max(usages, key=lambda usage: usage[:2])
    return source, {"resource": name, "used": used, "hard": hard}


def _list_device_evidence(groups: Sequence[RefusedNodes], facts: DiagnosisFacts, attempt: Evidence) -> list[Evidence]:
    """List refused devices of the most important reasons as evidence, with their numbers."""
    evidence = []
    for group in groups[:_MAX_REASONS]:
        for row in select_rows(group, facts)[:_MAX_DEVICES]:
            numbers = {name: value for name in _NUMBERS if (value := getattr(row, name)) is not None}
            words = " ".join(filter(None, (row.node, row.uuid, row.model, row.verdict)))
            evidence.append(Evidence("devices", attempt.record, attempt.time, attempt.reported_by, numbers, words))
    return evidence
