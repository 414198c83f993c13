"""Simulation of pods on a live cluster by this process: the answer of the API's ``POST /api/v1/simulate``."""

from datetime import UTC, datetime

from cli.client.problems import NotAllowed, Problem, WrongRequest
from engine.cases.simulating import simulate_on_case
from engine.fit.manifests import ManifestError
from engine.snapshot import kinds
from engine.snapshot.case_objects import CaseObjects
from schemas.json_types import Json


def simulate_on_cluster(objects: CaseObjects, pods: bytes, namespace: str, count: int | None) -> Json | Problem:
    """Simulate the pods of a text on the objects that were read; ``count``: copies of each, None for one."""
    if not objects.has_read(kinds.NODE):
        return NotAllowed("the nodes can't be read", "`kubectl auth can-i list nodes`; or give --cluster FILE.")
    try:
        return simulate_on_case(objects, pods, namespace, count, datetime.now(UTC))
    except ManifestError as error:
        return WrongRequest(str(error))
