"""CPU of judging one pod on a snapshot with kube-scheduler's filters, by size of the cluster and what the pod asks."""

import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from dev.bench.cpu import measure_milliseconds
from dev.bench.report import Figure, Result
from engine.filters.judge import judge
from engine.filters.judgement import Judgement
from engine.snapshot.reading import change_snapshot, read_snapshot
from schemas.json_types import Json

SIZES: Final = (1_000, 5_000)
DEVICES: Final = 8
"""Devices of a node; as many pods hold them."""
CALLS: Final = 20
NAMESPACES: Final = 5
ZONES: Final = 3
APPS: Final = 50
_GPU: Final = "nvidia.com/gpu"
_ZONE: Final = "topology.kubernetes.io/zone"
_HOST: Final = "kubernetes.io/hostname"


def measure_judging() -> Result:
    """Measure a pod with a request only, one with every constraint, and the same one where every node fits."""
    return Result(
        "judge",
        "Verdicts of all filters of kube-scheduler on one pod, and the message; ratio: to the pod with a request only",
        f"{DEVICES} devices and {DEVICES} pods a node, {NAMESPACES} namespaces; median of {CALLS} calls",
        tuple(figure for nodes in SIZES for figure in _measure_size(nodes)),
    )


def _measure_size(nodes: int) -> Iterator[Figure]:
    objects = list(iterate_cluster(nodes))
    begun = time.process_time()
    snapshot = read_snapshot(objects)
    built = time.process_time() - begun
    first: float | None = None
    for name, pod in list_pods().items():
        milliseconds = _measure(partial(_judge, snapshot, pod))
        first = first or milliseconds
        yield Figure(f"{nodes:,} nodes, {name}", milliseconds, "CPU ms", round(milliseconds / first, 2))
    pod = list_pods()["request only"]
    changed = _measure(lambda: _judge(change_snapshot(snapshot, [objects[1]]), pod))
    yield Figure(f"{nodes:,} nodes, one pod changed, then judged", changed, "CPU ms", round(changed / (first or 1), 2))
    note = f"{len(objects):,} objects"
    yield Figure(f"{nodes:,} nodes, snapshot built", round(built * 1_000, 1), "CPU ms", note=note)


def _judge(snapshot: Any, pod: Json) -> None:
    judgement = judge(snapshot, pod)
    if not isinstance(judgement, Judgement) or not judgement.is_certain:
        raise RuntimeError("the pod was not judged: the benchmark needs objects without errors")


def _measure(call: Callable[[], None]) -> float:
    """Measure the median CPU time of a call, in milliseconds."""
    return round(measure_milliseconds(call, CALLS), 1)


def list_pods() -> Mapping[str, Json]:
    constrained = _make_pod("ask", "team-0", {"app": "app-1"}, {"cpu": "4", "memory": "32Gi", _GPU: "1"})
    constrained["spec"] |= {
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
        "nodeSelector": {"model": "m1"},
        "affinity": {
            "nodeAffinity": _require({"nodeSelectorTerms": [{"matchExpressions": [_match_zones("z0", "z1")]}]}),
            "podAffinity": _require([_make_term("app-1")]),
            "podAntiAffinity": _require([_make_term("none")]),
        },
        "topologySpreadConstraints": [{**_make_term("app-1"), "maxSkew": 10_000, "whenUnsatisfiable": "DoNotSchedule"}],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
    }
    constrained["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 8080}]
    fitting = constrained | {"spec": constrained["spec"] | {"nodeSelector": {}, "containers": [{"name": "main"}]}}
    affinity = {key: value for key, value in constrained["spec"]["affinity"].items() if key != "nodeAffinity"}
    fitting["spec"]["affinity"] = affinity
    return {
        "request only": _make_pod("ask", "team-0", {"app": "app-1"}, {"cpu": "4", _GPU: "1"}),
        "every constraint": constrained,
        "every constraint, every node fits": fitting,
    }


def iterate_cluster(nodes: int, first: int = 0, pods: int = DEVICES) -> Iterator[Json]:
    """Yield nodes, each followed by its pods, its CSINode and a volume that only it reaches.

    first: number of the first node, where a cluster is extended. pods: on each node, with all its devices.
    """
    requests = {"cpu": "4", _GPU: str(DEVICES // pods)}
    for number in range(first, nodes):
        name = f"node-{number:05d}"
        yield _make_node(name, number)
        for device in range(pods):
            app = f"app-{(number + device) % APPS}"
            pod = _make_pod(f"{name}-{device}", f"team-{device % NAMESPACES}", {"app": app}, requests)
            pod["spec"]["nodeName"], pod["status"] = name, {"phase": "Running"}
            if device == 0:
                pod["spec"]["affinity"] = {"podAntiAffinity": _require([_make_term(f"{app}-other", _HOST)])}
            yield pod
        yield _make_object("storage.k8s.io/v1", "CSINode", name) | {"spec": {"drivers": [_DRIVER]}}
        yield _make_volume(name)
    if first:
        return
    storage_class = _make_object("storage.k8s.io/v1", "StorageClass", "local")
    yield storage_class | {"provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"}
    claim = _make_object("v1", "PersistentVolumeClaim", "data", namespace="team-0")
    storage = {"resources": {"requests": {"storage": "1Gi"}}}
    yield claim | {"spec": {"storageClassName": "local", "accessModes": ["ReadWriteOnce"], **storage}}


_DRIVER: Final = {"name": "csi.example.com", "allocatable": {"count": 20}}


def _make_object(version: str, kind: str, name: str, **metadata: Any) -> Json:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "uid": f"uid-{name}", **metadata}}


def _make_node(name: str, number: int) -> Json:
    labels = {_HOST: name, _ZONE: f"z{number % ZONES}", "model": f"m{number % 4}"}
    # Feature discovery labels a node with dozens of facts.
    labels |= {f"feature.node.kubernetes.io/fact-{fact}": "true" for fact in range(20)}
    taints = [{"key": "gpu", "value": "present", "effect": "NoSchedule"}] if number % 2 else []
    amounts = {"cpu": "64", "memory": "512Gi", "pods": "110", _GPU: str(DEVICES)}
    status = {"allocatable": amounts, "capacity": amounts}
    return _make_object("v1", "Node", name, labels=labels) | {"spec": {"taints": taints}, "status": status}


def _make_pod(name: str, namespace: str, labels: Mapping[str, str], requests: Mapping[str, str]) -> Json:
    pod = _make_object("v1", "Pod", name, namespace=namespace, labels=labels)
    return pod | {"spec": {"containers": [{"name": "main", "resources": {"requests": requests}}]}, "status": {}}


def _make_volume(name: str) -> Json:
    expression = {"key": _HOST, "operator": "In", "values": [name]}
    spec = {
        "capacity": {"storage": "1Gi"},
        "storageClassName": "local",
        "accessModes": ["ReadWriteOnce"],
        "csi": {"driver": "csi.example.com", "volumeHandle": name},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}},
    }
    return _make_object("v1", "PersistentVolume", f"pv-{name}") | {"spec": spec, "status": {"phase": "Available"}}


def _require(terms: Any) -> Json:
    return {"requiredDuringSchedulingIgnoredDuringExecution": terms}


def _match_zones(*zones: str) -> Json:
    return {"key": _ZONE, "operator": "In", "values": list(zones)}


def _make_term(app: str, key: str = _ZONE) -> Json:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}
