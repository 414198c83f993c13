"""Simulations, capacity and plans on a live cluster by this process, as the API answers."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from cli.client.problems import NotAllowed, NotFound, Problem, WrongRequest
from cli.client.transport import Query
from cli.direct.pod_case import LiveCase
from cli.direct.waiting_pods import list_waiting
from engine.capacity.added_nodes import AdditionError, parse_additions
from engine.capacity.defragment import plan_defragmentation
from engine.capacity.drain import NodeMissingError, plan_drain
from engine.capacity.purchase import plan_purchase
from engine.capacity.shapes import read_template
from engine.capacity.starts import plan_starts
from engine.cases.judging import build_case_cluster
from engine.cases.simulating import simulate_on_case
from engine.fit.manifests import ManifestError
from engine.simulation.setting import SimulationSetting
from engine.simulation.verdict import PodRejectedError
from engine.snapshot import kinds
from engine.snapshot.case_objects import CaseObjects
from schemas.json_types import Json

_PODS: Final = Path("the pods")
_HELD: Final = ("queue", "gate")
"""Layers in which a pod waits for no node."""
_NO_PODS: Final = NotAllowed("nodes or pods can't be read", "A plan needs the right to list both.")
_NO_NODES: Final = NotAllowed("the nodes can't be read", "`kubectl auth can-i list nodes`; or give --cluster FILE.")


def simulate_on_cluster(objects: CaseObjects, pods: bytes, namespace: str, count: int | None) -> Json | Problem:
    """Simulate the pods of a text on the objects that were read; ``count``: copies of each, None for one."""
    if not objects.has_read(kinds.NODE):
        return _NO_NODES
    try:
        return simulate_on_case(objects, pods, namespace, count, datetime.now(UTC))
    except ManifestError as error:
        return WrongRequest(str(error))


def count_starts(objects: CaseObjects, pods: bytes, namespace: str, query: Query) -> Json | Problem:
    """Count the pods of a text that start on the objects that were read. query: ``count``, ``add_node``."""
    if not objects.has_read(kinds.NODE):
        return _NO_NODES
    setting = SimulationSetting(datetime.now(UTC))
    try:
        template = read_template(pods, _PODS, namespace)
        wanted, additions = int(query.get("count") or template.replicas), parse_additions(query.get("add_node", ""))
        plan = plan_starts(objects.derive(build_case_cluster), template, wanted, additions, setting)
    except (ManifestError, AdditionError, PodRejectedError) as error:
        return WrongRequest(str(error))
    return plan.model_dump(mode="json")


def plan_moves_on_cluster(objects: CaseObjects, pods: bytes, namespace: str, query: Query) -> Json | Problem:
    """Plan the moves after which the pods of a text start. query: ``count``."""
    if not (objects.has_read(kinds.NODE) and objects.has_read(kinds.POD)):
        return _NO_PODS
    try:
        template = read_template(pods, _PODS, namespace)
        wanted = int(query.get("count") or template.replicas)
        cluster, setting = objects.derive(build_case_cluster), SimulationSetting(datetime.now(UTC))
        plan = plan_defragmentation(cluster, template, wanted, setting)
    except (ManifestError, PodRejectedError) as error:
        return WrongRequest(str(error))
    return plan.model_dump(mode="json")


def plan_purchase_of(live: LiveCase) -> Json | Problem:
    """Plan nodes for what waits; what a queue or a gate holds waits for no node."""
    objects = live.case.objects
    if not (objects.has_read(kinds.NODE) and objects.has_read(kinds.POD)):
        return _NO_PODS
    waiting = list_waiting(live)
    if isinstance(waiting, Problem):
        return waiting
    held = {
        (item.namespace, item.name): item.obstacle.sentence
        for item in waiting.items
        if item.obstacle and item.layer in _HELD
    }
    plan = plan_purchase(objects.derive(build_case_cluster), SimulationSetting(datetime.now(UTC)), held)
    return plan.model_dump(mode="json")


def plan_drain_of(objects: CaseObjects, node: str) -> Json | Problem:
    """Plan the drain of a node on the objects that were read."""
    if not (objects.has_read(kinds.NODE) and objects.has_read(kinds.POD)):
        return _NO_PODS
    try:
        plan = plan_drain(objects.derive(build_case_cluster), node, SimulationSetting(datetime.now(UTC)))
    except NodeMissingError:
        return NotFound(f"the node {node} does not exist", "`schedulerlog nodes` lists the nodes.")
    return plan.model_dump(mode="json")
