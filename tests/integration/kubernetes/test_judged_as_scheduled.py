"""Random pods on random clusters: the judge's verdict on each is what the real kube-scheduler writes about it.

Twenty pods in the suite, two hundred under `make stress`, which takes other clusters every day; SCHEDULERLOG_TEST_SEED
names the first seed to repeat a run.
"""

import os
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random

import httpx
import pytest

from dev.embedded.control_plane import ControlPlane
from engine.filters.judgement import JudgedOutcome, Judgement
from engine.judging import judge_pod
from engine.snapshot.reading import read_snapshot
from schemas.json_types import Json
from tests.support.builders.random_clusters import RandomPod, build_random_objects, build_random_pod
from tests.support.control_plane.objects import create, created_namespace, created_nodes
from tests.support.control_plane.plain_scheduler import SCHEDULER
from tests.support.control_plane.scheduled_pods import (
    Scheduled,
    create_volume,
    delete_objects,
    read_objects,
    schedule_pod,
)
from tests.support.stress import IS_STRESS

NODES = 10
PODS = 40 if IS_STRESS else 20
CLUSTERS = 5 if IS_STRESS else 1
FIRST_SEED = int(os.environ.get("SCHEDULERLOG_TEST_SEED", datetime.now(UTC).toordinal() * 100 if IS_STRESS else 38))
TRIES = 3
"""Attempts at a pod before a difference counts: the watches of kube-scheduler may lag behind what was read."""


@dataclass(frozen=True, slots=True)
class World:
    """A random cluster on the API server."""

    client: httpx.Client
    name: str

    def compare(self, random_pod: RandomPod) -> tuple[Judgement, Scheduled]:
        """Judge a pod on what the API server holds, let kube-scheduler try it, and take it away again."""
        for path, claim in random_pod.claims:
            create(self.client, path, claim)
        objects = read_objects(self.client)
        pod, scheduled = schedule_pod(self.client, random_pod.namespace, random_pod.pod)
        judgement = judge_pod(read_snapshot(objects), pod, now=datetime.now(UTC))
        assert isinstance(judgement, Judgement), judgement
        name = pod["metadata"]["name"]
        claims = [f"{path}/{claim['metadata']['name']}" for path, claim in random_pod.claims]
        delete_objects(self.client, [f"/api/v1/namespaces/{random_pod.namespace}/pods/{name}", *claims])
        return judgement, scheduled


@contextmanager
def created_cluster(cluster: ControlPlane, seed: int) -> Iterator[World]:
    """A random cluster with its pods in place, until the block ends."""
    name = f"judged-{uuid.uuid4().hex[:6]}"
    objects = build_random_objects(Random(seed), name, NODES)
    with ExitStack() as stack:
        client = stack.enter_context(cluster.open_client())
        stack.enter_context(created_nodes(cluster, objects.nodes))
        for namespace in objects.namespaces:
            stack.enter_context(
                created_namespace(cluster, namespace["metadata"]["name"], namespace["metadata"]["labels"])
            )
        for path, body in objects.others:
            create(client, path, body)
            stack.callback(delete_objects, client, [f"{path}/{body['metadata']['name']}"])
        for volume in objects.volumes:
            create_volume(client, volume)
            stack.callback(delete_objects, client, [f"/api/v1/persistentvolumes/{volume['metadata']['name']}"])
        for pod in objects.pods:
            create(client, f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods", pod)
        yield World(client, name)


@pytest.mark.stress
@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + CLUSTERS))
def test_the_judge_says_of_a_pod_what_kube_scheduler_says(
    control_plane: ControlPlane, seed: int, figure: Callable[[str], None]
) -> None:
    control_plane.start_scheduler({"profiles": [{"schedulerName": SCHEDULER}]})
    outcomes: Counter[str] = Counter()
    reasons: set[str] = set()
    with created_cluster(control_plane, seed) as world:
        for index in range(PODS):
            random_pod = build_random_pod(Random(f"{seed}-{index}"), world.name, index, NODES, SCHEDULER)
            judgement = compare_until_equal(world, random_pod, f"seed {seed}, pod {index}")
            outcomes[judgement.outcome.value] += 1
            reasons |= judgement.counts.keys()
    assert outcomes["fits"]
    assert outcomes["unfit"]
    figure(f"seed {seed}: {PODS} pods judged as kube-scheduler does ({dict(outcomes)}; {len(reasons)} reasons)")


def compare_until_equal(world: World, random_pod: RandomPod, title: str) -> Judgement:
    """Return the judgement that says what kube-scheduler says; fail with both where they differ every time."""
    for _ in range(TRIES):
        judgement, scheduled = world.compare(random_pod)
        difference = describe_difference(judgement, scheduled)
        if not difference:
            return judgement
    raise AssertionError(f"{title}: {difference}\n{random_pod.pod}\n{random_pod.claims}")


def describe_difference(judgement: Judgement, scheduled: Scheduled) -> str:
    """Describe what the judge says otherwise; "" where both say the same."""
    if not judgement.is_certain:
        return f"not certain: {judgement.undecided} {judgement.unjudged}"
    if judgement.outcome is JudgedOutcome.FITS:
        fits = scheduled.node in judgement.fitting
        return "" if fits else f"fits {judgement.fitting}, and kube-scheduler says {scheduled}"
    if judgement.outcome is JudgedOutcome.GATED:
        return "" if scheduled.reason == "SchedulingGated" else f"gated, and kube-scheduler says {scheduled}"
    messages = (judgement.message, *judgement.error_messages)
    return "" if scheduled.message in messages else f"{judgement.message!r}, and kube-scheduler says {scheduled}"


def test_a_verdict_that_differs_is_described() -> None:
    pod: Json = {"metadata": {"name": "p", "namespace": "n", "uid": "u"}, "spec": {"containers": [{"name": "c"}]}}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": {"allocatable": {"pods": "1"}}}
    fits = judge_pod(read_snapshot([node]), pod)
    assert isinstance(fits, Judgement)
    assert describe_difference(fits, Scheduled("n1", "", "")) == ""
    assert describe_difference(fits, Scheduled("", "Unschedulable", "0/1 nodes are available")).startswith("fits")
