"""Parts of the answer: obstacles, devices of claims, steps and what is not known, worded in both languages."""

from collections.abc import Mapping, Sequence
from typing import Final

from engine.diagnosis import texts
from engine.diagnosis.facts import DiagnosisFacts, Evidence, Unknown
from engine.diagnosis.outcome import DevicesOfReason, FoundObstacle, TreeStep
from engine.diagnosis.vendor_words import find_requested_vendor, is_of_kai, write_for_kai, write_for_vendor
from engine.diagnosis.wording import get_requests
from schemas.answers.diagnosis import (
    ClaimDevice,
    ClaimDevices,
    DiagnosisEvidence,
    DiagnosisStep,
    NotKnown,
    Obstacle,
)
from schemas.codec.records import format_rfc3339

MAX_NODES: Final = 20
"""Limit of the nodes that an obstacle names."""


def to_obstacle(obstacle: FoundObstacle, facts: DiagnosisFacts) -> Obstacle:
    vendor = find_requested_vendor(get_requests(facts) or (), facts.vendors)
    remedy = write_for_vendor(texts.write_remedy(obstacle, facts.namespace, facts.name), vendor)
    names = {"<namespace>": facts.namespace, "<pod>": facts.name}
    for placeholder in ("claim", "class"):
        if word := obstacle.words.get(placeholder):
            names[f"<{placeholder}>"] = str(word)
    return Obstacle(
        code=obstacle.code,
        sentence=texts.write_sentence(obstacle),
        likely_cause=write_for_vendor(texts.write_likely_cause(obstacle), vendor),
        remedy=write_for_kai(remedy) if is_of_kai(facts) else remedy,
        who_acts=texts.list_actors(obstacle),
        numbers=dict(obstacle.numbers),
        nodes=list(obstacle.nodes[:MAX_NODES]),
        devices=[_to_claim_devices(of_reason, names) for of_reason in obstacle.devices],
        evidence=to_evidence(obstacle.evidence),
    )


def _to_claim_devices(devices: DevicesOfReason, names: Mapping[str, str]) -> ClaimDevices:
    return ClaimDevices(
        reason=devices.reason,
        meaning=texts.write_meaning(devices.reason),
        remedy=texts.write_catalogue_remedy(devices.reason, names),
        devices=devices.devices,
        examples=[
            ClaimDevice(device=example.device, node=example.node, text=example.text, devices=example.devices)
            for example in devices.examples
        ],
    )


def to_step(step: TreeStep) -> DiagnosisStep:
    return DiagnosisStep(
        step=step.question,
        question=texts.write_question(step.question),
        answer=step.answer,
        evidence=to_evidence(step.evidence),
        not_known=to_not_known(step.not_known),
    )


def to_evidence(sources: Sequence[Evidence]) -> list[DiagnosisEvidence]:
    return [
        DiagnosisEvidence(
            kind=evidence.kind,
            record=evidence.record,
            at=format_rfc3339(evidence.time) if evidence.time else None,
            reported_by=evidence.reported_by,
            numbers=dict(evidence.numbers),
            words=evidence.words,
        )
        for evidence in sources
    ]


def to_not_known(missing: Sequence[Unknown]) -> list[NotKnown]:
    return [NotKnown(subject=fact.subject, cause=fact.cause, text=texts.write_unknown(fact)) for fact in missing]
