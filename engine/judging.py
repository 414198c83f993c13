"""One pod judged by all of kube-scheduler's filters, its resource claims included.

A module of its own because `engine.claims` builds on `engine.filters`, which therefore cannot import it.
"""

from datetime import datetime
from typing import Any

from engine.claims.filter_plugin import ClaimsPlugin
from engine.claims.gates import select_gates
from engine.claims.inventory import Inventory, read_inventory
from engine.filters.judge import judge
from engine.filters.judgement import Judgement
from engine.filters.release import LATEST, SchedulerRelease
from engine.snapshot.fields import RejectedObject
from engine.snapshot.snapshot import Snapshot


def judge_pod(
    snapshot: Snapshot,
    pod: Any,
    *,
    release: SchedulerRelease = LATEST,
    inventory: Inventory | None = None,
    now: datetime | None = None,
    alone: bool = False,
) -> Judgement | RejectedObject:
    """Judge a Pod object that waits; a malformed one is rejected, with the field and the cause.

    inventory: devices and claims of the same snapshot, where several pods are judged on it. now: without it, no binding
    of a device is overdue. alone: also what each filter by itself says of every node.
    """
    if inventory is None:
        inventory = read_inventory(snapshot, select_gates(release))
    return judge(snapshot, pod, release=release, devices=ClaimsPlugin(inventory, now=now), alone=alone)
