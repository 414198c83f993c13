"""Obstacles of the volume filters: which claim or volume a node can't reach, and where it can be reached."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from engine.diagnosis.judged_cluster import JudgedCluster, Refusals
from engine.diagnosis.judged_labels import format_requirement
from engine.diagnosis.outcome import FoundObstacle, Word
from engine.diagnosis.texts import write_phrase
from engine.diagnosis.wording import enumerate_names, join_phrases, shorten_list
from engine.filters import volume_binding, volume_limits, volume_zone
from engine.filters.volume_limits import VolumeLimitCheck
from engine.snapshot.snapshot import Snapshot
from engine.snapshot.volumes import PersistentVolume, VolumeClaim
from schemas.answers.diagnosis import InBothLanguages

_CONFLICTS: Final = (volume_binding.NODE_CONFLICT, volume_binding.OLD_NODE_CONFLICT)
_ZONE_LABELS: Final = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")
_ONE_POD: Final = "ReadWriteOncePod"


def describe_volumes(cluster: JudgedCluster, refusals: Refusals) -> Iterator[FoundObstacle]:
    """Describe a volume filter's refusals, each reason by itself."""
    groups: dict[tuple[str, str], list[str]] = {}
    for name, refusal in refusals.items():
        for reason in refusal.reasons:
            groups.setdefault((refusal.plugin, reason), []).append(name)
    for (plugin, reason), nodes in groups.items():
        yield _describe_reason(cluster, plugin, reason, nodes, refusals)


def _describe_reason(
    cluster: JudgedCluster, plugin: str, reason: str, nodes: Sequence[str], refusals: Refusals
) -> FoundObstacle:
    claims = list_claims(cluster)
    if reason in _CONFLICTS or plugin == volume_zone.NAME:
        return _describe_elsewhere(cluster, claims, nodes, refusals)
    if reason in (volume_binding.NO_VOLUME, volume_binding.NO_SPACE):
        return _describe_unmade(cluster, claims, reason, nodes, refusals)
    if plugin == volume_limits.NAME:
        return _describe_limit(cluster, nodes, refusals)
    if _ONE_POD in reason:
        return _describe_exclusive(cluster, claims, nodes, refusals)
    words: dict[str, Word] = {"words": reason, "claims": shorten_list([claim.name for claim in claims])}
    return cluster.build_obstacle("VolumeRefused", nodes, words, reasons=refusals)


def list_claims(cluster: JudgedCluster) -> list[VolumeClaim]:
    """List the pod's claims that exist."""
    pod, snapshot = cluster.cycle.pod, cluster.snapshot
    claims = (snapshot.find_volume_claim(pod.namespace, volume.claim) for volume in pod.volumes if not volume.disk)
    return [claim for claim in claims if claim]


def _describe_elsewhere(
    cluster: JudgedCluster, claims: Sequence[VolumeClaim], nodes: Sequence[str], refusals: Refusals
) -> FoundObstacle:
    """Describe bound volumes that may only be used on other nodes."""
    snapshot = cluster.snapshot
    pairs = [(claim, volume) for claim in claims if (volume := snapshot.find_volume(claim.volume))]
    bound = [pair for pair in pairs if _is_unreachable(cluster, pair[1], nodes)] or pairs
    texts = [_write_reach(claim, volume) for claim, volume in bound]
    zones = Counter(_get_zone(cluster, name) for name in nodes)
    at_once = [claim.name for claim, _ in bound if _binds_at_once(snapshot, claim)]
    words: dict[str, Word] = {
        "volumes": join_phrases(texts),
        "zones": shorten_list([zone for zone in zones if zone]),
        "at_once": shorten_list(at_once),
    }
    clauses = [*(["volumes"] if texts else []), *(["at_once"] if at_once else [])]
    obstacle = cluster.build_obstacle("VolumeElsewhere", nodes, words, reasons=refusals)
    return obstacle._replace(clauses=[*clauses[:1], *obstacle.clauses, *clauses[1:]])


def _is_unreachable(cluster: JudgedCluster, volume: PersistentVolume, nodes: Sequence[str]) -> bool:
    affinity = volume.node_affinity
    zone = _get_volume_zone(volume)
    return any(
        (affinity and not affinity.matches(cluster.get_node(name).node.labels))
        or (zone and _get_zone(cluster, name) not in ("", zone))
        for name in nodes
    )


def _write_reach(claim: VolumeClaim, volume: PersistentVolume) -> InBothLanguages:
    """Write the nodes from which the volume of a claim can be reached."""
    terms = volume.node_affinity.terms if volume.node_affinity else ()
    texts = [" and ".join(map(format_requirement, term.expressions)) for term in terms if term.expressions]
    words: dict[str, Word] = {"volume": volume.name, "claim": claim.name}
    if not texts:
        return write_phrase("volume_in_zone", zone=_get_volume_zone(volume), **words)
    return write_phrase("volume_of_nodes", labels=enumerate_names(texts, "or"), **words)


def _get_volume_zone(volume: PersistentVolume) -> str:
    return next((volume.labels[label] for label in _ZONE_LABELS if label in volume.labels), "")


def _get_zone(cluster: JudgedCluster, name: str) -> str:
    labels = cluster.get_node(name).node.labels
    return next((labels[label] for label in _ZONE_LABELS if label in labels), "")


def _binds_at_once(snapshot: Snapshot, claim: VolumeClaim) -> bool:
    """Tell whether the class made the volume before it was known which node needs it."""
    storage_class = snapshot.find_storage_class(claim.storage_class) if claim.storage_class else None
    return storage_class is not None and storage_class.binding_mode != "WaitForFirstConsumer"


def _describe_unmade(
    cluster: JudgedCluster, claims: Sequence[VolumeClaim], reason: str, nodes: Sequence[str], refusals: Refusals
) -> FoundObstacle:
    """Describe claims for which no volume is free or can be made on these nodes."""
    unbound = [f"{claim.name} (class {claim.storage_class or 'none'})" for claim in claims if not claim.is_bound]
    code = "VolumeNoSpace" if reason == volume_binding.NO_SPACE else "VolumeNotAvailable"
    return cluster.build_obstacle(code, nodes, {"claims": shorten_list(unbound)}, reasons=refusals)


def _describe_limit(cluster: JudgedCluster, nodes: Sequence[str], refusals: Refusals) -> FoundObstacle:
    """Describe drivers that attach no more volumes, with their numbers on the first of the nodes."""
    check = volume_limits.prepare(cluster.cycle)
    counts = check.count_attached(cluster.get_node(nodes[0])) if isinstance(check, VolumeLimitCheck) else ()
    texts = [f"{driver} {count}/{limit}" for driver, count, limit in counts]
    words: dict[str, Word] = {"counts": shorten_list(texts), "node": nodes[0]}
    obstacle = cluster.build_obstacle("VolumeLimit", nodes, words, reasons=refusals)
    return obstacle._replace(clauses=[*(["counts"] if texts else []), *obstacle.clauses])


def _describe_exclusive(
    cluster: JudgedCluster, claims: Sequence[VolumeClaim], nodes: Sequence[str], refusals: Refusals
) -> FoundObstacle:
    """Describe a claim that only one pod may use at a time."""
    names = {claim.name for claim in claims if _ONE_POD in claim.access_modes}
    users = [
        write_phrase("on_node", object=f"{pod.namespace}/{pod.name}", node=info.name)
        for info in cluster.snapshot.nodes.values()
        for pod in info.pods
        if pod.namespace == cluster.cycle.pod.namespace and names & {volume.claim for volume in pod.volumes}
    ]
    words: dict[str, Word] = {"claims": shorten_list(sorted(names)), "users": join_phrases(users)}
    obstacle = cluster.build_obstacle("VolumeInUse", nodes, words, reasons=refusals)
    return obstacle._replace(clauses=["users"] if users else [])
