"""A fleet of one size with any number of running pods, and pods that no node or a tenth of the nodes can take.

The verdicts on the hopeless pod are the same however many pods run, so that only the pods make the difference.
"""

import json
import random
import uuid
from collections.abc import Iterator

from bench import cluster
from bench.cluster import CARDS, Object
from scheduler.cluster.manifests import Manifest

SMALL_MIB, BIG_MIB = 81_559, 143_771
BIG_EVERY = 10


def manifest(nodes: int, pods: int) -> Manifest:
    """Seeded: nodes of eight cards, every tenth with bigger ones, and pods of one card each, dealt round."""
    chance = random.Random(nodes)
    listed = {name: _node(name, number, chance) for number, name in enumerate(node_names(nodes))}
    cards = [card for card in range(CARDS) for _ in range(nodes)]
    running = (_pod(number, number % nodes, cards[number % len(cards)], chance) for number in range(pods))
    return Manifest(listed, {(pod["metadata"]["namespace"], pod["metadata"]["name"]): pod for pod in running})


def node_names(nodes: int) -> list[str]:
    return [f"gpu-node-{number:05d}" for number in range(nodes)]


def card_uuid(node: int, card: int) -> str:
    return f"GPU-{uuid.uuid5(uuid.NAMESPACE_OID, f'{node}/{card}')}"


def _node(name: str, number: int, chance: random.Random) -> Object:
    is_big = number % BIG_EVERY == 0
    model, memory = ("NVIDIA H200", BIG_MIB) if is_big else ("NVIDIA H100 80GB HBM3", SMALL_MIB)
    broken = chance.randrange(CARDS * 4)
    cards = [
        {"id": card_uuid(number, card), "index": card, "count": 10, "devmem": memory, "devcore": 100, "type": model}
        | {"numa": card // 4, "mode": "hami-core", "health": card != broken}
        for card in range(CARDS)
    ]
    resources = {"nvidia.com/gpu": str(10 * CARDS)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "annotations": {"hami.io/node-nvidia-register": json.dumps(cards)},
        },
        "status": {"capacity": resources, "allocatable": resources},
    }


def _pod(number: int, node: int, card: int, chance: random.Random) -> Object:
    return running_pod(number, node, card, chance.randrange(500, 20_000), chance.randrange(0, 40))


def running_pod(number: int, node: int, card: int, memory: int, cores: int) -> Object:
    """A pod that holds a part of one card."""
    return cluster.running_pod(f"gpu-node-{node:05d}", number, [(card_uuid(node, card), memory, cores)])


def bodies(nodes: int, calls: int, *, fits: bool) -> Iterator[bytes]:
    """One POST /filter body per call, each about another pod: two cards of more memory than a small one has, or any."""
    for number in range(calls):
        limits = {"nvidia.com/gpu": 1 if fits else 2, "nvidia.com/gpumem": 100_000 if fits else 150_000}
        name = f"{'fits' if fits else 'hopeless'}-{number}"
        pod = {
            "metadata": {"namespace": "llm", "name": name, "uid": str(uuid.UUID(int=2**64 + number + fits * 2**32))},
            "spec": {"containers": [{"name": "worker", "resources": {"limits": limits}}]},
        }
        yield json.dumps({"Pod": pod, "Nodes": None, "NodeNames": node_names(nodes)}).encode()
