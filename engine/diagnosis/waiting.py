"""Fields of an attempt in lists of waiting pods: the obstacle of its diagnosis, and the nodes that lacked least."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any, Final

from engine.diagnosis.facts import DiagnosisFacts, Evidence, PodOnCluster
from engine.diagnosis.layer_waits import find_layer_of_code
from engine.diagnosis.layers.kueue_workloads import QUEUE_LABEL
from engine.diagnosis.nearest_nodes import find_nearest_nodes
from engine.diagnosis.outcome import FoundObstacle
from engine.diagnosis.refused_nodes import find_refused_request
from engine.diagnosis.texts import write_sentence, write_state_sentence
from engine.diagnosis.tree import diagnose, find_main_obstacle
from engine.diagnosis.wording import count_devices
from engine.summaries.named_pods import hide_other_pods, hide_pods_in_attempt
from schemas.answers.diagnosis import InBothLanguages, Layer
from schemas.codec.records import encode_value
from schemas.events import (
    AttemptSummarized,
    Balance,
    JudgedObstacle,
    PodObserved,
    PodRef,
    PodWait,
    Refusal,
    Report,
    Request,
)

MAX_NEAREST: Final = 8
"""Limit of the nodes: the nearest of them by device amounts is determined when a list is requested."""
_NODES: Final = "nodes"
"""Layer of pods that their scheduler tries."""
NOT_TRIED: Final = "NotTried"
"""Code of a pod that no scheduler has tried, and of which no obstacle is known."""


_FIXED: Final[Mapping[str, Any]] = {
    **dict.fromkeys(("attempt_id", "episode", "settings_digest"), ""),
    **dict.fromkeys(("version", "part", "attempts"), 0),
    **dict.fromkeys(("episode_started_at", "first_judged_at", "wait", "description"), None),
    "started_at": datetime.fromtimestamp(0, UTC),
    "changes": [],
    "may_duplicate": [],
}  # fmt: skip
"""Values of the fields by which attempts differ that wait alike."""
_COLUMNS: Final = ("nodes", "verdict", "refused_by", "refusal", "score", "score_terms")
_NAMELESS: Final = "(pod)"
"""No pod has this name, and no text names it."""


def digest_wait_inputs(summary: AttemptSummarized, verdict_digest: str) -> bytes:
    """Compute a digest of everything that the wait of an attempt depends on: attempts with equal digests wait alike.

    verdict_digest: of the same attempt. It stands for the nodes and their columns; the tables behind the columns are
    among the texts.
    """
    text = _encode_texts(summary)
    name = _get_name(summary, text)
    return blake2b(b"".join((text, name.encode(), verdict_digest.encode())), digest_size=16).digest()


def _encode_texts(summary: AttemptSummarized) -> bytes:
    """Encode all that the wait depends on, except the names of pod and nodes, and the columns."""
    apart = {*_FIXED, *_COLUMNS, "pod", "ended_at", "reports", "balance"}
    shared = [(name, value) for name, value in summary.__dict__.items() if name not in apart]
    reports = [(report.source, report.levels, report.not_reported) for report in summary.reports]
    return encode_value([summary.pod.namespace, summary.ended_at is None, reports, _list_models(summary), shared])


def _list_models(summary: AttemptSummarized) -> list[str]:
    return sorted(summary.balance.models) if summary.balance else []


def _get_name(summary: AttemptSummarized, text: bytes) -> str:
    """Return the pod's name if a text of the attempt has it: a scheduler may name the member of a group that fits
    nowhere."""
    name = summary.pod.name
    return name if name.encode() in text else _NAMELESS


def _select_inputs(summary: AttemptSummarized) -> AttemptSummarized:
    """Select what the wait depends on, with fixed values for the rest."""
    pod = PodRef.model_construct(namespace=summary.pod.namespace, name=_get_name(summary, _encode_texts(summary)))
    reports = [
        Report.model_construct(
            source=report.source, attempt_id="", started_at=_FIXED["started_at"], levels=report.levels,
            not_reported=report.not_reported,
        )
        for report in summary.reports
    ]  # fmt: skip
    models = dict.fromkeys(_list_models(summary), 0)
    fields = {
        "pod": pod,
        "reports": reports,
        "ended_at": summary.ended_at and _FIXED["started_at"],
        "balance": Balance.model_construct(judged_nodes=0, judged_devices=0, models=models),
    }
    return summary.model_copy(update={**_FIXED, **fields})


def derive_wait(summary: AttemptSummarized, pool_of: Callable[[str], str] | None = None) -> PodWait | None:
    """Derive the fields; None for an attempt that placed its pod. ``pool_of``: the pool of a node by its name, empty
    for none."""
    if summary.status == "succeeded":
        return None
    # What is not in the digest can't be in the answer either.
    summary = _select_inputs(summary)
    obstacle = _find_obstacle(summary)
    words = write_sentence(obstacle) if obstacle else None
    near = find_nearest_nodes(summary)
    code = obstacle.code if obstacle else ""
    if find_layer_of_code(code) == _NODES and (judged := _get_judged(summary)):
        # The same nodes by the cluster's objects, as the diagnosis of the pod names them.
        code, words = judged.code, InBothLanguages(en=judged.sentence_en, zh=judged.sentence_zh)
    return PodWait.model_construct(
        code=code,
        layer=find_layer_of_code(code) or "",
        sentence_en=words.en if words else "",
        sentence_zh=words.zh if words else "",
        devices=count_devices(summary.requests),
        models=_list_models(summary),
        pools=sorted({pool for node in summary.nodes if (pool := pool_of(node))}) if pool_of else [],
        nearest_nodes=[summary.nodes[row] for row in near.rows[:MAX_NEAREST]] if near else [],
        reasons=near.reasons if near else {},
        asked=near.request if near else find_refused_request(summary, Refusal(), -1),
        missing_devices=near.missing_devices if near else None,
    )


def _get_judged(summary: AttemptSummarized) -> JudgedObstacle | None:
    return summary.reconstruction.obstacle if summary.reconstruction else None


def derive_wait_without_attempt(event: PodObserved) -> PodWait | None:
    """Derive the fields of a pod that waits although no scheduler has tried it, or will try it again.

    None for a pod that has a node or has ended, and for one whose attempts say how it waits.
    """
    if event.deleted:
        return None
    if event.wait:
        return event.wait
    if not (_is_untried(event) or is_refused_by_node(event)):
        return None
    obstacle = find_main_obstacle(_to_facts(event))
    words = write_sentence(obstacle) if obstacle else write_state_sentence("not judged", {})
    code = obstacle.code if obstacle else NOT_TRIED
    return _build_wait(code, find_layer_of_code(code), words, event.requests)


def derive_wait_by_objects(facts: DiagnosisFacts) -> PodWait:
    """Derive the fields of a waiting pod by all objects around it."""
    diagnosis = diagnose(facts)
    obstacle, requests = diagnosis.obstacle, facts.pod.requests or () if facts.pod else ()
    # The sentence is shown to everybody who may list the pods of the namespace.
    sentence = diagnosis.sentence
    words = InBothLanguages(
        en=hide_other_pods(sentence.en, facts.namespace), zh=hide_other_pods(sentence.zh, facts.namespace)
    )
    return _build_wait(obstacle.code if obstacle else NOT_TRIED, diagnosis.layer, words, requests)


def derive_wait_on_nodes(facts: DiagnosisFacts, obstacle: FoundObstacle) -> PodWait:
    """Derive the fields of a waiting pod that all nodes refuse, by the obstacle that the objects prove."""
    sentence = write_sentence(obstacle)
    words = InBothLanguages(
        en=hide_other_pods(sentence.en, facts.namespace), zh=hide_other_pods(sentence.zh, facts.namespace)
    )
    return _build_wait(obstacle.code, _NODES, words, facts.pod.requests or () if facts.pod else ())


def _build_wait(code: str, layer: Layer | None, words: InBothLanguages, requests: Sequence[Request]) -> PodWait:
    """Build the fields of a pod that no attempt describes."""
    return PodWait.model_construct(
        code=code,
        layer=layer or "",
        sentence_en=words.en,
        sentence_zh=words.zh,
        devices=count_devices(requests),
        models=[],
        pools=[],
        nearest_nodes=[],
        reasons={},
        asked=requests[0] if len(requests) == 1 else None,
        missing_devices=None,
    )


def _is_untried(event: PodObserved) -> bool:
    scheduled = next((condition for condition in event.conditions if condition.type == "PodScheduled"), None)
    # The report of a problem has no phase.
    is_waiting = event.phase == "Pending" and not event.node and not event.bind_phase
    # Every other condition is that of an attempt. Without one, only its age separates the pod from one that was tried.
    if scheduled is None:
        return is_waiting and bool(event.description and event.description.created_at)
    return is_waiting and scheduled.reason == "SchedulingGated"


def is_refused_by_node(event: PodObserved) -> bool:
    """Tell whether its kubelet refused the pod before a container ran, and its owner has made no other since."""
    is_refused = event.phase == "Failed" and event.started_at is None and bool(event.problems) and bool(event.node)
    return is_refused and not event.replaced_by


def _to_facts(event: PodObserved) -> DiagnosisFacts:
    pod, description = event.pod, event.description
    problem = event.problems[0] if event.problems else None
    observed = PodOnCluster(
        source=Evidence("pod", event.id, event.observed_at, "cluster"),
        uid=pod.uid,
        phase=event.phase,
        node=event.node,
        scheduler=event.scheduler,
        created_at=description.created_at if description else None,
        gates=tuple(event.gates) or None,
        conditions=event.conditions,
        problems=event.problems,
        requests=event.requests,
        reason=problem.reason if problem else "",
        message=hide_other_pods(problem.message, pod.namespace) if problem else "",
        has_run=event.started_at is not None,
        labels={QUEUE_LABEL: description.queue} if description and description.queue else {},
        owners=tuple(map(str, description.owners)) if description else (),
    )
    return DiagnosisFacts(event.cluster, pod.namespace, pod.name, event.observed_at, pod=observed)


def _find_obstacle(summary: AttemptSummarized) -> FoundObstacle | None:
    bind = summary.bind
    has_passed = summary.chosen is not None or summary.fit_nodes > 0
    # While a bind has no result, the sentence says how long ago the filter was, which a list can't hold.
    if bind is None and has_passed and not summary.error:
        return None
    # The sentence is shown to everybody who may list the pod, and others may be another tenant's.
    summary = hide_pods_in_attempt(summary)
    if (bind := summary.bind) and bind.lock_holder:
        unnamed = bind.model_copy(update={"lock_holder": bind.lock_holder.model_copy(update={"pod": ""})})
        summary = summary.model_copy(update={"bind": unnamed})
    pod = summary.pod
    facts = DiagnosisFacts(
        summary.cluster, pod.namespace, pod.name, summary.started_at, attempt=summary, is_latest=False
    )
    return find_main_obstacle(facts)
