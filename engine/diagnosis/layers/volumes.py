"""PersistentVolumeClaims of the pod: missing, being deleted, without a volume, or with a volume that is out of reach.

kube-scheduler looks at no node before the claims are in order; its texts (plugins VolumeBinding and VolumeZone) name
the claim. Where the objects were read, they say more: the volume, the finalizers, the pods that still use the claim.
"""

import difflib
import re
from collections.abc import Iterator, Sequence
from typing import Final

from engine.diagnosis.cluster_steps import find_closed_nodes
from engine.diagnosis.facts import Claim, DiagnosisFacts, Evidence
from engine.diagnosis.layers.statements import Statement, find_refusal
from engine.diagnosis.outcome import FoundObstacle, TreeStep, Word, to_answer
from engine.diagnosis.texts import write_phrase
from engine.diagnosis.wording import NOTHING, describe_share, enumerate_names, join_phrases, quote, shorten_list
from engine.snapshot import kinds
from engine.snapshot.case_objects import list_claim_names
from runtime.kubernetes.object_fields import Fields, get_object, get_text, iterate_objects
from schemas.answers.diagnosis import InBothLanguages

QUESTION: Final = "ClaimsReady"
OUT_OF_REACH: Final = "VolumeOutOfReach"
NOT_AVAILABLE: Final = "NoVolumeForClaim"
_NOT_MADE: Final = "ClaimNotMade"
_ENDED: Final = ("Succeeded", "Failed")
_CLAIM: Final = r"persistentvolumeclaim \"(?P<claim>[^\"]+)\" "
_WORDS: Final = (
    (re.compile(_CLAIM + r"is being deleted"), "ClaimDeleted"),
    (re.compile(_CLAIM + r"bound to non-existent persistentvolume \"(?P<volume>[^\"]+)\""), "ClaimLost"),
    (re.compile(_CLAIM + r"not found"), "ClaimMissing"),
    (re.compile(r"waiting for ephemeral volume controller to create the " + _CLAIM.rstrip()), _NOT_MADE),
)
_CONFLICT: Final = re.compile(
    r"(?P<refused>\d+) node\(s\) (?:didn't match PersistentVolume's node affinity|had volume node affinity conflict|"
    r"had no available volume zone)"
)
_NOT_AVAILABLE: Final = re.compile(r"(?P<refused>\d+) node\(s\) didn't find available persistent volumes to bind")
_NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
_TOTAL: Final = re.compile(r"\d+/(?P<total>\d+) nodes are available")


def check_claims(facts: DiagnosisFacts) -> Iterator[TreeStep]:
    """Check the claims that the pod names; without their objects, what the scheduler wrote about them."""
    refusal = find_refusal(facts)
    # Objects are younger than the scheduler's words.
    is_read = facts.is_latest and facts.claims is not None
    obstacles = list(_list_claim_obstacles(facts, refusal) if is_read else _list_worded_obstacles(facts, refusal))
    if reach := _find_unreachable(facts, refusal) or _find_unavailable(facts, refusal):
        obstacles.append(reach)
    if facts.claims is None:
        if obstacles or (facts.is_latest and facts.attempt is None):
            answer = to_answer(False if obstacles else None)
            sources = [source for obstacle in obstacles for source in obstacle.evidence]
            yield TreeStep(QUESTION, answer, sources, facts.select_unknown("claims"), _drop_repeated(obstacles))
        return
    if not facts.claims and not obstacles and facts.attempt:
        return
    evidence = [
        Evidence(claim.source.kind, claim.source.record, claim.source.time, words=claim.phase or "not found")
        for claim in facts.claims
    ]
    yield TreeStep(
        QUESTION, to_answer(not obstacles), evidence, facts.select_unknown("claims"), _drop_repeated(obstacles)
    )


def _drop_repeated(obstacles: Sequence[FoundObstacle]) -> list[FoundObstacle]:
    """Keep the first obstacle of each claim: the objects say more than the scheduler's words."""
    first: dict[Word, FoundObstacle] = {}
    for obstacle in obstacles:
        first.setdefault(obstacle.words.get("claim", obstacle.code), obstacle)
    return list(first.values())


def _list_claim_obstacles(facts: DiagnosisFacts, refusal: Statement | None) -> Iterator[FoundObstacle]:
    worded = {(obstacle.code, obstacle.words["claim"]) for obstacle in _list_worded_obstacles(facts, refusal)}
    for claim in facts.claims or ():
        words: dict[str, Word] = {"namespace": facts.namespace, "claim": claim.name, "phase": claim.phase}
        if not claim.phase and (_NOT_MADE, claim.name) in worded:
            yield FoundObstacle(_NOT_MADE, words, evidence=[claim.source])
        elif not claim.phase:
            yield _describe_missing(facts, claim, words)
        elif claim.deleted_at:
            yield _describe_deleted(facts, claim, words)
        elif claim.phase == "Lost":
            volume = claim.volume or "?"
            yield FoundObstacle("ClaimLost", words | {"volume": volume}, evidence=[claim.source])
        elif claim.phase == "Pending" and (failure := _find_failure(facts, claim)):
            words |= {"words": quote(failure.text)}
            evidence = [claim.source, failure.evidence]
            yield FoundObstacle("ClaimUnbound", words, evidence=evidence, clauses=["claim", "words"])
        # A claim that waits for its pod to be scheduled is no obstacle, and a claim of an unknown class may wait too.
        elif claim.phase == "Pending" and claim.waits_for_pod is False:
            yield FoundObstacle("ClaimUnbound", words, evidence=[claim.source], clauses=["claim"])


def _find_failure(facts: DiagnosisFacts, claim: Claim) -> Statement | None:
    """Find the latest words of a provisioner that could not make the claim's volume."""
    if facts.objects is None:
        return None
    for event in facts.objects.select_events(kinds.VOLUME_CLAIM, claim.name, facts.namespace):
        if event.reason == "ProvisioningFailed":
            source = Evidence("event", claim.source.record, event.time, event.reporter, words=event.note)
            return Statement(event.note, source, event.reason)
    return None


def _describe_missing(facts: DiagnosisFacts, claim: Claim, words: dict[str, Word]) -> FoundObstacle:
    namesakes = facts.objects.select(kinds.VOLUME_CLAIM, facts.namespace) if facts.objects else []
    names = difflib.get_close_matches(claim.name, [get_text(entry, "metadata", "name") for entry in namesakes])
    clauses = ["claim", *(["near"] if names else [])]
    return FoundObstacle(
        "ClaimMissing", words | {"near": shorten_list(names)}, evidence=[claim.source], clauses=clauses
    )


def _describe_deleted(facts: DiagnosisFacts, claim: Claim, words: dict[str, Word]) -> FoundObstacle:
    users = [
        get_text(pod, "metadata", "name")
        for pod in (facts.objects.select(kinds.POD, facts.namespace) if facts.objects else ())
        if claim.name in list_claim_names(pod)
        and get_text(pod, "metadata", "name") != facts.name
        and get_text(pod, "status", "phase") not in _ENDED
    ]
    more: dict[str, Word] = {
        "finalizers": shorten_list(claim.finalizers),
        "users": shorten_list(users),
        "since": claim.deleted_at.strftime("%Y-%m-%d %H:%M:%S UTC") if claim.deleted_at else "",
    }
    clauses = ["since", *(["finalizers"] if claim.finalizers else []), *(["users"] if users else [])]
    return FoundObstacle("ClaimDeleted", words | more, evidence=[claim.source], clauses=clauses)


def _list_worded_obstacles(facts: DiagnosisFacts, refusal: Statement | None) -> Iterator[FoundObstacle]:
    for pattern, code in _WORDS:
        if refusal and (match := pattern.search(refusal.text)):
            words: dict[str, Word] = {"namespace": facts.namespace, **match.groupdict()}
            clauses = ["claim"] if code == "ClaimMissing" else []
            yield FoundObstacle(code, words, evidence=[refusal.evidence], clauses=clauses)


def _find_unreachable(facts: DiagnosisFacts, refusal: Statement | None) -> FoundObstacle | None:
    """Find bound volumes that the nodes which the pod may use can't reach."""
    match = _CONFLICT.search(refusal.text) if refusal else None
    if match is None or refusal is None:
        return None
    total = _TOTAL.search(refusal.text)
    refused = int(match["refused"][:9])
    node_count = max(int(total["total"][:9]) if total else 0, refused)
    bound = [claim for claim in facts.claims or () if claim.volume]
    nodes = _list_open_nodes(facts)
    if not bound and not nodes:
        # The scheduler's count says as much.
        return None
    volumes = [_describe_volume(facts, claim) for claim in bound]
    at_once = [claim.name for claim in bound if claim.waits_for_pod is False]
    words: dict[str, Word] = {
        "refused": refused,
        "share": describe_share(refused, node_count, NOTHING),
        "volumes": join_phrases(volumes),
        "nodes": shorten_list(nodes),
        "at_once": shorten_list(at_once),
    }
    clauses = [name for name, is_known in (("volumes", volumes), ("nodes", nodes), ("at_once", at_once)) if is_known]
    evidence = [refusal.evidence, *(claim.source for claim in bound)]
    numbers = {"nodes": refused, "of_nodes": node_count}
    return FoundObstacle(OUT_OF_REACH, words, numbers, nodes, refused, evidence, clauses)


def _find_unavailable(facts: DiagnosisFacts, refusal: Statement | None) -> FoundObstacle | None:
    """Find a claim that waits for its pod, and for which no node has a volume: its class makes none by itself."""
    match = _NOT_AVAILABLE.search(refusal.text) if refusal else None
    unbound = [claim for claim in facts.claims or () if claim.phase == "Pending" and claim.waits_for_pod]
    if match is None or refusal is None or not unbound:
        return None
    claim, refused = unbound[0], int(match["refused"][:9])
    entry = facts.objects.find(kinds.VOLUME_CLAIM, claim.name, facts.namespace) if facts.objects else None
    name = get_text(entry, "spec", "storageClassName")
    storage_class = facts.objects.find(kinds.STORAGE_CLASS, name) if facts.objects else None
    words: dict[str, Word] = {
        "claim": claim.name,
        "class": name or "?",
        "size": str(get_object(entry, "spec", "resources", "requests").get("storage", "?")),
        "refused": refused,
        "namespace": facts.namespace,
    }
    clauses = ["static"] if get_text(storage_class, "provisioner") == _NO_PROVISIONER else []
    evidence = [refusal.evidence, claim.source]
    return FoundObstacle(NOT_AVAILABLE, words, {"nodes": refused}, (), refused, evidence, clauses)


def _list_open_nodes(facts: DiagnosisFacts) -> list[str]:
    """List the nodes that cordon, taints and selector leave to the pod; empty if they are not known or all."""
    closed = find_closed_nodes(facts)
    names = [state.name for state in facts.nodes or () if state.node is not None and state.name not in closed]
    return sorted(names) if closed else []


def _describe_volume(facts: DiagnosisFacts, claim: Claim) -> InBothLanguages:
    """Describe a claim's volume, with the labels of the nodes on which it may be used."""
    volume = facts.objects.find(kinds.VOLUME, claim.volume) if facts.objects else None
    terms = [text for term in _iterate_terms(volume) if (text := _describe_term(term))] if volume else []
    words: dict[str, Word] = {"volume": claim.volume, "claim": claim.name}
    if not terms:
        return write_phrase("volume_of_claim", **words)
    return write_phrase("volume_of_nodes", labels=enumerate_names(terms, "or"), **words)


def _iterate_terms(volume: Fields) -> Iterator[Fields]:
    return iterate_objects(volume, "spec", "nodeAffinity", "required", "nodeSelectorTerms")


def _describe_term(term: Fields) -> str:
    return " and ".join(map(_describe_expression, iterate_objects(term, "matchExpressions")))


def _describe_expression(expression: Fields) -> str:
    values = get_object(expression).get("values")
    listed = ", ".join(map(str, values)) if isinstance(values, list) else ""
    return f"{get_text(expression, 'key')} {get_text(expression, 'operator')} {listed}".strip()
