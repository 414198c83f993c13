"""Refusals of the kubelet: pods that their node did not admit, or evicted. Nobody tries such a pod again.

A kubelet that does not admit a pod sets its phase to Failed, with a reason and a message in its status, and starts no
container. The texts are those of kubelet/lifecycle, cm/devicemanager and eviction in Kubernetes.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Final

from engine.device_parts.volcano import ASSIGNED
from engine.diagnosis.facts import DiagnosisFacts, Evidence, PodOnCluster
from engine.diagnosis.layers.evictions import describe_next_pod, find_loss, find_loss_of_missing
from engine.diagnosis.outcome import FoundObstacle, TreeStep, Word
from engine.diagnosis.texts import write_phrase
from engine.diagnosis.wording import NOTHING, quote, shorten_list
from engine.hami.annotations import ASSIGNED_NODE
from engine.snapshot.quantity import format_amount
from runtime.kubernetes.object_fields import get_object, get_text, iterate_objects

QUESTION: Final = "TakenByNode"
_FAILED: Final = "Failed"
_ENDS: Final = ("DeadlineExceeded",)
"""Reasons of pods that a controller ended in order."""
_YUNIKORN: Final = "Application"
"""Beginning of the reasons that YuniKorn writes when it gives an application up."""
_EVICTIONS: Final = ("Evicted", "Preempting", "Terminated", "NodeShutdown", "Shutdown", "NodeLost")
"""Reasons of pods that may have run."""
NODE_NAMED_BY: Final = "nodeNamedBy"
"""Field of the spec of a manifest whose node a person has written; no stored pod has it."""
_KUBELET: Final = "kubelet"
_DEFAULT_SCHEDULER: Final = "default-scheduler"
_LACKS: Final = "KubeletLacksDevices"
_TOPOLOGY: Final = "TopologyAffinityError"
_UNEXPECTED: Final = "UnexpectedAdmissionError"
_ADMISSION: Final = (_UNEXPECTED, _TOPOLOGY, "SMTAlignmentError", "NodeAffinity")
"""Reasons of events about pods that the kubelet did not admit."""
_OUT: Final = "OutOf"
_SAME_MOMENT: Final = timedelta(seconds=5)
"""Difference between times that people's tables of events round."""
_PREFIX: Final = "Pod was rejected: "
_CHOICE_MATTERS: Final = frozenset(
    (
        _LACKS, "KubeletUnhealthyDevices", "KubeletPluginUnbound", "KubeletPluginFailed", "KubeletVgpuUnbound",
        "KubeletOutOfResource", "KubeletOffersNone", "KubeletUnregistered", "KubeletRefusedPod", "KubeletTopology",
        "KubeletLacksCores", "KubeletWordsMissing",
    )
)  # fmt: skip
"""Obstacles that may come from a scheduler that does not count what runs on the node."""

ALLOCATION_FAILED: Final = r"(?:Allocate|(?:Pod )?Update plugin resources) failed due to"
"""Words of the kubelet around those of a device plugin: as the admission of devices, or of the resources that a
scheduler counts (`Update plugin resources`), in which the devices are allocated where Topology Manager is off."""
_DEVICES: Final = re.compile(
    r"requested number of devices unavailable for (?P<resource>\S+)\. "
    r"Requested: (?P<asked>\d+), Available: (?P<free>\d+)"
)
_UNHEALTHY: Final = re.compile(r"cannot allocate unhealthy devices (?P<resource>[^\s,]+)")
_UNREGISTERED: Final = re.compile(r"can(?:'t|not) allocate unregistered device (?P<resource>[^\s,]+)")
_UNBOUND: Final = re.compile(
    r"no binding pod found on node|binding pod not found|no pod (?:is )?in (?:phase )?allocating"
)
_VGPU_UNBOUND: Final = re.compile(r"no pending pod found on node")
_PLUGIN: Final = re.compile(
    # Plugins of other vendors leave the space out.
    rf"{ALLOCATION_FAILED} ?(?:rpc error: code = \w+ desc = )?(?P<words>.*?)(?:, which is unexpected\.?)?$"
)
_SHARED: Final = re.compile(
    r"request for \"(?P<resource>[^\"]+)\": .*maximum request size for shared resources is (?P<most>\d+); "
    r"found (?P<asked>\d+)"
)
_LOST: Final = re.compile(
    rf"{ALLOCATION_FAILED} (?P<words>.*(?:GPU is lost|GPU_IS_LOST|fallen off the bus|device handle for GPU).*?)"
    r"(?:, which is unexpected\.?)?$"
)
_OUT_OF: Final = re.compile(
    r"Node didn't have enough resource: (?P<resource>[^\s,]+), requested: (?P<asked>\d+), used: (?P<used>\d+), "
    r"capacity: (?P<capacity>\d+)"
)
_LOCALITY: Final = re.compile(r"Resources cannot be allocated with Topology locality")
_UNALIGNED: Final = re.compile(r"requested (?P<asked>\d+) cpus not multiple cpus per core = (?P<per_core>\d+)")
_CORES: Final = re.compile(
    r"not enough free physical CPUs: available physical CPUs = (?P<free>\d+), requested CPUs = (?P<asked>\d+), "
    r"CPUs per core = (?P<per_core>\d+)"
)
_LOW: Final = re.compile(
    r"The node was low on resource: (?P<resource>[^.]+)\.(?: Threshold quantity: (?P<threshold>[^,]+), "
    r"available: (?P<available>[^\s,]+)\.)?"
)
_CONSUMER: Final = re.compile(r"Container (?P<container>\S+) was using (?P<used>[^,]+), request is (?P<request>[^,]+),")
_LIMIT: Final = re.compile(
    r"(?:exceeded its local ephemeral storage limit|exceeds the total limit of containers|exceeds the limit) \"?"
    r"(?P<limit>[0-9][0-9A-Za-z.]*)"
)


def check_node_took_it(facts: DiagnosisFacts) -> Iterator[TreeStep]:
    """Check whether the pod's node refused or evicted it, or another pod took its place."""
    pod = facts.pod
    if pod is None:
        obstacle = find_loss_of_missing(facts) or _find_refusal_of_missing(facts)
    else:
        obstacle = _find_refusal(facts, pod) or find_loss(facts, pod)
    if obstacle:
        yield TreeStep(QUESTION, "no", obstacle.evidence, (), [obstacle], is_end=True)


def _find_refusal_of_missing(facts: DiagnosisFacts) -> FoundObstacle | None:
    """Find the kubelet's refusal of a pod of which only events are left."""
    event = next((event for event in facts.events or () if _is_admission(event)), None)
    attempt = facts.attempt
    if event is None or (attempt and event.time and event.time < attempt.started_at - _SAME_MOMENT):
        return None
    reason, _, message = event.words.partition(": ")
    node = (attempt.chosen or (attempt.bind.node if attempt.bind else "")) if attempt else ""
    scheduler = attempt.scheduler if attempt else ""
    pod = PodOnCluster(event, phase=_FAILED, node=node or "", reason=reason, message=message, scheduler=scheduler)
    obstacle = _find_refusal(facts, pod)
    if obstacle is None:
        return None
    # Nobody has seen the pod's annotations.
    clauses = [clause for clause in obstacle.clauses if clause != "unmarked"]
    return obstacle._replace(words={**obstacle.words, "again": write_phrase("again_if_owned")}, clauses=clauses)


def _is_admission(event: Evidence) -> bool:
    reason = event.words.partition(": ")[0]
    return event.reported_by == _KUBELET and (reason in _ADMISSION or reason.startswith(_OUT))


def _find_refusal(facts: DiagnosisFacts, pod: PodOnCluster) -> FoundObstacle | None:
    if pod.phase != _FAILED or pod.is_gone:
        return None
    reason, message, evidence = _get_reason(pod)
    if not reason or reason in _ENDS or (pod.has_run and reason not in _EVICTIONS):
        return None
    # A pod that ran to its end has a reason only if it was evicted.
    words = message.removeprefix(_PREFIX)
    code, details, clauses = _explain(reason, words, pod)
    if code == _LACKS and (shares := _list_unbooked(facts, pod)):
        code, details = "KubeletShareUnbooked", {**details, "shares": shorten_list(shares)}
    common: dict[str, Word] = {
        "node": pod.node or "?",
        "reason": reason,
        "words": quote(f"{reason}: {words}" if words else reason),
        "again": describe_next_pod(pod),
        "namespace": facts.namespace,
        "name": facts.name,
    }
    choice, chooser = _describe_choice(facts, pod)
    numbers = {name: int(value) for name, value in details.items() if isinstance(value, str) and value.isdecimal()}
    return FoundObstacle(
        code,
        {**common, **chooser, **details},
        numbers,
        [pod.node] if pod.node else (),
        evidence=[evidence],
        clauses=[*clauses, *(choice if code in _CHOICE_MATTERS else ())],
    )


def _list_unbooked(facts: DiagnosisFacts, pod: PodOnCluster) -> list[str]:
    """List the shares of devices that a pod asks for which Kubernetes' own scheduler has placed."""
    from engine.hami.vendor_catalog import is_share_resource

    if _find_chooser(facts) != _DEFAULT_SCHEDULER:
        return []
    limits = [get_object(container, "resources", "limits") for container in iterate_objects(pod.spec, "containers")]
    return sorted({name for amounts in limits for name in amounts if is_share_resource(name)})


def _get_reason(pod: PodOnCluster) -> tuple[str, str, Evidence]:
    """Get the reason and the message of the status, or of the kubelet's latest event."""
    if pod.reason:
        return pod.reason, pod.message, pod.source._replace(words=f"{pod.reason}: {pod.message}")
    if not pod.problems or pod.has_run:
        return "", "", pod.source
    latest = max(pod.problems, key=lambda problem: problem.at)
    words = f"{latest.reason}: {latest.message}"
    return latest.reason, latest.message, Evidence("pod", pod.source.record, latest.at, latest.reported_by, words=words)


def _describe_choice(facts: DiagnosisFacts, pod: PodOnCluster) -> tuple[list[str], dict[str, Word]]:
    """Describe who chose the node: the reporter of the event Scheduled, or the scheduler that bound the pod."""
    if chooser := _find_chooser(facts):
        return ["chosen"], {"chooser": chooser}
    return (["by_hand"] if get_text(pod.spec, NODE_NAMED_BY) else []), {}


def _find_chooser(facts: DiagnosisFacts) -> str:
    event = next((event for event in facts.events or () if event.words.startswith("Scheduled: ")), None)
    bind = facts.attempt.bind if facts.attempt else None
    return event.reported_by if event else facts.attempt.scheduler if facts.attempt and bind and bind.bound else ""


Explained = tuple[str, Mapping[str, Word], list[str]]
"""Code, words and clauses of an obstacle."""


def _explain(reason: str, words: str, pod: PodOnCluster) -> Explained:
    for pattern, explain in _TEXTS:
        if match := pattern.search(words):
            return explain(match, words, pod)
    if reason.startswith(_YUNIKORN):
        return "RejectedByScheduler", {"scheduler": pod.scheduler}, []
    if not words and (reason == _UNEXPECTED or reason.startswith(_OUT)):
        return "KubeletWordsMissing", {}, []
    if reason == "Preempting":
        return "KubeletPreempted", {}, []
    if reason in ("NodeShutdown", "Shutdown", "Terminated"):
        return "KubeletShutdown", {}, []
    if reason == _TOPOLOGY:
        return "KubeletTopology", {}, []
    return ("KubeletEvicted" if reason == "Evicted" else "KubeletRefusedPod"), {}, []


def _explain_devices(match: re.Match[str], _words: str, _pod: PodOnCluster) -> Explained:
    return _LACKS, match.groupdict(), []


def _explain_unhealthy(match: re.Match[str], _words: str, pod: PodOnCluster) -> Explained:
    code = "KubeletAskedForNone" if _asks_for_none(pod, match["resource"]) else "KubeletUnhealthyDevices"
    return code, match.groupdict(), []


def _asks_for_none(pod: PodOnCluster, resource: str) -> bool:
    """Tell whether the pod names the resource with an amount of 0, and nowhere with another."""
    containers = (*iterate_objects(pod.spec, "initContainers"), *iterate_objects(pod.spec, "containers"))
    lists = [get_object(container, "resources", name) for container in containers for name in ("limits", "requests")]
    amounts = {str(amounts[resource]) for amounts in lists if resource in amounts}
    return amounts == {"0"}


def _explain_unregistered(match: re.Match[str], _words: str, pod: PodOnCluster) -> Explained:
    code = "KubeletAskedForNone" if _asks_for_none(pod, match["resource"]) else "KubeletUnregistered"
    return code, match.groupdict(), []


def _explain_unbound(_match: re.Match[str], _words: str, pod: PodOnCluster) -> Explained:
    """Explain the words of HAMi's device plugin, which serves only pods that HAMi's scheduler has bound."""
    return (
        "KubeletPluginUnbound",
        {"named": write_phrase("scheduler_named", scheduler=pod.scheduler) if pod.scheduler else NOTHING},
        [] if ASSIGNED_NODE in pod.annotations else ["unmarked"],
    )


def _explain_vgpu_unbound(_match: re.Match[str], _words: str, pod: PodOnCluster) -> Explained:
    """Explain the words of Volcano's vGPU device plugin, which serves only pods that Volcano has given devices."""
    words: dict[str, Word] = {"scheduler": pod.scheduler or "?"}
    return "KubeletVgpuUnbound", words, [] if ASSIGNED in pod.annotations else ["unmarked"]


def _explain_shared(match: re.Match[str], _words: str, _pod: PodOnCluster) -> Explained:
    return "KubeletSharedRequest", match.groupdict(), []


def _explain_lost(match: re.Match[str], _words: str, _pod: PodOnCluster) -> Explained:
    return "KubeletDeviceLost", {"cause": quote(match["words"])}, []


def _explain_plugin(match: re.Match[str], _words: str, _pod: PodOnCluster) -> Explained:
    return "KubeletPluginFailed", {"cause": quote(match["words"])}, []


def _explain_out_of(match: re.Match[str], _words: str, _pod: PodOnCluster) -> Explained:
    resource = match["resource"]
    amounts = {name: format_amount(resource, int(match[name])) for name in ("asked", "used", "capacity")}
    # Only a device plugin adds resources with a prefix to a node.
    is_unregistered = "/" in resource and match["capacity"] == "0"
    return "KubeletOffersNone" if is_unregistered else "KubeletOutOfResource", {"resource": resource, **amounts}, []


def _explain_low(match: re.Match[str], words: str, _pod: PodOnCluster) -> Explained:
    resource = match["resource"].strip()
    advice = {"memory": "evicted_memory", "ephemeral-storage": "evicted_storage"}.get(resource, "evicted_other")
    details: dict[str, Word] = {"resource": resource, "advice": write_phrase(advice)}
    clauses = []
    if match["threshold"]:
        details |= {"threshold": match["threshold"], "available": match["available"]}
        clauses.append("left")
    if consumer := _CONSUMER.search(words):
        details |= consumer.groupdict()
        clauses.append("used")
    return "KubeletEvictedForNode", details, clauses


def _explain_topology(_match: re.Match[str], _words: str, _pod: PodOnCluster) -> Explained:
    return "KubeletTopology", {}, []


def _explain_unaligned(match: re.Match[str], _words: str, _pod: PodOnCluster) -> Explained:
    return "KubeletCpusUnaligned", match.groupdict(), []


def _explain_cores(match: re.Match[str], _words: str, _pod: PodOnCluster) -> Explained:
    return "KubeletLacksCores", match.groupdict(), []


def _explain_limit(match: re.Match[str], words: str, _pod: PodOnCluster) -> Explained:
    return "KubeletEvictedOverLimit", {"limit": match["limit"], "cause": quote(words)}, []


_TEXTS: Final[tuple[tuple[re.Pattern[str], Callable[[re.Match[str], str, PodOnCluster], Explained]], ...]] = (
    (_DEVICES, _explain_devices),
    (_UNHEALTHY, _explain_unhealthy),
    (_UNREGISTERED, _explain_unregistered),
    (_UNBOUND, _explain_unbound),
    (_VGPU_UNBOUND, _explain_vgpu_unbound),
    (_OUT_OF, _explain_out_of),
    (_LOCALITY, _explain_topology),
    (_UNALIGNED, _explain_unaligned),
    (_CORES, _explain_cores),
    (_LOW, _explain_low),
    (_LIMIT, _explain_limit),
    (_LOST, _explain_lost),
    (_SHARED, _explain_shared),
    (_PLUGIN, _explain_plugin),
)
