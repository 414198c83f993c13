"""ResourceClaims of the pod: missing, not made from their template, of a class that does not exist, or held elsewhere.

kube-scheduler does not try a pod with a missing claim, and writes neither an event nor a condition for it
(DynamicResources, PreEnqueue). The controller ``resource_claim`` makes claims from templates, and reports its failures
on the pod.
"""

import difflib
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from engine.diagnosis.facts import DiagnosisFacts, Evidence
from engine.diagnosis.layers.statements import Statement, find_refusal, iterate_events
from engine.diagnosis.outcome import FoundObstacle, TreeStep, Word, to_answer
from engine.diagnosis.wording import quote, shorten_list
from engine.snapshot import kinds
from runtime.kubernetes.object_fields import Fields, get_object, get_text, iterate_objects

if TYPE_CHECKING:
    from engine.snapshot.case_objects import CaseObjects

QUESTION: Final = "DeviceClaimsReady"
ELSEWHERE: Final = "DeviceClaimElsewhere"
_DRA_KINDS: Final = (
    kinds.RESOURCE_CLAIM, kinds.CLAIM_TEMPLATE, kinds.RESOURCE_SLICE, kinds.DEVICE_CLASS,
)  # fmt: skip
_NOT_MADE: Final = "FailedResourceClaimCreation"
_NO_TEMPLATE: Final = re.compile(r"resourceclaimtemplates?(?:\.resource\.k8s\.io)? \"(?P<template>[^\"]+)\" not found")
_NO_CLASS: Final = re.compile(r"request (?P<request>\S+): device class (?P<class>\S+) does not exist")
_IN_USE: Final = re.compile(r"nodes are available: resourceclaim in use|^resourceclaim in use")
_ELSEWHERE: Final = re.compile(r"(?P<refused>\d+) resourceclaim not available on the node")
_BROKEN: Final = re.compile(
    r"claim (?P<claim>\S+): (?P<words>(?:selector|request|device)\b.*(?:CEL|expression|no such key).*)"
)
_AWAITED: Final = re.compile(
    r"waiting for dynamic resource controller to create the resourceclaim \"(?P<claim>[^\"]+)\""
)
"""Words of kube-scheduler 1.26 and 1.27."""
_CLAIM_DOES_NOT_EXIST: Final = re.compile(r"resourceclaim(?:\.resource\.k8s\.io)? \"(?P<claim>[^\"]+)\" not found")


def check_device_claims(facts: DiagnosisFacts) -> Iterator[TreeStep]:
    """Check the claims by their objects, and by what the scheduler and the claims' controller wrote."""
    requests = list(iterate_objects(facts.pod.spec, "resourceClaims")) if facts.pod and facts.pod.spec else []
    refusal = find_refusal(facts)
    obstacles = _merge([*_list_worded(facts, refusal), *_list_missing(facts, requests, refusal)])
    if requests or obstacles:
        answer = to_answer(False if obstacles else True if _has_read(facts.objects) else None)
        evidence = [source for obstacle in obstacles for source in obstacle.evidence]
        yield TreeStep(QUESTION, answer, evidence or _get_sources(facts), (), obstacles)


def _merge(obstacles: list[FoundObstacle]) -> list[FoundObstacle]:
    return list({obstacle.code: obstacle for obstacle in reversed(obstacles)}.values())[::-1]


def _get_sources(facts: DiagnosisFacts) -> list[Evidence]:
    return [facts.pod.source] if facts.pod else []


def _has_read(objects: "CaseObjects | None") -> bool:
    """Tell whether objects of resource.k8s.io were read: then one that is absent does not exist."""
    return objects is not None and any(objects.has_read(kind) for kind in _DRA_KINDS)


def _list_missing(facts: DiagnosisFacts, requests: list[Fields], refusal: Statement | None) -> Iterator[FoundObstacle]:
    objects = facts.objects
    if objects is None or not facts.is_latest:
        return
    for request in requests:
        name, template = get_text(request, "resourceClaimName"), get_text(request, "resourceClaimTemplateName")
        claim = objects.find(kinds.RESOURCE_CLAIM, name, facts.namespace) if name else None
        is_certain = kinds.RESOURCE_CLAIM not in objects.unread and (_has_read(objects) or refusal is None)
        if name and claim is None and is_certain:
            yield _describe_missing(facts, name)
        elif claim:
            yield from _list_claim_obstacles(facts, objects, name, claim)
        elif template and _is_template_missing(facts, objects, template, get_text(request, "name")):
            yield _describe_template(facts, template, _get_sources(facts))


def _is_template_missing(facts: DiagnosisFacts, objects: "CaseObjects", template: str, request: str) -> bool:
    """Tell whether no claim was made yet from a template that does not exist."""
    if kinds.CLAIM_TEMPLATE in objects.unread or not _has_read(objects) or _is_made(facts, request):
        return False
    return objects.find(kinds.CLAIM_TEMPLATE, template, facts.namespace) is None


def _describe_missing(facts: DiagnosisFacts, name: str) -> FoundObstacle:
    objects = facts.objects
    names = (
        [get_text(claim, "metadata", "name") for claim in objects.select(kinds.RESOURCE_CLAIM, facts.namespace)]
        if objects
        else []
    )
    near = difflib.get_close_matches(name, names)
    clauses = [*(["near"] if near else []), *([] if _has_read(objects) else ["unread"])]
    words: dict[str, Word] = {"claim": name, "namespace": facts.namespace, "near": shorten_list(near)}
    return FoundObstacle("DeviceClaimMissing", words, evidence=_get_sources(facts), clauses=clauses)


def _describe_template(facts: DiagnosisFacts, template: str, evidence: list[Evidence]) -> FoundObstacle:
    objects = facts.objects
    entries_ = objects.select(kinds.CLAIM_TEMPLATE, facts.namespace) if objects else []
    near = difflib.get_close_matches(template, [get_text(entry, "metadata", "name") for entry in entries_])
    words: dict[str, Word] = {"template": template, "namespace": facts.namespace, "near": shorten_list(near)}
    return FoundObstacle("ClaimTemplateMissing", words, evidence=evidence, clauses=["near"] if near else [])


def _is_made(facts: DiagnosisFacts, request: str) -> bool:
    """Tell whether the pod's status names the claim that was made for it."""
    pod = facts.objects.find(kinds.POD, facts.name, facts.namespace) if facts.objects else None
    return any(get_text(entry, "name") == request for entry in iterate_objects(pod, "status", "resourceClaimStatuses"))


def _list_claim_obstacles(
    facts: DiagnosisFacts, objects: "CaseObjects", name: str, claim: Fields
) -> Iterator[FoundObstacle]:
    """List what a claim that exists asks for in vain: classes that are missing."""
    if get_object(claim, "status", "allocation") or not objects.has_read(kinds.DEVICE_CLASS):
        return
    for request in iterate_objects(claim, "spec", "devices", "requests"):
        alternatives = [get_object(request, "exactly") or request, *iterate_objects(request, "firstAvailable")]
        classes = [label for entry in alternatives if (label := get_text(entry, "deviceClassName"))]
        missing = [label for label in classes if objects.find(kinds.DEVICE_CLASS, label) is None]
        if missing and len(missing) == len(classes):
            yield _describe_class(facts, missing[0], name, get_text(request, "name"), _get_sources(facts))


def _describe_class(
    facts: DiagnosisFacts, name: str, claim: str, request: str, evidence: list[Evidence]
) -> FoundObstacle:
    objects = facts.objects
    classes = sorted(
        get_text(entry, "metadata", "name") for entry in (objects.select(kinds.DEVICE_CLASS) if objects else ())
    )
    near = difflib.get_close_matches(name, classes, cutoff=0.4) or classes
    words: dict[str, Word] = {"class": name, "claim": claim, "request": request, "near": shorten_list(near)}
    clauses = [*(["claim"] if claim else []), *(["near"] if near else [])]
    return FoundObstacle("DeviceClassMissing", words, evidence=evidence, clauses=clauses)


def _list_worded(facts: DiagnosisFacts, refusal: Statement | None) -> Iterator[FoundObstacle]:
    if event := next(iterate_events(facts, _NOT_MADE), None) if refusal is None else None:
        yield _describe_failure(facts, event)
    if refusal is None:
        return
    words, evidence = refusal.text, [refusal.evidence]
    if match := _NO_CLASS.search(words):
        claim = _find_claim_of_class(facts, match["class"])
        yield _describe_class(facts, match["class"], claim, match["request"], evidence)
    elif match := _CLAIM_DOES_NOT_EXIST.search(words):
        yield _describe_missing(facts, match["claim"])._replace(evidence=evidence, clauses=[])
    elif match := _BROKEN.search(words):
        yield FoundObstacle(
            "DeviceSelectorFails", {"claim": match["claim"], "words": quote(match["words"])}, evidence=evidence
        )
    elif match := _AWAITED.search(words):
        yield FoundObstacle("ClaimAwaited", {"claim": match["claim"], "namespace": facts.namespace}, evidence=evidence)
    elif _IN_USE.search(words):
        yield _describe_reserved(facts, evidence)
    elif match := _ELSEWHERE.search(words):
        yield from _describe_elsewhere(facts, int(match["refused"][:9]), evidence)


def _describe_failure(facts: DiagnosisFacts, event: Statement) -> FoundObstacle:
    """Describe the claims' controller's failure to make a claim."""
    if match := _NO_TEMPLATE.search(event.text):
        return _describe_template(facts, match["template"], [event.evidence])
    return FoundObstacle("DeviceClaimNotMade", {"words": quote(event.text)}, evidence=[event.evidence])


def iterate_claims(facts: DiagnosisFacts) -> Iterator[tuple[str, Fields]]:
    """Iterate over the pod's claims that were read, by name."""
    objects, pod = facts.objects, facts.pod
    if objects is None or pod is None:
        return
    pod_object = objects.find(kinds.POD, facts.name, facts.namespace)
    claim_names = {
        get_text(entry, "name"): get_text(entry, "resourceClaimName")
        for entry in iterate_objects(pod_object, "status", "resourceClaimStatuses")
    }
    for request in iterate_objects(pod.spec, "resourceClaims"):
        name = get_text(request, "resourceClaimName") or claim_names.get(get_text(request, "name"), "")
        if claim := objects.find(kinds.RESOURCE_CLAIM, name, facts.namespace):
            yield name, claim


def _find_claim_of_class(facts: DiagnosisFacts, name: str) -> str:
    for claim_name, claim in iterate_claims(facts):
        for request in iterate_objects(claim, "spec", "devices", "requests"):
            if name in (get_text(request, "deviceClassName"), get_text(request, "exactly", "deviceClassName")):
                return claim_name
    return ""


def _describe_reserved(facts: DiagnosisFacts, evidence: list[Evidence]) -> FoundObstacle:
    """Describe a claim that as many pods use as may use it."""
    users = {
        name: [get_text(user, "name") for user in iterate_objects(claim, "status", "reservedFor")]
        for name, claim in iterate_claims(facts)
    }
    names = [user for listed in users.values() for user in listed if user != facts.name]
    words: dict[str, Word] = {"claims": shorten_list(list(users)), "users": shorten_list(names)}
    clauses = [*(["claims"] if users else []), *(["users"] if names else [])]
    return FoundObstacle("DeviceClaimReserved", words, evidence=evidence, clauses=clauses)


def _describe_elsewhere(facts: DiagnosisFacts, refused: int, evidence: list[Evidence]) -> Iterator[FoundObstacle]:
    """Describe a claim whose devices are allocated on a node where the pod finds no room."""
    for name, claim in iterate_claims(facts):
        devices = [
            f"{get_text(result, 'device')} of pool {get_text(result, 'pool')}"
            for result in iterate_objects(claim, "status", "allocation", "devices", "results")
        ]
        if devices:
            words: dict[str, Word] = {"claim": name, "devices": shorten_list(devices), "refused": refused}
            yield FoundObstacle(ELSEWHERE, words, {"nodes": refused}, evidence=evidence)
