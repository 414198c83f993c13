"""Walk through the decision tree: it asks its questions in order, and builds the answer with the main obstacle first.

An obstacle that keeps the scheduler from judging at all comes before its judgements. Of its reasons the first are those
that pass when other pods end, then those that an administrator can repair, then those that the pod itself excludes: of
ten nodes, nine of another model matter less than the tenth, which is full. Within a kind, the one that excludes more
nodes comes first.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final, Literal

from engine.diagnosis import texts
from engine.diagnosis.answer_parts import MAX_NODES, to_not_known, to_obstacle, to_step
from engine.diagnosis.attempt_steps import answer_attempt_questions
from engine.diagnosis.bind_steps import answer_bind_questions
from engine.diagnosis.cluster_steps import (
    check_open_nodes,
    check_quotas,
    check_registered_devices,
    find_closed_nodes,
)
from engine.diagnosis.facts import DiagnosisFacts
from engine.diagnosis.headline import FITS_NOW, write_headline
from engine.diagnosis.judged_steps import (
    check_judged,
    compare_with_scheduler,
    counts_only,
    list_unexplained,
    uses_judged,
)
from engine.diagnosis.layer_waits import derive_layer, find_layer, list_waits
from engine.diagnosis.layers import chosen_nodes, gangs, kubelet, queues
from engine.diagnosis.layers.device_claims import ELSEWHERE
from engine.diagnosis.layers.questions import answer_layer_questions, explains_wait
from engine.diagnosis.layers.volumes import NOT_AVAILABLE, OUT_OF_REACH
from engine.diagnosis.logged_steps import find_admission_obstacle
from engine.diagnosis.outcome import FoundObstacle, JudgedPod, TreeStep, Word, to_answer
from engine.diagnosis.pod_clauses import add_pod_clauses
from engine.diagnosis.pod_steps import ENDED, answer_pod_questions
from engine.diagnosis.refused_nodes import KINDS
from engine.diagnosis.scheduler_steps import answer_scheduler_questions, find_refusal_condition
from engine.diagnosis.texts import OTHER_WORDS, get_kind
from engine.diagnosis.timeline import build_timeline, list_moments
from engine.diagnosis.wording import (
    describe_age,
    describe_devices,
    get_scheduler,
    quote,
    to_condition_evidence,
)
from engine.hami.node_checks import HANDSHAKE_DELETED, PROBLEMS, is_deleted
from engine.hami.reason_codes import ReasonCode
from schemas.answers.diagnosis import Diagnosis, InBothLanguages
from schemas.codec.records import format_rfc3339
from schemas.events import PickedDevice

_OF_SCHEDULERS: Final = (queues.QUESTION, chosen_nodes.QUESTION, "NodePassed")
"""Questions whose answer is in the words of a scheduler that has looked at the pod."""
_OVER: Final = ("rejected", "ended")
"""States that no wait ends."""
State = Literal["placed", "binding", "refused", "not judged", "gated", "rejected", "ended", "missing", "not known"]


def diagnose(facts: DiagnosisFacts, attempt_path: str | None = None, judged: JudgedPod | None = None) -> Diagnosis:
    """Build the full answer.

    ``attempt_path``: the path at which the API serves the attempt among the facts. ``judged``: what was worked out
    about the pod on the cluster's objects.
    """
    steps = list(_walk(_ask_questions(facts, judged)))
    comparison = compare_with_scheduler(facts, judged if judged and uses_judged(steps) else None)
    return build_diagnosis(facts, steps, attempt_path).model_copy(update={"comparison": comparison})


def build_diagnosis(facts: DiagnosisFacts, steps: Sequence[TreeStep], attempt_path: str | None = None) -> Diagnosis:
    """Build the answer from steps that were walked."""
    obstacles_of_steps = (obstacle for step in steps for obstacle in step.obstacles)
    ranked = [add_pod_clauses(obstacle, facts) for obstacle in rank_obstacles(obstacles_of_steps)]
    state = derive_state(facts, steps)
    obstacles = [to_obstacle(obstacle, facts) for obstacle in ranked]
    moments = list_moments(facts)
    is_starting = state == "placed" and facts.pod is not None and facts.pod.phase == "Pending"
    layer = find_layer(steps, ranked[0]) if ranked else derive_layer(state, is_starting=is_starting)
    sentence = obstacles[0].sentence if obstacles else _write_sentence(facts, state)
    headline = write_headline(sentence, obstacles, facts.attempt)
    return Diagnosis(
        cluster=facts.cluster,
        namespace=facts.namespace,
        name=facts.name,
        state=state,
        at=format_rfc3339(facts.now),
        attempt=attempt_path if facts.attempt else None,
        headline=headline.text,
        background=headline.background,
        sentence=sentence,
        obstacle=obstacles[0] if obstacles else None,
        other_obstacles=obstacles[1:],
        layer=layer,
        timeline=build_timeline(moments),
        # A pod that its kubelet has sent away waits nowhere any more.
        waits=list_waits(moments, None if state in _OVER else layer, facts.now),
        steps=[to_step(step) for step in steps],
        not_known=to_not_known(facts.unknown),
    )


def diagnose_judged(
    facts: DiagnosisFacts, judged: Sequence[FoundObstacle], excluded_by: Sequence[str], passing: int
) -> Diagnosis:
    """Build the answer about a pod that was only simulated, on nodes that kube-scheduler's filters judged first.

    judged: obstacles of the filters. passing: number of nodes that pass them, of which the attempt among the facts says
    the rest.
    """
    evidence = [source for obstacle in judged for source in obstacle.evidence][:MAX_NODES]
    steps = [TreeStep("NodesOpen", to_answer(passing > 0), evidence, (), list(judged))]
    if facts.attempt:
        steps += _walk(_ask_questions(facts))
    diagnosis = build_diagnosis(facts, steps)
    state = diagnosis.state if facts.attempt else "refused"
    return diagnosis.model_copy(update={"excluded_by": list(excluded_by) or None, "state": state})


def find_main_obstacle(facts: DiagnosisFacts) -> FoundObstacle | None:
    """Find the obstacle that the answer states first."""
    ranked = rank_obstacles(obstacle for step in _walk(_ask_questions(facts)) for obstacle in step.obstacles)
    return ranked[0] if ranked else None


def _walk(questions: Iterator[TreeStep]) -> Iterator[TreeStep]:
    for step in questions:
        yield step
        if step.is_end:
            return


def _ask_questions(facts: DiagnosisFacts, judged: JudgedPod | None = None) -> Iterator[TreeStep]:
    attempt = facts.attempt
    # Only its records explain an attempt that later attempts followed.
    if facts.is_latest:
        yield from answer_pod_questions(facts)
    elif facts.pod is None:
        yield from kubelet.check_node_took_it(facts)
    layers = list(answer_layer_questions(facts))
    # The objects say more of a pod that no node takes than the text about its gang, which counts nodes.
    is_blamed = judged is not None and not judged.fitting and gangs.has_node_reasons(layers)
    yield from (step for step in layers if not (is_blamed and step.question == gangs.QUESTION))
    if explains_wait(layers) and not is_blamed:
        return
    if facts.is_latest:
        yield from answer_scheduler_questions(facts)
    if judged and (attempt is None or counts_only(attempt) or is_blamed):
        yield from _ask_judged(facts, judged)
        return
    if attempt is None:
        yield from _ask_without_attempt(facts)
        return
    if denied := find_admission_obstacle(facts):
        yield TreeStep("PodExists", "no", denied.evidence, (), [denied], is_end=True)
        return
    closed = find_closed_nodes(facts, attempt.nodes)
    yield from answer_attempt_questions(facts, attempt, closed)
    if attempt.chosen is not None or attempt.fit_nodes:
        yield from answer_bind_questions(facts, attempt)
    elif closed:
        yield check_open_nodes(facts, closed, is_judged=True)


def _ask_judged(facts: DiagnosisFacts, judged: JudgedPod) -> Iterator[TreeStep]:
    """Ask the cluster's objects, which say more than the counts of an attempt."""
    step = check_judged(facts, judged)
    yield step
    unregistered = [
        name
        for obstacle in judged.obstacles
        if obstacle.code == ReasonCode.NODE_UNREGISTERED
        for name in obstacle.nodes
    ]
    if unregistered and (registered := check_registered_devices(facts, frozenset(unregistered))):
        yield registered
    attempt = facts.attempt
    if attempt is None and not step.obstacles:
        # Releases of HAMi before v2.9 leave out a node that they have given up, which the present rules do not.
        deleted = [
            state.name
            for state in facts.nodes or ()
            if any(is_deleted(problem.handshake) for problem in state.problems or ())
        ]
        if deleted and (registered := check_registered_devices(facts, frozenset(deleted))):
            yield registered
        yield from _quote_scheduler(facts)
    # What the objects allow does not explain what the scheduler counted.
    if attempt and (unexplained := attempt.refused_nodes if judged.fitting else list_unexplained(attempt, judged)):
        counted = attempt.model_copy(update={"refused_nodes": unexplained})
        yield from answer_attempt_questions(replace(facts, attempt=counted), counted, {})


def _ask_without_attempt(facts: DiagnosisFacts) -> Iterator[TreeStep]:
    yield check_quotas(facts)
    yield check_open_nodes(facts, find_closed_nodes(facts))
    if step := check_registered_devices(facts):
        yield step
    yield from _quote_scheduler(facts)


def _quote_scheduler(facts: DiagnosisFacts) -> Iterator[TreeStep]:
    """Quote the scheduler's last words on the pod, where no attempt is recorded."""
    condition = find_refusal_condition(facts.pod)
    if facts.pod and condition:
        evidence = [to_condition_evidence(facts.pod, condition)]
        words: dict[str, Word] = {"scheduler": facts.pod.scheduler, "words": quote(condition.message)}
        obstacle = FoundObstacle(SCHEDULER_WORDS, words, evidence=evidence)
        yield TreeStep("NodePassed", "no", evidence, facts.select_unknown("attempt"), [obstacle])


def derive_state(facts: DiagnosisFacts, steps: Sequence[TreeStep]) -> State:
    pod, attempt = facts.pod if facts.is_latest else None, facts.attempt
    if pod and pod.is_gone:
        return "missing"
    if any(step.question == kubelet.QUESTION and step.answer == "no" for step in steps):
        return "rejected"
    if any(step.question == "StillWaits" and step.is_end and not _is_bound(facts) for step in steps):
        return "ended"
    if (pod and pod.node) or _is_bound(facts):
        return "placed"
    if any(step.question == "FreeOfGates" and step.answer == "no" for step in steps):
        return "gated"
    if attempt:
        has_passed = attempt.chosen is not None or attempt.fit_nodes > 0
        is_open = attempt.bind is None and has_passed and not attempt.error
        if facts.log_ended_at and not (has_passed or attempt.ended_at or attempt.nodes or attempt.bind):
            return "not judged"
        return "binding" if is_open else "refused"
    if pod is None:
        return "not known"
    if any(step.question in _OF_SCHEDULERS and step.answer == "no" for step in steps):
        return "refused"
    return "refused" if find_refusal_condition(pod) else "not judged"


def _is_bound(facts: DiagnosisFacts) -> bool:
    has_ended = facts.is_latest and facts.pod and (facts.pod.phase in ENDED or facts.pod.is_being_deleted)
    return bool(facts.attempt and facts.attempt.bind and facts.attempt.bind.bound) and not has_ended


def _write_sentence(facts: DiagnosisFacts, state: State) -> InBothLanguages:
    attempt = facts.attempt
    node = (facts.pod.node if facts.pod else "") or (attempt.chosen if attempt else "") or ""
    words: dict[str, Word] = {"node": node, "scheduler": get_scheduler(facts)}
    words["ago"] = describe_age(attempt.started_at, facts) if attempt else ""
    if state == "placed" and (devices := _list_held(facts, node)):
        words["devices"] = describe_devices(devices)
        return texts.write_state_sentence("placed with devices", words)
    return texts.write_state_sentence(state, words)


def _list_held(facts: DiagnosisFacts, node: str) -> Sequence[PickedDevice]:
    """List the devices of a placed pod: those of its object, or those that the attempt picked on its node."""
    if facts.pod and facts.pod.devices:
        return facts.pod.devices
    attempt = facts.attempt
    return attempt.picked if attempt and attempt.chosen == node else ()


SCHEDULER_WORDS: Final = "SchedulerFoundNone"
_CHECKED_FIRST: Final = frozenset(("TaintNotTolerated", "AffinityMismatch", "NodeNameMismatch", "NodeWithoutResource"))
_CHECKED_LAST: Final = frozenset(("DeviceShareTooFew", "GpuShareShort"))
"""Obstacles of single devices, at which a scheduler looks when the node has enough of every resource."""
_EXPLAINED_DEVICES: Final = (
    "DevicesUnusable", "DevicesTainted", "DevicesInUse", "DevicesTooFew", "DevicesNotMatched", "DevicesNotPublished",
)  # fmt: skip
"""Obstacles that say why no device is allocated."""
_COUNTED_AS: Final = {
    OUT_OF_REACH: "VolumeElsewhere",
    NOT_AVAILABLE: "VolumeElsewhere",
    "VolumeNotAvailable": NOT_AVAILABLE,
    ELSEWHERE: "ClaimNotOnNode",
    **dict.fromkeys(_EXPLAINED_DEVICES, texts.CLAIMS_NOT_ALLOCATED),
}
"""Obstacle of the scheduler's count of nodes, by the obstacle that names the object that it is about."""
_DETAILS: Final = ("resource", "asked", "count", "request", "terms", "constraints")
"""Words by which obstacles with one code differ: they are about different resources, requests or rules."""


def rank_obstacles(obstacles: Iterable[FoundObstacle]) -> list[FoundObstacle]:
    """Sort the obstacles by importance, each code once; of equals the first stays first."""
    first: dict[tuple[str, ...], FoundObstacle] = {}
    for obstacle in obstacles:
        details = [str(obstacle.words.get(name, "")) for name in _DETAILS]
        first.setdefault((obstacle.code, *details), obstacle)
    explained = {
        name
        for obstacle in first.values()
        if obstacle.code in (*PROBLEMS, HANDSHAKE_DELETED)
        for name in obstacle.nodes
    }
    first = {key: obstacle for key, obstacle in first.items() if not _is_explained(obstacle, explained)}
    if len(first) > 1:
        # Facts about the nodes explain the scheduler's words.
        first = {key: obstacle for key, obstacle in first.items() if obstacle.code != SCHEDULER_WORDS}
    # A layer names the object that the scheduler's count is about.
    counted = {_COUNTED_AS.get(obstacle.code, "") for obstacle in first.values()}
    first = {key: obstacle for key, obstacle in first.items() if texts.get_counted_code(obstacle.code) not in counted}
    return sorted(first.values(), key=_rank_obstacle)


def _rank_obstacle(obstacle: FoundObstacle) -> tuple[bool, int, bool, bool, int]:
    """Rank an obstacle: by its kind, then by how near its nodes came to a fit, then by their number."""
    kind = "constraint" if obstacle.code == OTHER_WORDS else get_kind(obstacle.code)
    # Taints and selectors are checked first: a node that was refused for something else has passed them.
    is_early, is_late = obstacle.code in _CHECKED_FIRST, obstacle.code in _CHECKED_LAST
    return obstacle.is_aside, KINDS[kind], not is_late, is_early, -obstacle.node_count


def _is_explained(obstacle: FoundObstacle, explained: Collection[str]) -> bool:
    """Tell whether problems of registrations explain that the scheduler has no devices of these nodes.

    They also contradict that the pod fits there by its registered devices.
    """
    if obstacle.code == ReasonCode.NODE_UNREGISTERED and not obstacle.nodes:
        # A scheduler's text counts nodes without their names.
        return obstacle.node_count <= len(explained)
    is_named = obstacle.node_count == len(obstacle.nodes)
    is_about_registration = obstacle.code == FITS_NOW or (obstacle.code == ReasonCode.NODE_UNREGISTERED and is_named)
    return is_about_registration and set(obstacle.nodes) <= set(explained)
