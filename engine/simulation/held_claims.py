"""Claims of a pod that was placed: their devices on its node, which no later pod gets."""

from collections.abc import Sequence

from engine.claims.claims import EXTENDED_RESOURCE_CLAIM
from engine.claims.inventory import Inventory
from engine.claims.judge import ClaimsJudge
from engine.claims.judgement import ClaimAllocation, DeviceGrant
from engine.claims.pod_claims import ClaimRejectedError, collect_claims
from engine.claims.request_plans import DeviceSearchError
from engine.simulation.claim_templates import make_claims
from engine.simulation.cluster import SimulationCluster
from engine.snapshot import kinds
from engine.snapshot.fields import FieldError
from engine.snapshot.pods import read_pod
from engine.snapshot.requests import request_to_place
from engine.snapshot.snapshot import Snapshot
from runtime.kubernetes.object_fields import get_object, get_text
from schemas.json_types import Json


def hold_claims(cluster: SimulationCluster, pod: Json, node: str) -> list[Json]:
    """Build the claims of a pod with their devices on a node that lets the pod pass; none for a pod without claims."""
    new_claims = make_claims(pod, cluster.objects)[1]
    here = cluster.with_objects(new_claims) if new_claims else cluster
    held = hold_existing_claims(here.snapshot, here.devices.read(here.snapshot), pod, node)
    names = {get_text(claim, "metadata", "name") for claim in held}
    return [*held, *(claim for claim in new_claims if get_text(claim, "metadata", "name") not in names)]


def hold_existing_claims(snapshot: Snapshot, inventory: Inventory, pod: Json, node: str) -> list[Json]:
    """Build the claims that exist for a pod, with their devices; none if the node cannot give them."""
    info = snapshot.nodes.get(node)
    if info is None:
        return []
    try:
        pod_claims = collect_claims(inventory, read_pod(pod), request_to_place(pod))
        if pod_claims.is_empty:
            return []
        allocations = ClaimsJudge(inventory, pod_claims).allocate(info.node)
    except (FieldError, ClaimRejectedError, DeviceSearchError):
        # The verdict names the cause.
        return []
    stored = snapshot.get_objects(kinds.RESOURCE_CLAIM)
    namespace, reach = get_text(pod, "metadata", "namespace"), _find_reach(snapshot, allocations, node)
    return [
        {**(stored.get((namespace, entry.claim)) or _build_extended(pod)), "status": _write_status(entry, pod, reach)}
        for entry in allocations
    ]


def _write_status(allocation: ClaimAllocation, pod: Json, reach: Json) -> Json:
    name, uid = (get_text(pod, "metadata", field) for field in ("name", "uid"))
    shares = (f"{allocation.claim}/{number}" for number in range(len(allocation.devices)))
    results = [_write_result(grant, share) for grant, share in zip(allocation.devices, shares, strict=True)]
    reserved = [{"resource": "pods", "name": name, "uid": uid}]
    return {"allocation": {"devices": {"results": results}, **reach}, "reservedFor": reserved}


def _write_result(grant: DeviceGrant, share: str) -> Json:
    result: Json = {"request": grant.request, "driver": grant.driver, "pool": grant.pool, "device": grant.device}
    if grant.has_admin_access:
        result["adminAccess"] = True
    if grant.consumed:
        consumed = {name: str(amount) for name, amount in grant.consumed.items()}
        result |= {"consumedCapacity": consumed, "shareID": share}
    return result


def _find_reach(snapshot: Snapshot, allocations: Sequence[ClaimAllocation], node: str) -> Json:
    """Find the nodes that reach the devices: only this one if a device is of this node."""
    pools = {(grant.driver, grant.pool) for allocation in allocations for grant in allocation.devices}
    specs = (get_object(item, "spec") for item in snapshot.get_objects(kinds.RESOURCE_SLICE).values())
    is_local = any(
        get_text(spec, "nodeName") == node and (get_text(spec, "driver"), get_text(spec, "pool", "name")) in pools
        for spec in specs
    )
    fields = [{"key": "metadata.name", "operator": "In", "values": [node]}]
    return {"nodeSelector": {"nodeSelectorTerms": [{"matchFields": fields}]}} if is_local else {}


def _build_extended(pod: Json) -> Json:
    """Build the claim that kube-scheduler makes for resources of the pod that device classes serve."""
    metadata = get_object(pod, "metadata")
    name, uid = get_text(metadata, "name"), get_text(metadata, "uid")
    owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid, "controller": True}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "namespace": get_text(metadata, "namespace"),
            "name": f"{name}-extended-resources",
            "uid": f"{uid}-extended-resources",
            "annotations": {EXTENDED_RESOURCE_CLAIM: "true"},
            "ownerReferences": [owner],
        },
        "spec": {},
    }
