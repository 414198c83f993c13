"""The events, one model per type.

Facts about a whole attempt are plain fields. Facts per node or per device lie in *columns*: arrays of equal length, one
entry a row, with small tables beside them for the words that repeat (``verdicts[verdict[i]]``). One record then holds
about a hundred nodes, and a stream processor pays its cost per record once for all of them.

Every event about a pod names the pod, the scheduler and the attempt, so that none needs another topic to be
understood. Fields are only ever added; readers ignore fields they do not know.

``base``          what all events share: ids, keys, verdicts
``field_types``   types of their fields: times, counts, names of clusters
  AttemptEvent
``devices``
    DevicesJudged       one container against the devices of a run of nodes
``decisions``
    NodesJudged         the verdicts on a run of nodes
    AttemptConcluded    the request, the counts, the chosen node
    AttemptUnchanged    in place of all these: an attempt that differs from an earlier one in its times only
    BindConcluded       bound or not, and why not
    DetailDropped       device detail that was dropped because the spool was full
``findings``
    FindingReported     a placement that contradicts the state of the cluster
``summaries``
    AttemptSummarized   (pipeline) the whole attempt, ready to be read
    AttemptRepeated     (pipeline) an attempt that ended as an earlier one did
``messages``
    MessagesEmitted     (pipeline) the lines of event text of a phase, as in ``kubectl describe``
``trends``
    AttemptCounted      (pipeline) what an attempt adds to the counts of its minute
  TrendsCounted         (pipeline) the counts of one minute
``pod_histories``
  PodHistoryChanged     (pipeline) the latest attempts of a pod, which its next one is compared with
``observations``
  NodeRegistered        the devices that a node offers, and its handshake
  NodeChecked           the problems of a node's registration and handshake
  PodObserved           what the cluster itself reports about a pod
  WorkloadObserved      an owner of pods that can't make them
  NodeObserved          what the cluster itself reports about a node
``schedulers``
  SchedulerObserved     a scheduler's version and settings
``node_states``
  NodeStateChanged      the devices of a node and what is in use of them, by revision
``alerts``
  AlertChanged          (pipeline) an alert fires or is resolved

``pods`` and ``device_models`` are what several events say of pods and devices, ``columns`` the types of columns, and
``node_columns`` the checks that events with a row per node share.
"""

from typing import Final

from .alerts import AlertChanged
from .base import (
    FILTER_END,
    FITS,
    NOT_REACHED,
    NOT_REASONS,
    NOT_REPORTED,
    OFFERED_NODES,
    PICKED,
    REFUSED,
    SCHEDULER,
    TYPE_PREFIX,
    UNREGISTERED,
    AttemptEvent,
    Event,
    Model,
    PodRef,
    Provenance,
    Refusal,
    Request,
    build_pod_key,
    build_source,
)
from .decisions import (
    MAX_REQUESTS,
    UNCHANGED_FOR,
    AttemptConcluded,
    AttemptUnchanged,
    BindConcluded,
    DetailDropped,
    JudgedObstacle,
    LockHolder,
    NodesJudged,
    Reconstruction,
)
from .device_models import DeviceAllocation, DeviceKind, MigInstanceProfile, PickedDevice
from .devices import NO_STATE, DeviceRow, DevicesJudged, StateOf
from .field_types import DEFAULT_CLUSTER, ClusterName, Count, Integer, Moment, Words
from .findings import FindingReported
from .messages import MessageLine, MessagesEmitted, PodMessage
from .node_states import MigSpan, MigUse, NodeStateChanged, VendorFields
from .observations import (
    Condition,
    NodeChecked,
    NodeEvent,
    NodeObserved,
    NodeProblem,
    NodeRegistered,
    ObjectProblem,
    PodObserved,
    WorkloadObserved,
)
from .pod_histories import PodHistoryChanged, PublishedAttempt, PublishedReport, SummaryLocation
from .pods import Owner, PodDescription
from .schedulers import SchedulerObserved, compute_settings_digest
from .summaries import (
    MAX_PARTS,
    MAX_REPEATED_TEXT,
    AttemptRepeated,
    AttemptSummarized,
    Balance,
    BindOutcome,
    PodWait,
    Report,
    Status,
)
from .trends import AttemptCounted, Contribution, TrendsCounted

__all__ = [
    "DEFAULT_CLUSTER",
    "EVENTS",
    "FILTER_END",
    "FITS",
    "MAX_PARTS",
    "MAX_REPEATED_TEXT",
    "MAX_REQUESTS",
    "NOT_REACHED",
    "NOT_REASONS",
    "NOT_REPORTED",
    "NO_STATE",
    "OFFERED_NODES",
    "PICKED",
    "REFUSED",
    "SCHEDULER",
    "TYPE_PREFIX",
    "UNCHANGED_FOR",
    "UNREGISTERED",
    "AlertChanged",
    "AttemptConcluded",
    "AttemptCounted",
    "AttemptEvent",
    "AttemptRepeated",
    "AttemptSummarized",
    "AttemptUnchanged",
    "Balance",
    "BindConcluded",
    "BindOutcome",
    "ClusterName",
    "Condition",
    "Contribution",
    "Count",
    "DetailDropped",
    "DeviceAllocation",
    "DeviceKind",
    "DeviceRow",
    "DevicesJudged",
    "Event",
    "FindingReported",
    "Integer",
    "JudgedObstacle",
    "LockHolder",
    "MessageLine",
    "MessagesEmitted",
    "MigInstanceProfile",
    "MigSpan",
    "MigUse",
    "Model",
    "Moment",
    "NodeChecked",
    "NodeEvent",
    "NodeObserved",
    "NodeProblem",
    "NodeRegistered",
    "NodeStateChanged",
    "NodesJudged",
    "ObjectProblem",
    "Owner",
    "PickedDevice",
    "PodDescription",
    "PodHistoryChanged",
    "PodMessage",
    "PodObserved",
    "PodRef",
    "PodWait",
    "Provenance",
    "PublishedAttempt",
    "PublishedReport",
    "Reconstruction",
    "Refusal",
    "Report",
    "Request",
    "SchedulerObserved",
    "StateOf",
    "Status",
    "SummaryLocation",
    "TrendsCounted",
    "VendorFields",
    "Words",
    "WorkloadObserved",
    "build_pod_key",
    "build_source",
    "compute_settings_digest",
]

EVENTS: Final[tuple[type[Event], ...]] = (
    DevicesJudged,
    NodesJudged,
    AttemptConcluded,
    AttemptUnchanged,
    BindConcluded,
    DetailDropped,
    FindingReported,
    AttemptSummarized,
    AttemptRepeated,
    MessagesEmitted,
    AttemptCounted,
    TrendsCounted,
    PodHistoryChanged,
    NodeRegistered,
    NodeObserved,
    NodeChecked,
    NodeStateChanged,
    PodObserved,
    WorkloadObserved,
    SchedulerObserved,
    AlertChanged,
)
"""Every event type of the contract."""
