"""Random clusters and pods that an API server takes, with every constraint that kube-scheduler's filters know."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from schemas.json_types import Json

ZONE: Final = "topology.kubernetes.io/zone"
HOST: Final = "kubernetes.io/hostname"
GPU: Final = "nvidia.com/gpu"
FPGA: Final = "example.com/fpga"
DRIVER: Final = "gpu.example.com"
_APPS: Final = ("web", "train", "batch")
_MODELS: Final = ("A100", "H100", "L40S")
_TAINTS: Final = (("gpu", "only"), ("team", "red"), ("team", "blue"), ("spot", ""))
_MEMORIES: Final = (24, 40, 80)


@dataclass(frozen=True, slots=True)
class RandomObjects:
    """Objects of a cluster: created in this order, so that each finds what it names."""

    namespaces: tuple[Json, ...]
    nodes: tuple[Json, ...]
    pods: tuple[Json, ...]
    """Pods that are on nodes from the start."""
    volumes: tuple[Json, ...]
    others: tuple[tuple[str, Json], ...]
    """Objects without a namespace, with the path of their collection."""


@dataclass(frozen=True, slots=True)
class RandomPod:
    """A pod that waits, and the objects of its namespace that are created before it."""

    namespace: str
    pod: Json
    claims: tuple[tuple[str, Json], ...]
    """Claims, with the path of their collection."""


def build_random_objects(random: Random, name: str, nodes: int) -> RandomObjects:
    """Build a cluster whose names begin with ``name``, so that several can be on one API server."""
    names = [f"{name}-{index}" for index in range(nodes)]
    namespaces = tuple(
        {"metadata": {"name": f"{name}-{team}", "labels": {"team": team, "cluster": name}}} for team in ("red", "blue")
    )
    pods = tuple(_build_placed(random, name, index, random.choice(names)) for index in range(3 * nodes))
    volumes = tuple(_build_volume(random, name, node) for node in names[::2])
    slices = [("/apis/resource.k8s.io/v1/resourceslices", _build_slice(random, node)) for node in names[1::2]]
    classes = [
        ("/apis/storage.k8s.io/v1/storageclasses", _build_class(name, "late", "WaitForFirstConsumer")),
        ("/apis/storage.k8s.io/v1/storageclasses", _build_class(name, "now", "Immediate")),
        ("/apis/resource.k8s.io/v1/deviceclasses", _build_device_class(name)),
    ]
    return RandomObjects(
        namespaces, tuple(_build_node(random, node) for node in names), pods, volumes, (*classes, *slices)
    )


def build_random_pod(random: Random, name: str, index: int, nodes: int, scheduler: str) -> RandomPod:
    """Build a pod that waits on the cluster of this name, with some of all constraints."""
    pod_name, namespace = f"ask-{index}", f"{name}-{random.choice(('red', 'blue'))}"
    spec: Json = {"schedulerName": scheduler, "terminationGracePeriodSeconds": 0, **_build_containers(random)}
    constraints: tuple[Callable[[], Json], ...] = (
        lambda: {"nodeSelector": _choose_labels(random)},
        lambda: {"tolerations": [_build_toleration(random) for _ in range(random.randint(1, 3))]},
        lambda: {"affinity": _build_affinity(random, name, nodes)},
        lambda: {
            "topologySpreadConstraints": [
                _build_spread(random, key) for key in random.sample((ZONE, HOST), random.randint(1, 2))
            ]
        },
    )
    for constraint in constraints:
        if random.random() < 0.4:
            spec |= constraint()
    if random.random() < 0.05:
        spec["schedulingGates"] = [{"name": "example.com/quota"}]
    claims: list[tuple[str, Json]] = []
    if random.random() < 0.2:
        claims.append(_add_volume(random, spec, name, namespace, pod_name))
    if random.random() < 0.25:
        claims.append(_add_device_claim(random, spec, name, namespace, pod_name))
    metadata = {"name": pod_name, "labels": {"app": random.choice(_APPS)}}
    return RandomPod(namespace, {"metadata": metadata, "spec": spec}, tuple(claims))


def _build_node(random: Random, name: str) -> Json:
    labels = {HOST: name, "model": random.choice(_MODELS), "cores": str(random.choice((8, 16, 64)))}
    if random.random() < 0.85:
        labels[ZONE] = f"z{random.randint(0, 2)}"
    if random.random() < 0.5:
        labels["disk"] = random.choice(("ssd", "hdd"))
    amounts = {
        "cpu": str(random.choice((4, 8, 16))), "memory": f"{random.choice((8, 32, 64))}Gi",
        "ephemeral-storage": f"{random.choice((20, 200))}Gi", "pods": str(random.choice((3, 6, 110))),
    }  # fmt: skip
    for resource, chance in ((GPU, 0.6), (FPGA, 0.2)):
        if random.random() < chance:
            amounts[resource] = str(random.choice((1, 2, 8)))
    taints = [
        {"key": key, **({"value": value} if value else {}), "effect": random.choice(("NoSchedule", "PreferNoSchedule"))}
        for key, value in random.sample(_TAINTS, random.choice((0, 0, 0, 1, 2)))
    ]
    # The API server refuses two taints of one key with the same effect.
    unique = {(taint["key"], taint["effect"]): taint for taint in taints}
    spec: Json = {"taints": [*unique.values()]} | ({"unschedulable": True} if random.random() < 0.15 else {})
    return {
        "metadata": {"name": name, "labels": labels, "annotations": {"kwok.x-k8s.io/node": "fake"}},
        "spec": spec,
        "status": {"allocatable": amounts, "capacity": amounts},
    }


def _build_placed(random: Random, name: str, index: int, node: str) -> Json:
    requests = {"cpu": random.choice(("100m", "1", "2500m")), "memory": random.choice(("128Mi", "1Gi", "3G"))}
    container: Json = {"name": "main", "image": "none", "resources": {"requests": requests}}
    if random.random() < 0.3:
        container["resources"] = {"requests": requests, "limits": {GPU: "1"}}
    if random.random() < 0.25:
        container["ports"] = [_build_port(random)]
    spec: Json = {"nodeName": node, "containers": [container], "terminationGracePeriodSeconds": 0}
    if random.random() < 0.25:
        spec["affinity"] = {"podAntiAffinity": _require([_build_pod_term(random, name)])}
    namespace = f"{name}-{random.choice(('red', 'blue'))}"
    labels = {"app": random.choice(_APPS)}
    return {"metadata": {"name": f"placed-{index}", "namespace": namespace, "labels": labels}, "spec": spec}


def _build_containers(random: Random) -> Json:
    main: Json = {"name": "main", "image": "none"}
    if random.random() < 0.8:
        requests = {"cpu": random.choice(("100m", "1500m", "5")), "memory": random.choice(("64Mi", "2Gi", "20G"))}
        if random.random() < 0.2:
            requests["ephemeral-storage"] = random.choice(("1Gi", "100Gi"))
        main["resources"] = {"requests": requests}
        for resource, chance in ((GPU, 0.4), (FPGA, 0.1)):
            if random.random() < chance:
                main["resources"].setdefault("limits", {})[resource] = str(random.randint(1, 4))
    if random.random() < 0.25:
        main["ports"] = [_build_port(random)]
    if random.random() < 0.8:
        return {"containers": [main]}
    restart = {"restartPolicy": "Always"} if random.random() < 0.5 else {}
    resources = {"requests": {"cpu": random.choice(("500m", "6"))}}
    return {
        "containers": [main],
        "initContainers": [{"name": "init", "image": "none", "resources": resources} | restart],
    }


def _build_port(random: Random) -> Json:
    port = random.choice((8080, 9090))
    address = random.choice(({}, {}, {"hostIP": "10.0.0.1"}))
    return {"containerPort": port, "hostPort": port, "protocol": random.choice(("TCP", "UDP")), **address}


def _choose_labels(random: Random) -> Json:
    return random.choice(({"disk": "ssd"}, {ZONE: "z1"}, {"model": random.choice(_MODELS)}, {"disk": "nvme"}))


def _build_toleration(random: Random) -> Json:
    key, value = random.choice(_TAINTS)
    forms: tuple[Json, ...] = (
        {"key": key, "operator": "Exists"},
        {"key": key, "operator": "Equal", "value": value},
        {"key": key, "value": value, "effect": "NoSchedule"},
        {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"},
        {"operator": "Exists"},
    )
    return random.choice(forms)


def _build_affinity(random: Random, name: str, nodes: int) -> Json:
    affinity: Json = {}
    if random.random() < 0.5:
        terms = [_build_node_term(random, name, nodes) for _ in range(random.randint(1, 2))]
        affinity["nodeAffinity"] = _require({"nodeSelectorTerms": terms})
    for kind in ("podAffinity", "podAntiAffinity"):
        if random.random() < 0.4:
            affinity[kind] = _require([_build_pod_term(random, name) for _ in range(random.randint(1, 2))])
    return affinity


def _build_node_term(random: Random, name: str, nodes: int) -> Json:
    if random.random() < 0.15:
        field = {"key": "metadata.name", "operator": "In", "values": [f"{name}-{random.randrange(nodes + 1)}"]}
        return {"matchFields": [field]}
    expressions: tuple[Json, ...] = (
        {"key": ZONE, "operator": "In", "values": ["z0", "z2"]},
        {"key": ZONE, "operator": "NotIn", "values": ["z1"]},
        {"key": "disk", "operator": "Exists"},
        {"key": "disk", "operator": "DoesNotExist"},
        {"key": "cores", "operator": "Gt", "values": ["8"]},
        {"key": "cores", "operator": "Lt", "values": ["64"]},
        {"key": "model", "operator": "In", "values": [random.choice(_MODELS)]},
    )
    return {"matchExpressions": random.sample(expressions, random.randint(1, 2))}


def _build_pod_term(random: Random, name: str) -> Json:
    term: Json = {"topologyKey": random.choice((ZONE, HOST, "disk")), "labelSelector": _build_selector(random)}
    scopes: tuple[Json, ...] = (
        {}, {"namespaces": [f"{name}-red"]}, {"namespaceSelector": {}},
        {"namespaceSelector": {"matchLabels": {"team": "blue", "cluster": name}}},
    )  # fmt: skip
    return term | random.choice(scopes)


def _build_selector(random: Random) -> Json:
    app = random.choice(_APPS)
    forms: tuple[Json, ...] = (
        {"matchLabels": {"app": app}},
        {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": [app]}]},
        {"matchExpressions": [{"key": "app", "operator": "In", "values": [app, "other"]}]},
    )
    return random.choice(forms)


def _build_spread(random: Random, key: str) -> Json:
    policies: tuple[Json, ...] = ({}, {}, {"nodeTaintsPolicy": "Honor"}, {"nodeAffinityPolicy": "Ignore"})
    minimum = {"minDomains": random.randint(1, 4)} if random.random() < 0.3 else {}
    common = {"topologyKey": key, "maxSkew": random.randint(1, 2), "whenUnsatisfiable": "DoNotSchedule"}
    return common | {"labelSelector": _build_selector(random)} | random.choice(policies) | minimum


def _build_volume(random: Random, name: str, node: str) -> Json:
    expression = {"key": HOST, "operator": "In", "values": [node]}
    spec = {
        "capacity": {"storage": random.choice(("1Gi", "10Gi"))},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": f"{name}-late",
        "persistentVolumeReclaimPolicy": "Retain",
        "csi": {"driver": "csi.example.com", "volumeHandle": node},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}},
    }
    return {"metadata": {"name": node}, "spec": spec}


def _build_class(name: str, suffix: str, mode: str) -> Json:
    metadata = {"name": f"{name}-{suffix}"}
    return {"metadata": metadata, "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": mode}


def _build_slice(random: Random, node: str) -> Json:
    devices = [
        {
            "name": f"gpu-{index}",
            "attributes": {"model": {"string": random.choice(_MODELS)}},
            "capacity": {"memory": {"value": f"{random.choice(_MEMORIES)}Gi"}},
        }
        for index in range(random.randint(1, 4))
    ]
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    return {"metadata": {"name": node}, "spec": {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": devices}}


def _build_device_class(name: str) -> Json:
    return {"metadata": {"name": name}, "spec": {"selectors": [_build_cel(f"device.driver == '{DRIVER}'")]}}


def _build_cel(expression: str) -> Json:
    return {"cel": {"expression": expression}}


def _add_volume(random: Random, spec: Json, name: str, namespace: str, pod: str) -> tuple[str, Json]:
    """Add a volume to the pod, and return its claim."""
    source = {"claimName": random.choice((pod, pod, pod, "missing"))}
    spec["volumes"] = [{"name": "data", "persistentVolumeClaim": source}]
    claim = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": f"{name}-{random.choice(('late', 'late', 'now'))}",
        "resources": {"requests": {"storage": random.choice(("1Gi", "5Gi", "50Gi"))}},
    }
    return f"/api/v1/namespaces/{namespace}/persistentvolumeclaims", {"metadata": {"name": pod}, "spec": claim}


def _add_device_claim(random: Random, spec: Json, name: str, namespace: str, pod: str) -> tuple[str, Json]:
    """Add a claim for devices to the pod, and return it."""
    memory, model = random.choice(_MEMORIES), random.choice(_MODELS)
    expressions = (
        f"device.capacity['{DRIVER}'].memory.compareTo(quantity('{memory}Gi')) >= 0",
        f"device.attributes['{DRIVER}'].model == '{model}'",
    )
    selectors = [_build_cel(text) for text in random.sample(expressions, random.randint(0, 2))]
    request = {"deviceClassName": name, "count": random.randint(1, 3), "selectors": selectors}
    claim = {"devices": {"requests": [{"name": "gpu", "exactly": request}]}}
    spec["resourceClaims"] = [{"name": "gpu", "resourceClaimName": pod}]
    path = f"/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims"
    return path, {"metadata": {"name": pod}, "spec": claim}


def _require(terms: Any) -> Json:
    return {"requiredDuringSchedulingIgnoredDuringExecution": terms}
