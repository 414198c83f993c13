"""The answer about a simulated pod, as the API and the terminal give it."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

import orjson

from engine.diagnosis.answer_parts import MAX_NODES
from engine.diagnosis.facts import DiagnosisFacts
from engine.diagnosis.headline import add_changes, describe_nearest
from engine.diagnosis.texts import write_phrase, write_sentence
from engine.diagnosis.tree import diagnose_judged, rank_obstacles
from engine.diagnosis.wording import shorten_list
from engine.hami.annotations import DEVICE_POLICY
from engine.hami.reason_codes import ReasonCode
from engine.simulation.picked_devices import TriedDevice
from engine.simulation.proved_changes import ProvedChanges
from engine.simulation.setting import Note
from engine.simulation.verdict import PodOutcome, PodVerdict
from engine.suggestions.answer import build_suggestions
from engine.summaries.answer import build_detail, encode_schedulerlog
from runtime.kubernetes.object_fields import get_object, get_text
from schemas.answers.diagnosis import Diagnosis, InBothLanguages
from schemas.answers.simulation import FilteredNodes, SimulatedDevice, SimulatedPod, SimulationNote
from schemas.answers.suggestions import Suggestions
from schemas.codec.records import encode_value, format_rfc3339
from schemas.json_types import Json

_REASONS: Final = {
    "uuid": (ReasonCode.CARD_UUID_MISMATCH,),
    "type": (ReasonCode.CARD_TYPE_MISMATCH,),
    # Some vendors' checks have a reason of their own for it.
    "mode": (ReasonCode.MODE_NOT_FIT, ReasonCode.CARD_TYPE_MISMATCH),
}
"""Reasons of devices for what a pod's annotations exclude."""
_NO_TIME: Final = datetime.min.replace(tzinfo=UTC)
_CLOSED_CODES: Final = frozenset(
    (
        "AdmissionDenied", "LimitRangeRefusesPod", "PodClassMissing", "QuotaNeedsAmounts", "QuotaRefusesClaim",
        "QuotaRefusesPod", "RequestNotRead", "ResourceNotInTable",
    )
)  # fmt: skip
"""Obstacles of the pod itself, which no node has."""


def build_answer(
    verdict: PodVerdict,
    changes: ProvedChanges,
    notes: Sequence[Note],
    pods: Sequence[PodVerdict],
    cluster: str,
    now: datetime,
) -> Json:
    """Build the JSON of the answer. pods: all of several that were placed, `verdict` among them; () for one."""
    diagnosis = diagnose_verdict(verdict, changes, cluster, now)
    attempt = verdict.attempt
    log = None
    if attempt is not None:
        log = orjson.loads(encode_schedulerlog(attempt, additions={"detail": build_detail(attempt)}))
    suggestions = build_suggestions_of_verdict(verdict, changes, cluster, now)
    diagnosis = add_changes(diagnosis, suggestions) if diagnosis else None
    policy = str(get_object(verdict.pod, "metadata", "annotations").get(DEVICE_POLICY) or "")
    return {
        "node": verdict.node,
        "state": verdict.outcome.value,
        "sentence": _dump(_write_sentence(verdict, diagnosis)),
        "nodes": verdict.total,
        "fit_nodes": len(verdict.fitting),
        "fitting": list(verdict.fitting[:MAX_NODES]),
        "filtered": [_dump(group) for group in list_filtered(verdict)],
        "devices": [_dump(_to_device(device)) for device in verdict.devices],
        "device_policy": verdict.decision.device_policy if verdict.decision else "",
        "policy_annotation": DEVICE_POLICY if policy and verdict.decision else "",
        "notes": [{"code": note.code, "text": _dump(note.text)} for note in notes],
        "pods": [_dump(_to_pod(other)) for other in pods],
        "schedulerlog": log,
        "diagnosis": orjson.loads(encode_value(diagnosis)) if diagnosis else None,
        "suggestions": orjson.loads(encode_value(suggestions)) if suggestions else None,
    }


def _dump(answer: InBothLanguages | FilteredNodes | SimulatedDevice | SimulatedPod | SimulationNote) -> Json:
    return answer.model_dump(mode="json")


def diagnose_verdict(verdict: PodVerdict, changes: ProvedChanges, cluster: str, now: datetime) -> Diagnosis | None:
    """Diagnose a pod that waits, or an attempt of HAMi's scheduler; a pod without devices that fits has none."""
    attempt = verdict.attempt
    if verdict.outcome is not PodOutcome.REFUSED and attempt is None:
        return None
    reasons = _REASONS.get(changes.excluded_by[0], ()) if len(changes.excluded_by) == 1 else ()
    refusals = attempt.refusals if attempt else ()
    excluded_by = next((code for code in reasons if any(code in refusal.counts for refusal in refusals)), "")
    facts = DiagnosisFacts(
        attempt.cluster if attempt else cluster,
        get_text(verdict.pod, "metadata", "namespace"),
        get_text(verdict.pod, "metadata", "name"),
        now,
        attempt,
        is_latest=False,
        cluster_nodes=verdict.total,
        vendors=verdict.vendors,
        excluded_by=excluded_by,
    )
    passing = len(verdict.decision.node_names) if verdict.decision else len(verdict.fitting)
    diagnosis = diagnose_judged(facts, verdict.obstacles, changes.excluded_by, passing)
    if verdict.outcome is PodOutcome.REFUSED:
        return diagnosis
    sentence = _write_fitting(verdict)
    answer: Json = {"headline": sentence, "background": None, "sentence": sentence, "obstacle": None}
    answer |= {"other_obstacles": []}
    # The last question is about the bind.
    return diagnosis.model_copy(update={**answer, "steps": diagnosis.steps[:-1]})


def _write_sentence(verdict: PodVerdict, diagnosis: Diagnosis | None) -> InBothLanguages:
    if verdict.outcome is PodOutcome.REFUSED and diagnosis:
        return diagnosis.sentence
    return _write_fitting(verdict)


def _write_fitting(verdict: PodVerdict) -> InBothLanguages:
    names = shorten_list(verdict.fitting)
    if not verdict.decision and not (verdict.judgement and verdict.judgement.total):
        return write_phrase("no_device")
    if verdict.outcome is PodOutcome.OPEN and verdict.unrecorded and verdict.unrecorded.issuperset(verdict.fitting):
        return write_phrase("left_unrecorded", nodes=names)
    if verdict.outcome is PodOutcome.OPEN:
        return write_phrase("left_open", fit=len(verdict.fitting), total=verdict.total, nodes=names)
    if verdict.node and verdict.decision:
        return write_phrase("would_fit", node=verdict.node, fit=len(verdict.fitting))
    if verdict.node:
        return write_phrase("would_go", node=verdict.node, total=verdict.total)
    return write_phrase("would_fit_filters", fit=len(verdict.fitting), total=verdict.total, nodes=names)


def list_filtered(verdict: PodVerdict) -> list[FilteredNodes]:
    """List the nodes that the filters refuse, by reason, the most important first."""
    return [
        FilteredNodes(
            code=obstacle.code,
            sentence=write_sentence(obstacle),
            nodes=list(obstacle.nodes[:MAX_NODES]),
            node_count=obstacle.node_count,
        )
        for obstacle in rank_obstacles(verdict.obstacles)
        if obstacle.code not in _CLOSED_CODES
    ]


def _to_device(device: TriedDevice) -> SimulatedDevice:
    return SimulatedDevice(
        container=device.container,
        device_index=device.index,
        uuid=device.uuid,
        model=device.model,
        verdict=device.verdict,
        memory_mib=device.memory_mib,
        cores_percent=device.cores,
        memory_total_mib=device.memory_total_mib,
        memory_used_mib=device.memory_used_mib,
        cores_total_percent=device.cores_total,
        cores_used_percent=device.cores_used,
        slots_total=device.slots,
        slots_used=device.slots_used,
    )


def _to_pod(verdict: PodVerdict) -> SimulatedPod:
    code = ""
    if verdict.outcome is PodOutcome.REFUSED:
        diagnosis = diagnose_verdict(verdict, ProvedChanges(), "", _NO_TIME)
        code = diagnosis.obstacle.code if diagnosis and diagnosis.obstacle else ""
    return SimulatedPod(
        namespace=get_text(verdict.pod, "metadata", "namespace"),
        name=get_text(verdict.pod, "metadata", "name"),
        node=verdict.node or (verdict.fitting[0] if verdict.fitting else None),
        uuids=[device.uuid for device in verdict.devices if device.is_picked],
        obstacle=code,
    )


def build_suggestions_of_verdict(
    verdict: PodVerdict, changes: ProvedChanges, cluster: str, now: datetime
) -> Suggestions | None:
    """Build the changes that were found for a judged pod; None if none are needed."""
    attempt = verdict.attempt
    if attempt is not None:
        answer = build_suggestions(attempt, "", now, changes.of_devices, changes.names, changes.unknown)
        items = sorted([*answer.items, *changes.of_nodes], key=lambda item: item.cost)
        nearest = describe_nearest(attempt) if verdict.outcome is PodOutcome.REFUSED else None
        return answer.model_copy(update={"items": items, "nearest": nearest})
    if verdict.outcome is not PodOutcome.REFUSED:
        return None
    return Suggestions(
        cluster=cluster,
        namespace=get_text(verdict.pod, "metadata", "namespace"),
        name=get_text(verdict.pod, "metadata", "name"),
        attempt="",
        as_of=format_rfc3339(now),
        state="refused",
        items=list(changes.of_nodes),
        excluded_by=[],
        not_known=[],
    )
