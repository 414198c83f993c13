"""The OpenSearch indices: what each family holds, and for how long.

Indices are named by the day or month of the attempt's own start, so that an attempt that is written again replaces
itself; a rollover alias or a data stream would hold it twice. Mappings are strict: a field that is not declared is a
defect of this project, and OpenSearch refuses it as one.
"""

from datetime import timedelta
from typing import Any, Final

from .index_family import Index
from .index_fields import (
    ATTEMPT,
    BOOLEAN,
    COUNT,
    DATE,
    DESCRIPTION,
    KEYWORD,
    SECONDS,
    STORED,
    TEXT,
)

ATTEMPTS: Final = Index(
    alias="schedulerlog-attempts",
    description="One document per scheduling attempt; the detail per node is stored, not indexed field by field",
    properties={
        **ATTEMPT,
        **DESCRIPTION,
        "status": KEYWORD,
        "sources": KEYWORD,
        "report_ids": KEYWORD,
        "complete": BOOLEAN,
        "ended_at": DATE,
        "chosen": KEYWORD,
        "picked_devices": KEYWORD,
        "offered_nodes": COUNT,
        "fit_nodes": COUNT,
        "judged_devices": COUNT,
        "nodes": KEYWORD,
        # The code of the obstacle that decided; `reasons` has all that refused a node.
        "obstacle": KEYWORD,
        "reasons": KEYWORD,
        # ``node|reason`` of each refusal: `nodes` and `reasons` alone do not say which belongs to which, and a nested
        # object per node would be a document per node.
        "node_reasons": KEYWORD,
        "bound": BOOLEAN,
        "episode": KEYWORD,
        "episode_started_at": DATE,
        "first_judged_at": DATE,
        "created_at": DATE,
        "changes": TEXT,
        "repeats": KEYWORD,
        "repeated": STORED,
        "text": TEXT,
        # The summary itself, for the API; every field above is a copy of a part of it, to search by.
        "summary": STORED,
    },
)

DEVICES: Final = Index(
    alias="schedulerlog-devices",
    description="The verdicts device by device: one document per record of devices judged",
    properties={
        **ATTEMPT,
        "container": KEYWORD,
        "nodes": KEYWORD,
        "reasons": KEYWORD,
        "record": STORED,
    },
    # The largest documents by far, and of use only as long as the pod is in mind.
    retention=timedelta(days=7),
)

NODE_STATES: Final = Index(
    alias="schedulerlog-node-states",
    description="The devices of a node and their use: one document per revision and day of writing",
    properties={
        "@timestamp": DATE,
        "cluster": KEYWORD,
        "scheduler": KEYWORD,
        "node": KEYWORD,
        "epoch": COUNT,
        "revision": COUNT,
        "devices": KEYWORD,
        "state": STORED,
    },
    # A state is written once a day at least: verdicts of one day find it in the index of that day or the day before.
    retention=DEVICES.retention + timedelta(days=1),
    is_written_daily=True,
)

FINDINGS: Final = Index(
    alias="schedulerlog-findings",
    description="Attempts and placements that contradict the state of the cluster, one document each",
    period="month",
    properties={
        **ATTEMPT,
        "finding": KEYWORD,
        "found_at": DATE,
        "node": KEYWORD,
        "device": KEYWORD,
        "numbers": STORED,
        "evidence": TEXT,
        "evidence_pods": KEYWORD,
    },
)

OF_MINUTES: Final[dict[str, Any]] = {"exists": {"field": "partition"}}
"""Query for counts of minutes; those of hours are of all partitions."""
TRENDS: Final = Index(
    alias="schedulerlog-trends",
    description="Counts of minutes, after a week of hours, to be summed: per partition, ten minutes and combination",
    period="month",
    properties={
        "@timestamp": DATE,
        "cluster": KEYWORD,
        "partition": COUNT,
        "recorded_at": DATE,
        "namespace": KEYWORD,
        "result": KEYWORD,
        "dimension": KEYWORD,
        "value": KEYWORD,
        "attempts": COUNT,
        "pods": COUNT,
        "nodes": COUNT,
        "devices": COUNT,
    },
    retention=timedelta(days=90),
    # Hours are written before they are shown in place of their minutes.
    shown_at_first=OF_MINUTES,
)

MINUTES_SHOWN: Final = timedelta(days=7)
"""Age up to which counts are of minutes; `retention` sums older ones up into hours."""

NOT_ENDED: Final[dict[str, Any]] = {"bool": {"must_not": [{"exists": {"field": "ended_at"}}]}}
"""Query for placements that have not ended."""

LAYERS: Final = ("queue", "gate", "nodes", "bind", "start")
"""Layers in which a pod waits, in the order in which it passes them; each has a field, as only fields are summed."""
OCCUPANCY: Final = Index(
    alias="schedulerlog-occupancy",
    description="Placements: one document for each, with pod, node, devices, beginning and end",
    period="month",
    # Documents are compressed in blocks: those of a page of nodes would lie in as many blocks as there are pods.
    sorted_by="node",
    properties={
        **ATTEMPT,
        "ended_at": DATE,
        "ended_by": KEYWORD,
        "node": KEYWORD,
        "phase": KEYWORD,
        "devices": KEYWORD,
        "allocations": STORED,
        **DESCRIPTION,
        # With the whole of it, from which those fields are copies.
        "description": STORED,
        "created_at": DATE,
        "first_judged_at": DATE,
        "judged_at": DATE,
        "bound_at": DATE,
        "running_at": DATE,
        # The obstacle that the wait is charged to; `waited_for` has every reason that was seen.
        "obstacle": KEYWORD,
        "waited_for": KEYWORD,
        "placement_seconds": SECONDS,
        "start_seconds": SECONDS,
        # The parts of the wait by the layer that held the pod; they add up to one of the two above.
        **{f"{layer}_wait_seconds": SECONDS for layer in LAYERS},
        # Forecasts of the start, with the numbers that the start has judged and that were right.
        "forecasts": STORED,
        "forecasts_judged": COUNT,
        "forecasts_right": COUNT,
        # The facts behind the placement: a process that starts anywhere in the topics continues from these (decision
        # 0014).
        "known": STORED,
        "text": TEXT,
    },
    retention=timedelta(days=90),
    # A pod may run longer than the retention; deleting its day would make it seem to be nowhere.
    kept_while=NOT_ENDED,
)

OBSERVATIONS: Final = Index(
    alias="schedulerlog-observations",
    description="Observations of pods, nodes, workloads and schedulers: one document whenever the state differs",
    period="month",
    properties={
        "@timestamp": DATE,
        "cluster": KEYWORD,
        "kind": KEYWORD,
        "namespace": KEYWORD,
        "pod": KEYWORD,
        "pod_uid": KEYWORD,
        "node": KEYWORD,
        "scheduler": KEYWORD,
        "instance": KEYWORD,
        "settings_digest": KEYWORD,
        "workload": KEYWORD,
        "phase": KEYWORD,
        "problems": KEYWORD,
        "devices": KEYWORD,
        "digest": KEYWORD,
        "text": TEXT,
        "event": STORED,
    },
)

POD_STATES: Final = Index(
    alias="schedulerlog-pod-states",
    description="Latest state of each pod: whether it waits, since when and for what. One document per pod's name",
    properties={
        **ATTEMPT,
        "state": KEYWORD,
        "status": KEYWORD,
        "reasons": KEYWORD,
        **DESCRIPTION,
        # The workload with its namespace, or the pod itself where it has none: what waiting pods are grouped by.
        "group": KEYWORD,
        "created_at": DATE,
        "first_judged_at": DATE,
        "attempts": COUNT,
        # Why it waits, see ``PodWait``: the obstacle's code, and with it what is asked for, to group equal pods by.
        "obstacle": KEYWORD,
        "layer": KEYWORD,
        "obstacle_group": KEYWORD,
        "models": KEYWORD,
        "pools": KEYWORD,
        "asked_devices": COUNT,
        "asked_devices_seconds": SECONDS,
        # For the order in which pods are tried: the higher one first, null counts as 0.
        "priority": COUNT,
        "wait": STORED,
    },
    # Above the topics' retention: a record that is read again must not bring back a pod whose end is forgotten.
    retention=timedelta(days=14),
    period="all",
)

INDICES: Final = (ATTEMPTS, DEVICES, NODE_STATES, FINDINGS, TRENDS, OCCUPANCY, OBSERVATIONS, POD_STATES)
OF_DAYS: Final = {index.alias: index for index in INDICES if index.period == "day"}
"""By alias, the families with an index a day, or a month where a day has little."""
