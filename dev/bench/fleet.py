"""A fleet of one size with any number of running pods, and pods that fit on no node or on a tenth of the nodes.

The verdicts on the hopeless pod do not depend on the number of running pods, so only the work on these differs.
"""

import json
import random
import uuid
from collections.abc import Iterator

from dev.bench import cluster
from dev.bench.cluster import DEVICES_PER_NODE, Object
from engine.fit.manifests import Manifest

SMALL_MIB, BIG_MIB = 81_559, 143_771
BIG_EVERY = 10


def build_manifest(nodes: int, pods: int) -> Manifest:
    """Build seeded nodes of eight devices, every tenth with larger ones, and pods that use one device each, in
    turns."""
    chance = random.Random(nodes)
    # Nodes first, so that their devices are the same for every number of pods.
    listed = {name: _build_node(name, number, chance) for number, name in enumerate(list_node_names(nodes))}
    devices = [device for device in range(DEVICES_PER_NODE) for _ in range(nodes)]
    running = (_build_pod(number, number % nodes, devices[number % len(devices)], chance) for number in range(pods))
    return Manifest(listed, {(pod["metadata"]["namespace"], pod["metadata"]["name"]): pod for pod in running})


def list_node_names(nodes: int) -> list[str]:
    return [f"gpu-node-{number:05d}" for number in range(nodes)]


def derive_device_uuid(node: int, device: int) -> str:
    # Derived and not drawn: pods refer to devices without the node being looked up.
    return f"GPU-{uuid.uuid5(uuid.NAMESPACE_OID, f'{node}/{device}')}"


def _build_node(name: str, number: int, chance: random.Random) -> Object:
    is_big = number % BIG_EVERY == 0
    model, memory = ("NVIDIA H200", BIG_MIB) if is_big else ("NVIDIA H100 80GB HBM3", SMALL_MIB)
    broken = chance.randrange(DEVICES_PER_NODE * 4)
    devices = [
        {
            "id": derive_device_uuid(number, device),
            "index": device,
            "count": 10,
            "devmem": memory,
            "devcore": 100,
            "type": model,
        }
        | {"numa": device // 4, "mode": "hami-core", "health": device != broken}
        for device in range(DEVICES_PER_NODE)
    ]
    resources = {"nvidia.com/gpu": str(10 * DEVICES_PER_NODE)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "annotations": {"hami.io/node-nvidia-register": json.dumps(devices)},
        },
        "status": {"capacity": resources, "allocatable": resources},
    }


def _build_pod(number: int, node: int, device: int, chance: random.Random) -> Object:
    return build_running_pod(number, node, device, chance.randrange(500, 20_000), chance.randrange(0, 40))


def build_running_pod(number: int, node: int, device: int, memory: int, cores: int) -> Object:
    """Build a pod that uses a part of one device."""
    return cluster.build_running_pod(
        f"gpu-node-{node:05d}", number, [(derive_device_uuid(node, device), memory, cores)]
    )


def iterate_bodies(nodes: int, calls: int, *, fits: bool, tries: int = 1) -> Iterator[bytes]:
    """POST /filter bodies, so many ``tries`` for each pod, in another order of the nodes each time. It requests more
    memory than a small device, or than any, has."""
    names, chance = list_node_names(nodes), random.Random(calls)
    for number in (call // tries for call in range(calls)):
        if tries > 1:
            chance.shuffle(names)
        # By memory alone, which pods here never use up: so running pods change the work and not the verdicts.
        limits = {"nvidia.com/gpu": 1 if fits else 2, "nvidia.com/gpumem": 100_000 if fits else 150_000}
        name = f"{'fits' if fits else 'hopeless'}-{tries}-{number}"
        uid = uuid.UUID(int=2**64 + number + fits * 2**32 + tries * 2**40)
        pod = {
            "metadata": {"namespace": "llm", "name": name, "uid": str(uid)},
            "spec": {"containers": [{"name": "worker", "resources": {"limits": limits}}]},
        }
        yield json.dumps({"Pod": pod, "Nodes": None, "NodeNames": names}).encode()
