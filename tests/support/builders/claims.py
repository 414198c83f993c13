"""Devices, classes and claims as an API server stores them, and judgements about them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from engine.claims.explanation import ExplainedNode, ExplainedRequest, explain_node
from engine.claims.gates import DEFAULT_GATES, Gates
from engine.claims.inventory import read_inventory
from engine.claims.judge import ClaimsJudge
from engine.claims.pod_claims import collect_claims
from engine.snapshot.pods import read_pod
from engine.snapshot.reading import read_snapshot
from engine.snapshot.requests import request_to_place
from engine.snapshot.snapshot import Snapshot
from tests.support.builders.cluster import Object, a_pod

DRIVER = "gpu.nvidia.com"
CLASS = "gpu"
NOTHING_FITS = ("cannot allocate all claims",)
"""Reasons of a node on which kube-scheduler's allocator finds no devices."""


def an_attribute(value: str | bool | int) -> Object:
    """Build an attribute of a device; a text of three numbers is a version."""
    if isinstance(value, bool):
        return {"bool": value}
    if isinstance(value, int):
        return {"int": value}
    return {"version" if value.count(".") == 2 and value[0].isdigit() else "string": value}


def a_device(name: str, memory: str = "", attributes: dict[str, Any] | None = None, **fields: Any) -> Object:
    """Build a device of a slice; memory: a capacity."""
    described = {key: an_attribute(value) for key, value in (attributes or {}).items()}
    capacity = {"memory": {"value": memory}} if memory else {}
    return {"name": name, "attributes": described, "capacity": capacity} | fields


def a_slice(*devices: Object, node: str = "n1", name: str = "", pool: str = "", **spec: Any) -> Object:
    """Build a ResourceSlice of one node, whose pool has no other."""
    described = {
        "driver": DRIVER,
        "pool": {"name": pool or node, "generation": 1, "resourceSliceCount": 1},
        "nodeName": node,
        "devices": list(devices),
    } | spec
    described = {key: value for key, value in described.items() if value is not None}
    return _make("ResourceSlice", {"name": name or f"{pool or node}-slice"}, described)


def a_class(*expressions: str, name: str = CLASS, **spec: Any) -> Object:
    """Build a DeviceClass."""
    return _make("DeviceClass", {"name": name}, {"selectors": _select(expressions)} | spec)


def a_request(*expressions: str, name: str = "r0", device_class: str = CLASS, **fields: Any) -> Object:
    """Build a request for a device of a class."""
    exactly = {"deviceClassName": device_class, "allocationMode": "ExactCount", "count": 1}
    return {"name": name, "exactly": exactly | {"selectors": _select(expressions)} | fields}


def a_claim(*requests: Object, name: str = "c0", **fields: Any) -> Object:
    """Build a ResourceClaim; fields: further ones of its list of devices, and its status."""
    status = fields.pop("status", {})
    devices = {"requests": list(requests) or [a_request()]} | fields
    metadata = {"namespace": "default", "name": name, "uid": f"uid-{name}"}
    return _make("ResourceClaim", metadata, {"devices": devices}) | {"status": status}


def an_allocation(*devices: str, node: str = "n1", pods: Sequence[str] = (), **result: Any) -> Object:
    """Build the status of a claim that has devices of a node."""
    results = [{"request": "r0", "driver": DRIVER, "pool": node, "device": device} | result for device in devices]
    consumers = [{"resource": "pods", "name": pod, "uid": f"uid-{pod}"} for pod in pods]
    return {"allocation": {"devices": {"results": results}}, "reservedFor": consumers}


def a_pod_with(*claims: str) -> Object:
    """Build a pod that names claims."""
    pod = a_pod()
    pod["spec"]["resourceClaims"] = [{"name": f"p{claim}", "resourceClaimName": claim} for claim in claims]
    return pod


@dataclass(frozen=True, slots=True)
class JudgedClaims:
    """A judgement on a small cluster."""

    snapshot: Snapshot
    judge: ClaimsJudge

    def get_reasons(self, node: str = "n1") -> tuple[str, ...]:
        """Return the reasons of a refusal; () where the node passes."""
        verdict = self.judge.judge(self.snapshot.nodes[node].node)
        assert not verdict.unjudged, verdict.unjudged
        return verdict.refusal.reasons if verdict.refusal else ()

    def get_cause(self, node: str = "n1") -> str:
        """Return the sentence that says why there is no verdict."""
        return self.judge.judge(self.snapshot.nodes[node].node).unjudged

    def list_devices(self, node: str = "n1") -> list[str]:
        """List the names of the devices that the claims would get."""
        allocations = self.judge.allocate(self.snapshot.nodes[node].node)
        return [device.device for allocation in allocations for device in allocation.devices]

    def list_consumed(self, node: str = "n1") -> list[dict[str, str]]:
        """List the capacity that each of these devices gives."""
        return [
            {name: str(amount) for name, amount in device.consumed.items()}
            for allocation in self.judge.allocate(self.snapshot.nodes[node].node)
            for device in allocation.devices
        ]

    def explain(self, node: str = "n1") -> ExplainedNode:
        """Explain a node."""
        return explain_node(self.judge, self.snapshot.nodes[node].node)

    def explain_request(self, position: int = 0, node: str = "n1") -> ExplainedRequest:
        """Explain one request on a node."""
        return self.explain(node).requests[position]

    def list_texts(self, device: str, position: int = 0) -> list[str]:
        """List the findings about a device for a request, as texts."""
        request = self.explain_request(position)
        return [finding.text for item in request.devices if item.id[2] == device for finding in item.findings]


def judge_claims(
    *objects: Object, pod: Object | None = None, gates: Gates = DEFAULT_GATES, now: datetime | None = None
) -> JudgedClaims:
    """Judge a pod, by default one that names the claim c0, on a cluster of objects."""
    snapshot = read_snapshot(objects)
    assert not snapshot.rejected
    inventory = read_inventory(snapshot, gates)
    asking = pod or a_pod_with("c0")
    pod_claims = collect_claims(inventory, read_pod(asking), request_to_place(asking))
    return JudgedClaims(snapshot, ClaimsJudge(inventory, pod_claims, now=now))


def _select(expressions: Sequence[str]) -> list[Object]:
    return [{"cel": {"expression": expression}} for expression in expressions]


def _make(kind: str, metadata: Object, spec: Object) -> Object:
    return {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": metadata, "spec": spec}
