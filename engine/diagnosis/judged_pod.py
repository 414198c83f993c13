"""Obstacles of the pod as such: gates, claims that are missing or lost, a class that does not exist.

kube-scheduler looks at no node for such a pod. Its words name the object; the snapshot says what is there instead.
"""

import difflib
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from engine.diagnosis.facts import Evidence
from engine.diagnosis.judged_cluster import JudgedCluster
from engine.diagnosis.outcome import FoundObstacle, Word
from engine.diagnosis.texts import write_phrase
from engine.diagnosis.wording import shorten_list
from engine.filters.verdicts import PluginRefusal
from engine.snapshot import kinds
from engine.snapshot.fields import Object, read_items, read_mapping

Describe = Callable[[JudgedCluster, "re.Match[str]"], FoundObstacle]


def describe_pod_refusal(cluster: JudgedCluster, refusal: PluginRefusal) -> Iterator[FoundObstacle]:
    """Describe why kube-scheduler refuses the pod before it looks at a node."""
    text = ", ".join(refusal.reasons)
    for pattern, describe in _DESCRIBERS:
        if match := pattern.search(text):
            obstacle = describe(cluster, match)
            break
    else:
        obstacle = FoundObstacle("PodRefused", {"words": text})
    source = cluster.cycle.pod
    path = f"/api/v1/namespaces/{source.namespace}/pods/{source.name}"
    yield obstacle._replace(evidence=[Evidence("pod", path, words=text), *obstacle.evidence])


def _describe_gates(cluster: JudgedCluster, match: "re.Match[str]") -> FoundObstacle:
    gates = match["gates"].split()
    domains = list(dict.fromkeys(gate.partition("/")[0] for gate in gates if "/" in gate))
    owner = write_phrase("gate_owner", domains=shorten_list(domains)) if domains else write_phrase("gate_owner_unnamed")
    words: dict[str, Word] = {"count": len(gates), "gates": shorten_list(gates), "owner": owner}
    return FoundObstacle("SchedulingGated", words | {"namespace": cluster.cycle.pod.namespace})


def _describe_missing_volume_claim(cluster: JudgedCluster, match: "re.Match[str]") -> FoundObstacle:
    words: dict[str, Word] = {"claim": match["claim"], "namespace": cluster.cycle.pod.namespace}
    return FoundObstacle("ClaimMissing", words, clauses=["claim"])


def _describe_lost_volume_claim(cluster: JudgedCluster, match: "re.Match[str]") -> FoundObstacle:
    words: dict[str, Word] = {"claim": match["claim"], "volume": match["volume"]}
    return FoundObstacle("ClaimLost", words | {"namespace": cluster.cycle.pod.namespace})


def _describe_leaving_claim(cluster: JudgedCluster, match: "re.Match[str]") -> FoundObstacle:
    name, namespace = match["claim"], cluster.cycle.pod.namespace
    users = [
        f"{pod.namespace}/{pod.name}"
        for pod in cluster.snapshot.pods.values()
        if pod.namespace == namespace
        and pod.name != cluster.cycle.pod.name
        and any(volume.claim == name for volume in pod.volumes)
    ]
    words: dict[str, Word] = {"claim": name, "namespace": namespace, "users": shorten_list(users)}
    return FoundObstacle("ClaimDeleted", words, clauses=["users"] if users else [])


def _describe_unbound_claims(cluster: JudgedCluster, match: "re.Match[str]") -> FoundObstacle:
    del match
    pod, snapshot = cluster.cycle.pod, cluster.snapshot
    claims = [snapshot.find_volume_claim(pod.namespace, volume.claim) for volume in pod.volumes if not volume.disk]
    unbound = [claim for claim in claims if claim and not claim.is_bound]
    if not unbound:
        return FoundObstacle("ClaimUnbound", {"namespace": pod.namespace})
    words: dict[str, Word] = {"claim": unbound[0].name, "phase": unbound[0].phase or "Pending"}
    return FoundObstacle("ClaimUnbound", words | {"namespace": pod.namespace}, clauses=["claim"])


def _describe_missing_claim(cluster: JudgedCluster, match: "re.Match[str]") -> FoundObstacle:
    namespace = cluster.cycle.pod.namespace
    names = [name for space, name in cluster.snapshot.get_objects(kinds.RESOURCE_CLAIM) if space == namespace]
    near = difflib.get_close_matches(match["claim"], names)
    words: dict[str, Word] = {"claim": match["claim"], "namespace": namespace, "near": shorten_list(near)}
    return FoundObstacle("DeviceClaimMissing", words, clauses=["near"] if near else [])


def _describe_claim_not_made(cluster: JudgedCluster, match: "re.Match[str]") -> FoundObstacle:
    """Describe a claim that was not made from its template: mostly the template is missing."""
    del match
    snapshot, namespace = cluster.snapshot, cluster.cycle.pod.namespace
    templates = {name for space, name in snapshot.get_objects(kinds.CLAIM_TEMPLATE) if space == namespace}
    wanted = list(dict.fromkeys(_iterate_templates(cluster.cycle.pod.object)))
    missing = [name for name in wanted if name not in templates]
    near = difflib.get_close_matches(missing[0], sorted(templates)) if missing else []
    words: dict[str, Word] = {
        "template": shorten_list(missing or wanted),
        "namespace": namespace,
        "near": shorten_list(near),
    }
    if not missing or snapshot.find_missing_kinds(kinds.CLAIM_TEMPLATE):
        return FoundObstacle("ResourceClaimNotMade", words)
    return FoundObstacle("ClaimTemplateMissing", words, clauses=["near"] if near else [])


def _iterate_templates(pod: Object) -> Iterator[str]:
    for _, reference in read_items(read_mapping(pod, "spec"), "resourceClaims", "spec"):
        name: Any = reference.get("resourceClaimTemplateName")
        if isinstance(name, str):
            yield name


def _describe_missing_class(cluster: JudgedCluster, match: "re.Match[str]") -> FoundObstacle:
    classes = sorted(name for _, name in cluster.snapshot.get_objects(kinds.DEVICE_CLASS))
    words: dict[str, Word] = {
        "class": match["class"],
        "request": match["request"],
        "near": shorten_list(classes),
    }
    return FoundObstacle("DeviceClassMissing", words, clauses=["near"] if classes else [])


_DESCRIBERS: Final[tuple[tuple["re.Pattern[str]", Describe], ...]] = (
    (re.compile(r"waiting for scheduling gates: \[(?P<gates>.*)\]"), _describe_gates),
    (re.compile(r'persistentvolumeclaim "(?P<claim>[^"]*)" not found'), _describe_missing_volume_claim),
    (
        re.compile(r'persistentvolumeclaim "(?P<claim>[^"]*)" bound to non-existent persistentvolume "(?P<volume>.*)"'),
        _describe_lost_volume_claim,
    ),
    (re.compile(r'(?:persistentvolume|resource)claim "(?P<claim>[^"]*)" is being deleted'), _describe_leaving_claim),
    (re.compile(r"unbound immediate PersistentVolumeClaims"), _describe_unbound_claims),
    (re.compile(r'could not find ResourceClaim "[^"/]*/(?P<claim>[^"]*)"'), _describe_missing_claim),
    (re.compile(r"ResourceClaim not created yet"), _describe_claim_not_made),
    (re.compile(r"request (?P<request>\S+): device class (?P<class>\S+) does not exist"), _describe_missing_class),
)
"""kube-scheduler's words for a pod that it looks at no node for, and what describes them."""
