"""The OpenSearch indices: names, aliases, templates.

Indices are daily and named by the attempt's own start, so that an attempt that is written again replaces itself; a
rollover alias or a data stream would hold it twice. Mappings are strict: a field that is not declared is a defect of
this project, and OpenSearch refuses it as one.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

MAPPING_VERSION: Final = 5
"""Written into the ``_meta`` of every template; a worker refuses to write through another version. A later version only
adds fields, so indices that are there take it over."""


@dataclass(frozen=True, slots=True)
class Index:
    """A family of daily indices behind one alias."""

    alias: str
    about: str
    properties: dict[str, Any]
    retention: timedelta = timedelta(days=30)
    kept_while: dict[str, Any] | None = None
    """A query: a day that has a document like that is kept, however old it is."""

    def name(self, started_at: datetime) -> str:
        """The index of the day (UTC) in which the attempt started."""
        # Called for every document; times of events are in UTC already, so the conversion is rarely needed.
        day = started_at if started_at.tzinfo is UTC else started_at.astimezone(UTC)
        return f"{self.alias}-{day.year:04}.{day.month:02}.{day.day:02}"

    def template(self, shards: int = 1, replicas: int = 0) -> dict[str, Any]:
        """The body of ``PUT _index_template/{alias}``."""
        return {
            "index_patterns": [f"{self.alias}-*"],
            # Above OpenSearch's default of 0, so that a catch-all template of the cluster does not win over this one.
            "priority": 200,
            "template": {
                "aliases": {self.alias: {}},
                "settings": {
                    "index": {
                        "number_of_shards": shards,
                        "number_of_replicas": replicas,
                        # What is read by id is exact at once (decision 0003); a second is how late a search may be.
                        "refresh_interval": "1s",
                        # Most of a document is stored JSON that is never searched: size matters more than the CPU of
                        # reading one.
                        "codec": "best_compression",
                    }
                },
                "mappings": {
                    "dynamic": "strict",
                    "_meta": {"schedulerlog_mapping_version": MAPPING_VERSION, "about": self.about},
                    "properties": self.properties,
                },
            },
            "_meta": {"schedulerlog_mapping_version": MAPPING_VERSION, "about": self.about},
        }


# Lucene refuses a term above 32,766 bytes and with it the whole document. Longer values are stored, not searchable.
_KEYWORD: Final = {"type": "keyword", "ignore_above": 1024}
_TEXT: Final = {"type": "text"}
_DATE: Final = {"type": "date"}
_COUNT: Final = {"type": "long"}
_SECONDS: Final = {"type": "double"}
_BOOLEAN: Final = {"type": "boolean"}
# Not parsed, not indexed, returned as it came: 5,000 nodes as fields or nested objects would exceed OpenSearch's limit
# of 10,000 nested objects and cost 2.3 times the indexing (decision 0006).
_STORED: Final = {"type": "object", "enabled": False}

_DESCRIPTION: Final = {
    "workload": _KEYWORD,
    "pod_group": _KEYWORD,
    "queue": _KEYWORD,
    "priority_class": _KEYWORD,
    "service_account": _KEYWORD,
    # ``name=value`` of each: their names are the operator's, and no field may appear that the mapping does not have.
    "labels": _KEYWORD,
}
_ATTEMPT: Final = {
    "@timestamp": _DATE,
    "cluster": _KEYWORD,
    "attempt_id": _KEYWORD,
    "namespace": _KEYWORD,
    "pod": _KEYWORD,
    "pod_uid": _KEYWORD,
    "scheduler": _KEYWORD,
}

ATTEMPTS: Final = Index(
    alias="schedulerlog-attempts",
    about="One document per scheduling attempt; the detail per node is stored, not indexed field by field",
    properties={
        **_ATTEMPT,
        **_DESCRIPTION,
        "status": _KEYWORD,
        "sources": _KEYWORD,
        "report_ids": _KEYWORD,
        "complete": _BOOLEAN,
        "ended_at": _DATE,
        "chosen": _KEYWORD,
        "picked_devices": _KEYWORD,
        "offered_nodes": _COUNT,
        "fit_nodes": _COUNT,
        "judged_devices": _COUNT,
        "nodes": _KEYWORD,
        "reasons": _KEYWORD,
        # ``node|reason`` of each refusal: `nodes` and `reasons` alone do not say which belongs to which, and a nested
        # object per node would be a document per node.
        "node_reasons": _KEYWORD,
        "bound": _BOOLEAN,
        "episode": _KEYWORD,
        "episode_started_at": _DATE,
        "first_judged_at": _DATE,
        "created_at": _DATE,
        "changes": _TEXT,
        "repeats": _KEYWORD,
        "repeated": _STORED,
        "text": _TEXT,
        # The summary itself, for the API; every field above is a copy of a part of it, to search by.
        "summary": _STORED,
    },
)

DEVICES: Final = Index(
    alias="schedulerlog-devices",
    about="The verdicts device by device: one document per record of devices judged",
    properties={
        **_ATTEMPT,
        "container": _KEYWORD,
        "nodes": _KEYWORD,
        "reasons": _KEYWORD,
        "record": _STORED,
    },
    # The largest documents by far, and of use only as long as the pod is in mind.
    retention=timedelta(days=7),
)

NODE_STATES: Final = Index(
    alias="schedulerlog-node-states",
    about="The devices of a node and what was in use of them: a document per revision and day on which it was written",
    properties={
        "@timestamp": _DATE,
        "cluster": _KEYWORD,
        "scheduler": _KEYWORD,
        "node": _KEYWORD,
        "epoch": _COUNT,
        "revision": _COUNT,
        "devices": _KEYWORD,
        "state": _STORED,
    },
    # A state is written once a day at least: verdicts of one day find it in the index of that day or the day before.
    retention=DEVICES.retention + timedelta(days=1),
)

FINDINGS: Final = Index(
    alias="schedulerlog-findings",
    about="Attempts and placements that contradict the state of the cluster, one document each",
    properties={
        **_ATTEMPT,
        "finding": _KEYWORD,
        "found_at": _DATE,
        "node": _KEYWORD,
        "device": _KEYWORD,
        "numbers": _STORED,
        "evidence": _TEXT,
    },
)

TRENDS: Final = Index(
    alias="schedulerlog-trends",
    about="Counts of each minute, to be added up: a document per partition, ten minutes of recording and combination",
    properties={
        "@timestamp": _DATE,
        "cluster": _KEYWORD,
        "partition": _COUNT,
        "recorded_at": _DATE,
        "namespace": _KEYWORD,
        "result": _KEYWORD,
        "dimension": _KEYWORD,
        "value": _KEYWORD,
        "attempts": _COUNT,
        "pods": _COUNT,
        "nodes": _COUNT,
        "devices": _COUNT,
    },
    retention=timedelta(days=90),
)

NOT_ENDED: Final[dict[str, Any]] = {"bool": {"must_not": [{"exists": {"field": "ended_at"}}]}}
"""The query for placements that have not ended."""

OCCUPANCY: Final = Index(
    alias="schedulerlog-occupancy",
    about="Which pod was on which node with which devices, from when to when: one document per placement",
    properties={
        **_ATTEMPT,
        "ended_at": _DATE,
        "ended_by": _KEYWORD,
        "node": _KEYWORD,
        "phase": _KEYWORD,
        "devices": _KEYWORD,
        "allocations": _STORED,
        **_DESCRIPTION,
        # With the whole of it, from which those fields are copies.
        "description": _STORED,
        "created_at": _DATE,
        "first_judged_at": _DATE,
        "judged_at": _DATE,
        "bound_at": _DATE,
        "running_at": _DATE,
        "waited_for": _KEYWORD,
        "placement_seconds": _SECONDS,
        "start_seconds": _SECONDS,
        # The facts behind the placement: a process that starts anywhere in the topics continues from these (decision
        # 0014).
        "known": _STORED,
        "text": _TEXT,
    },
    retention=timedelta(days=90),
    # A pod may run longer than the retention; deleting its day would make it seem to be nowhere.
    kept_while=NOT_ENDED,
)

OBSERVATIONS: Final = Index(
    alias="schedulerlog-observations",
    about="Observations of pods, nodes, workloads and schedulers: one document whenever the state differs",
    properties={
        "@timestamp": _DATE,
        "cluster": _KEYWORD,
        "kind": _KEYWORD,
        "namespace": _KEYWORD,
        "pod": _KEYWORD,
        "pod_uid": _KEYWORD,
        "node": _KEYWORD,
        "scheduler": _KEYWORD,
        "instance": _KEYWORD,
        "settings_digest": _KEYWORD,
        "workload": _KEYWORD,
        "phase": _KEYWORD,
        "problems": _KEYWORD,
        "devices": _KEYWORD,
        "digest": _KEYWORD,
        "text": _TEXT,
        "event": _STORED,
    },
)

INDICES: Final = (ATTEMPTS, DEVICES, NODE_STATES, FINDINGS, TRENDS, OCCUPANCY, OBSERVATIONS)
