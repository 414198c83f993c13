"""Ends of pods that keep a pod away by what they hold: host ports, volumes, and devices of claims."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from engine.claims.allocated import DeviceHolder
from engine.claims.counters import CounterShortage, list_counter_users
from engine.claims.explanation import ExplainedDevice, explain_node
from engine.claims.inventory import Inventory
from engine.claims.judge import NO_DEVICES, ClaimsJudge
from engine.claims.pod_claims import ClaimRejectedError, collect_claims
from engine.claims.slices import Pool, PoolId
from engine.filters import dynamic_resources, node_ports, volume_limits, volume_restrictions
from engine.filters.judgement import Judgement
from engine.simulation.change_trial import ChangeTrial
from engine.simulation.claim_changes import MAX_NODES, list_refused_by
from engine.simulation.cluster import SimulationCluster
from engine.simulation.verdict import PodVerdict
from engine.snapshot import kinds
from engine.snapshot.fields import FieldError
from engine.snapshot.node_info import NodeInfo
from engine.snapshot.pods import Pod
from engine.suggestions.suggestion import Edit
from schemas.json_types import Json

MAX_HOLDERS: Final = 4
"""Limit of the holders of one node that are waited for together."""


def iterate_holder_trials(
    cluster: SimulationCluster, verdict: PodVerdict, judgement: Judgement
) -> Iterator[ChangeTrial]:
    """Iterate over pods whose end gives the pod what only they keep from it."""
    yield from _iterate_ends_of_pods(cluster, verdict, judgement)
    yield from _iterate_ends_of_claims(cluster, verdict, judgement)


def _iterate_ends_of_pods(
    cluster: SimulationCluster, verdict: PodVerdict, judgement: Judgement
) -> Iterator[ChangeTrial]:
    for name in list_refused_by(judgement, {node_ports.NAME})[:MAX_NODES]:
        pods = cluster.snapshot.nodes[name].pods
        holders = [(pod, text) for pod in pods if (text := _name_ports(pod, judgement.pod))]
        if 0 < len(holders) <= MAX_HOLDERS:
            yield _end_pods(verdict, holders)
    for name in list_refused_by(judgement, {volume_limits.NAME})[:MAX_NODES]:
        with_volumes = [pod for pod in cluster.snapshot.nodes[name].pods if any(volume.claim for volume in pod.volumes)]
        for pod in with_volumes[:MAX_HOLDERS]:
            yield _end_pods(verdict, [(pod, "a volume")], "一个存储卷")
    if list_refused_by(judgement, {volume_restrictions.NAME}):
        claims = {volume.claim for volume in judgement.pod.volumes if volume.claim}
        for info in cluster.snapshot.nodes.values():
            for pod in info.pods:
                shared = sorted(claims & {volume.claim for volume in pod.volumes})
                if pod.namespace == judgement.pod.namespace and shared:
                    yield _end_pods(verdict, [(pod, f"claim {shared[0]}")], f"存储声明 {shared[0]}")


def _name_ports(holder: Pod, pod: Pod) -> str:
    """Name the host ports of a holder that are those of the pod."""
    taken = [port for port in holder.host_ports if any(port.is_conflicting(other) for other in pod.host_ports)]
    return ", ".join(f"{port.port}/{port.protocol}" for port in taken)


def _end_pods(verdict: PodVerdict, holders: Sequence[tuple[Pod, str]], text_zh: str = "") -> ChangeTrial:
    """End pods; ``text_zh``: what each holds, in Chinese, if that is another text."""
    edits = tuple(Edit("use", f"{pod.namespace}/{pod.name}", text, "", before_zh=text_zh) for pod, text in holders)
    return ChangeTrial(edits, verdict.pod, removed=tuple((kinds.POD, *pod.key) for pod, _ in holders))


def _iterate_ends_of_claims(
    cluster: SimulationCluster, verdict: PodVerdict, judgement: Judgement
) -> Iterator[ChangeTrial]:
    """Iterate over claims of a node that hold devices which would do: each by itself, then several together."""
    refused = [
        name
        for name in list_refused_by(judgement, {dynamic_resources.NAME})
        if judgement.refused[name].reasons == (NO_DEVICES,)
    ]
    inventory = cluster.devices.read(cluster.snapshot)
    try:
        judge = ClaimsJudge(inventory, collect_claims(inventory, judgement.pod, judgement.request))
    except (FieldError, ClaimRejectedError):
        return
    for name in refused[:MAX_NODES]:
        holders = _list_holders(judge, cluster.snapshot.nodes[name])
        groups = [[holder] for holder in holders]
        groups += [holders[:count] for count in range(2, min(len(holders), MAX_HOLDERS) + 1)]
        for group in groups:
            if trial := _end_claims(cluster, verdict, group):
                yield trial


def _list_holders(judge: ClaimsJudge, info: NodeInfo) -> list[DeviceHolder]:
    """List the claims that hold devices of a node which only this keeps from the pod."""
    explained = explain_node(judge, info.node)
    pools = {pool.id: pool for pool in explained.pools}
    holders: dict[str, DeviceHolder] = {}
    for request in explained.requests:
        for device in request.devices:
            if len(device.findings) == 1:
                for holder in _find_holders(judge.inventory, pools, device):
                    holders.setdefault(holder.claim.title, holder)
    return list(holders.values())


def _find_holders(
    inventory: Inventory, pools: Mapping[PoolId, Pool], device: ExplainedDevice
) -> Sequence[DeviceHolder]:
    match device.findings[0].cause:
        case DeviceHolder() as holder:
            return [holder]
        case CounterShortage() as shortage:
            return list_counter_users(inventory, pools[device.id[:2]], shortage)
    return [share.holder for share in inventory.allocated.shares.get(device.id, ())]


def _end_claims(cluster: SimulationCluster, verdict: PodVerdict, holders: Sequence[DeviceHolder]) -> ChangeTrial | None:
    """End the pods that claims are reserved for; None if one is reserved for something else or for nobody."""
    edits, removed, objects = list[Edit](), list[tuple[str, str, str]](), list[Json]()
    for holder in holders:
        claim = holder.claim
        names = [consumer.name for consumer in claim.reserved_for if consumer.resource == "pods"]
        if not names or len(names) < len(claim.reserved_for):
            return None
        devices, devices_zh = f"devices of claim {claim.name}", f"声明 {claim.name} 的设备"
        edits += [Edit("use", f"{claim.namespace}/{name}", devices, "", before_zh=devices_zh) for name in names]
        removed += [(kinds.POD, claim.namespace, name) for name in names]
        objects.append({key: value for key, value in claim.object.items() if key != "status"})
    present = [key for key in removed if key[1:] in cluster.snapshot.pods]
    return ChangeTrial(tuple(edits), verdict.pod, objects=tuple(objects), removed=tuple(present))
