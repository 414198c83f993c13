"""Questions about the pod itself: whether it exists, waits, is held back, and whether its node can start it."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from engine.diagnosis.facts import DiagnosisFacts, Evidence, OwnerProblem, PodOnCluster
from engine.diagnosis.layers.evictions import find_loss_of_missing
from engine.diagnosis.layers.gates import check_gates
from engine.diagnosis.layers.kubelet import check_node_took_it
from engine.diagnosis.outcome import FoundObstacle, TreeStep, Word
from engine.diagnosis.texts import write_phrase
from engine.diagnosis.wording import (
    describe_devices,
    join_phrases,
    quote,
    quote_cause,
    to_bind_evidence,
    to_existence_evidence,
)
from engine.hami.annotations import ASSIGNED_NODE
from engine.hami.quantities import parse_whole
from engine.snapshot import kinds
from schemas.answers.diagnosis import InBothLanguages
from schemas.events import ObjectProblem

ENDED: Final = frozenset(("Succeeded", "Failed"))
_RUNNING: Final = "Running"
_ENDS: Final = ("CrashLoopBackOff", "Error", "OOMKilled")
"""Reasons of a container that has run; tables have the last two in the place of the first."""
_NOT_STARTED: Final = ("RunContainerError", "CreateContainerError", "StartError", "ContainerCannotRun")
_RESTARTS: Final = re.compile(r"(?:started again \d+ times)?")
"""Words of a table about a container, which name no cause."""
_CONSEQUENCES: Final = ("BackOff", "Unhealthy", "ProbeWarning", "FailedSync")
"""Reasons of kubelet's warnings that follow from another problem."""
_FAILED: Final = "failed"
_START_FAILURES: Final = {
    "no runtime for ": "RuntimeNotConfigured",
    "driver/library version mismatch": "DriverMismatch",
    "unsatisfied condition: ": "ImageNeedsDriver",
    "no-gpu-has-": "GpuShareUnassigned",
    "nvidia-container-cli": "ToolkitFailed",
    "unresolvable CDI devices": "ToolkitFailed",
    "failed to inject CDI devices": "ToolkitFailed",
    "could not select device driver": "ToolkitFailed",
    "container-runtime: no such file or directory": "RuntimeMissing",
    'container-runtime": executable file not found': "RuntimeMissing",
    "FailedPostStartHook": "HookFailed",
    "ComputeDomain": "ComputeDomainNotReady",
    "FailedPrepareDynamicResources": "ClaimNotPrepared",
    **dict.fromkeys(
        ("ErrImagePull", "ImagePullBackOff", "Failed to pull image", "Back-off pulling image", "InvalidImageName"),
        "ImageNotPulled",
    ),
    "Multi-Attach error": "VolumeAttachedElsewhere",
    **dict.fromkeys((': secret "', ': configmap "'), "MountedObjectMissing"),
    **dict.fromkeys(("FailedMount", "FailedAttachVolume"), "VolumeNotMounted"),
}
"""Obstacle of a pod that its node can't start, by a part of the kubelet's reason and words."""
_VOLUME_WORDS: Final = (
    re.compile(r'for volume "(?P<volume>[^"]+)"[^"]*: (?P<kind>secret|configmap) "(?P<object>[^"]+)" not found'),
    re.compile(r'for volume "(?P<volume>[^"]+)" Volume is already used by pod\(s\) (?P<holder>[^\s,]+(?:, [^\s,]+)*)'),
    re.compile(r'for volume "(?P<volume>[^"]+)" Volume is already (?:exclusively attached|used by \d+ pod)'),
)
"""Words of the kubelet and the controller of attachments, which name the volume and what is in its way."""
_OF_VOLUMES: Final = {
    "MountedObjectMissing": {"volume", "kind", "object"},
    "VolumeAttachedElsewhere": {"volume", "holder"},
}
"""Words that the sentences of these obstacles need."""
_KINDS: Final = {"secret": "Secret", "configmap": "ConfigMap"}
_WAITED_IN_VAIN: Final = "timed out waiting for the condition"
"""Words of a kubelet that waits for another problem of the same volume to end."""
_EXCEEDED: Final = re.compile(r", requested: (?P<requested>\S+), used: (?P<used>\S+), limited: (?P<hard>[^\s\"]+)")
_REFUSED_BY: Final = {
    "violates PodSecurity": "PodSecurityRefused",
    "security context constraint": "SecurityContextRefused",
    "failed calling webhook": "WebhookUnreachable",
    " is invalid: ": "PodInvalid",
    "error looking up service account": "ServiceAccountMissing",
    "no PriorityClass with name": "PriorityClassMissing",
    'webhook "vgpu.hami.io" denied': "PodDeniedByHami",
    "denied the request: ": "PodDeniedByRule",
    "ValidatingAdmissionPolicy": "PodDeniedByRule",
    " usage per ": "LimitRangeBroken",
    " max limit to request ratio per ": "LimitRangeBroken",
}
"""Obstacle of a pod that the API server did not create, by a part of its words."""
_INVALID: Final = {
    "pod_level": re.compile(r"\bspec\.resources\.(?:limits|requests)\[[^\]]+/[^\]]+\]: Unsupported value"),
    "claim_source": re.compile(r"must specify one of: `resourceClaimName`"),
}
"""Words of the API server about a manifest that have a meaning of their own, by the clause that says it."""
MAX_EXCEEDED: Final = 3
_QUOTA: Final = "exceeded quota: "
"""Text that Kubernetes' admission of quotas writes before the quota's name."""


def answer_pod_questions(facts: DiagnosisFacts) -> Iterator[TreeStep]:
    pod = facts.pod
    yield _check_existence(facts)
    # A pod that its node refused has the phase Failed, as one that ran to its end.
    yield from check_node_took_it(facts)
    yield _check_waiting(facts)
    if pod and pod.node:
        yield _check_start(facts, pod)
    yield check_gates(facts)


def _check_existence(facts: DiagnosisFacts) -> TreeStep:
    pod, unknown = facts.pod, facts.select_unknown("pod", "owner")
    if pod is None and (loss := _find_late_loss(facts)):
        return TreeStep("PodExists", "no", loss.evidence, unknown, [loss], is_end=True)
    if pod is None and facts.attempt:
        return TreeStep("PodExists", "yes", [to_existence_evidence(facts.attempt)], unknown)
    if pod is None:
        return TreeStep("PodExists", "not known", (), unknown)
    if not pod.is_gone:
        return TreeStep("PodExists", "yes", [pod.source])
    names: dict[str, Word] = {"namespace": facts.namespace, "name": facts.name}
    obstacle = _explain_missing(facts, facts.owner_problem, names) if facts.owner_problem else None
    # Events outlive the pod by up to an hour.
    missing = obstacle or find_loss_of_missing(facts) or FoundObstacle("PodMissing", names, evidence=[pod.source])
    evidence = [pod.source, *((facts.owner_problem.source,) if facts.owner_problem else ())]
    return TreeStep("PodExists", "no", evidence, unknown, [missing], is_end=True)


def _find_late_loss(facts: DiagnosisFacts) -> FoundObstacle | None:
    """Find how a pod without an object lost its place after its latest attempt: an earlier one had the name before."""
    loss = find_loss_of_missing(facts)
    time = loss.evidence[0].time if loss and loss.evidence else None
    begun = facts.attempt.started_at.replace(microsecond=0) if facts.attempt else None
    return loss if loss and (begun is None or time is None or time >= begun) else None


def _explain_missing(facts: DiagnosisFacts, owner: OwnerProblem, names: dict[str, Word]) -> FoundObstacle:
    words: dict[str, Word] = names | {"workload": owner.workload, "words": quote(owner.problem.message)}
    _, is_quota, behind = owner.problem.message.partition(_QUOTA)
    if not is_quota:
        code = next((code for text, code in _REFUSED_BY.items() if text in owner.problem.message), "OwnerRefused")
        clauses = [name for name, pattern in _INVALID.items() if pattern.search(owner.problem.message)]
        return FoundObstacle(code, words, evidence=[owner.source], clauses=clauses if code == "PodInvalid" else [])
    quota = next((candidate for candidate in facts.quotas or () if behind.startswith(f"{candidate.name},")), None)
    # The obstacle names the resource of the quota with the largest used share.
    amounts = (
        [(parse_whole(quota.used.get(name, "0")) or 0, parse_whole(hard), name) for name, hard in quota.hard.items()]
        if quota
        else []
    )
    shares = [(used / hard, used, hard, name) for used, hard, name in amounts if hard]
    if not quota or not shares:
        exceeded = _list_exceeded(owner.problem.message)
        clauses = ["exceeded"] if exceeded else []
        words |= {"quota": behind.partition(",")[0], "exceeded": join_phrases(exceeded)}
        return FoundObstacle("QuotaExceeded", words, evidence=[owner.source], clauses=clauses)
    _, used, hard, name = max(shares)
    return FoundObstacle(
        "QuotaExceeded",
        words | {"resource": name, "used": used, "hard": hard},
        {f"{name}.used": used, f"{name}.hard": hard},
        evidence=[owner.source, quota.source],
        clauses=["amounts"],
    )


def _list_exceeded(message: str) -> list[InBothLanguages]:
    """List the resources that a quota's refusal names, each with the asked, the used and the largest amount."""
    match = _EXCEEDED.search(message)
    if match is None:
        return []
    requested, used, hard = (
        dict(part.partition("=")[::2] for part in match[name].split(",")) for name in ("requested", "used", "hard")
    )
    exceeded = [
        write_phrase("exceeded", resource=name, asked=amount, used=used[name], hard=hard[name])
        for name, amount in requested.items()
        if name in used and name in hard
    ]
    return exceeded[:MAX_EXCEEDED]


def _check_waiting(facts: DiagnosisFacts) -> TreeStep:
    pod, attempt = facts.pod, facts.attempt
    unknown = facts.select_unknown("pod", "observations")
    if pod and (pod.phase in ENDED or pod.is_being_deleted):
        return TreeStep("StillWaits", "no", [pod.source], is_end=True)
    if pod and pod.node:
        return TreeStep("StillWaits", "no", [pod.source])
    bind = attempt.bind if attempt and attempt.bind and attempt.bind.bound else None
    # An observation from before the bind does not show it.
    if attempt and bind and not (pod and pod.source.time and pod.source.time > bind.ended_at):
        return TreeStep("StillWaits", "no", to_bind_evidence(attempt), unknown, is_end=True)
    if pod:
        return TreeStep("StillWaits", "yes", [pod.source])
    return TreeStep(
        "StillWaits", "yes" if attempt else "not known", [to_existence_evidence(attempt)] if attempt else [], unknown
    )


def _find_latest_cause(problems: Sequence[ObjectProblem]) -> ObjectProblem:
    """Find the latest problem whose words name a cause; that a container is started again later names none."""
    causes = [entry for entry in problems if entry.reason not in _CONSEQUENCES]
    named = [entry for entry in causes if _WAITED_IN_VAIN not in entry.message]
    return max(named or causes or problems, key=lambda problem: problem.at)


def _find_start_failure(text: str) -> str:
    """Find the obstacle of a node that can't start the pod, by the kubelet's words."""
    return next((code for words, code in _START_FAILURES.items() if words in text), "KubeletRefused")


def _describe_volume(message: str) -> dict[str, Word]:
    """Describe the volume that can't be mounted or attached, and the object or the pod that is in its way."""
    match = next((match for pattern in _VOLUME_WORDS if (match := pattern.search(message))), None)
    if match is None:
        return {}
    words: dict[str, Word] = {"holder": write_phrase("another_pod"), **match.groupdict()}
    return words | {"kind": _KINDS[match["kind"]]} if "kind" in words else words


def _find_devices_elsewhere(pod: PodOnCluster) -> FoundObstacle | None:
    """Find that HAMi chose the pod's devices on another node than the one that it is on."""
    assigned = pod.annotations.get(ASSIGNED_NODE, "")
    if assigned in ("", pod.node):
        return None
    words: dict[str, Word] = {"node": pod.node, "assigned": assigned, "devices": describe_devices(pod.devices)}
    clauses = ["devices"] if pod.devices else []
    return FoundObstacle("DevicesElsewhere", words, nodes=[pod.node], evidence=[pod.source], clauses=clauses)


def _find_missing_node(facts: DiagnosisFacts, pod: PodOnCluster) -> FoundObstacle | None:
    """Find that the pod's node is not among the nodes that were read: no kubelet starts it."""
    objects = facts.objects
    if objects is None or not objects.has_read(kinds.NODE) or objects.find(kinds.NODE, pod.node):
        return None
    words: dict[str, Word] = {"node": pod.node, "count": len(objects.select(kinds.NODE))}
    return FoundObstacle("NodeNotThere", words, nodes=[pod.node], evidence=[pod.source])


def _check_start(facts: DiagnosisFacts, pod: PodOnCluster) -> TreeStep:
    words: dict[str, Word] = {"node": pod.node}
    findings = facts.findings
    if pod.phase not in ENDED and (elsewhere := _find_devices_elsewhere(pod)):
        return TreeStep("Starts", "no", [pod.source, *findings], (), [elsewhere], is_end=True)
    # A pod whose containers end again and again is Running for Kubernetes.
    if pod.phase in ENDED or (pod.phase == _RUNNING and not pod.problems):
        return TreeStep("Starts", "yes", [pod.source, *findings], facts.select_unknown("findings"), is_end=True)
    if pod.problems:
        latest = _find_latest_cause(pod.problems)
        text = f"{latest.reason}: {latest.message}" if latest.message else latest.reason
        evidence = Evidence("pod", pod.source.record, latest.at, latest.reported_by, words=text)
        cause = f": {quote_cause(latest.message)}" if latest.message else ""
        words |= {"words": f"{latest.reason}{cause}", "namespace": facts.namespace, "name": facts.name}
        code = "ContainerEnds" if pod.has_run and latest.reason in _ENDS else _find_start_failure(text)
        if latest.reason in _NOT_STARTED and _RESTARTS.fullmatch(latest.message):
            code = "ContainerNotStarted"
        words |= _describe_volume(latest.message)
        if code in _OF_VOLUMES and not words.keys() >= _OF_VOLUMES[code]:
            code = "VolumeNotMounted"
        obstacle = FoundObstacle(code, words, nodes=[pod.node], evidence=[evidence])
        return TreeStep("Starts", "no", [evidence, *findings], (), [obstacle], is_end=True)
    if pod.bind_phase == _FAILED:
        obstacle = FoundObstacle("AllocationFailed", words, nodes=[pod.node], evidence=[pod.source])
        return TreeStep("Starts", "no", [pod.source, *findings], (), [obstacle], is_end=True)
    if missing := _find_missing_node(facts, pod):
        return TreeStep("Starts", "no", [pod.source, *findings], (), [missing], is_end=True)
    return TreeStep("Starts", "not known", [pod.source, *findings], facts.select_unknown("events"), is_end=True)
