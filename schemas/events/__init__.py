"""The events, one model per type.

What is said once per attempt is a plain field. What is said per node or per device lies in *columns*: arrays of equal
length, one entry a row, with small tables beside them for the words that repeat (``verdicts[verdict[i]]``). One record
then holds about a hundred nodes, and a stream processor pays its cost per record once for all of them.

Every event about a pod names the pod, the scheduler and the attempt, so that none needs another topic to be
understood. Fields are only ever added; readers ignore fields they do not know.

    AttemptEvent
      DevicesJudged       one container against the devices of a run of nodes
      NodesJudged         what became of a run of nodes
      AttemptConcluded    the request, the counts, the chosen node
      BindConcluded       bound or not, and why not
      DetailDropped       device detail that was given up because the spool was full
      FindingReported     a placement that can't be right, and why
      AttemptSummarized   (pipeline) the whole attempt, ready to be read
      AttemptRepeated     (pipeline) an attempt that ended as an earlier one did
      Message             (pipeline) one line of event text, as in ``kubectl describe``
    TrendsCounted         (pipeline) what happened in a minute, counted
    NodeRegistered        the devices that a node offers, and its handshake
    NodeChecked           what is wrong with a node's registration and handshake
    PodObserved           what the cluster itself says about a pod
    NodeObserved          what the cluster itself says about a node
    Alert                 (pipeline) what somebody should look at, by rules
"""

from typing import Final

from schemas.events.alerts import AlertChanged
from schemas.events.base import (
    FITS,
    NOT_REACHED,
    NOT_REASONS,
    NOT_REPORTED,
    PICKED,
    REFUSED,
    TYPE_PREFIX,
    UNREGISTERED,
    AttemptEvent,
    Count,
    DeviceKind,
    Event,
    Integer,
    Model,
    Moment,
    PodRef,
    Provenance,
    Refusal,
    Request,
    Words,
    source_of,
)
from schemas.events.decisions import (
    AttemptConcluded,
    BindConcluded,
    DetailDropped,
    DeviceInventory,
    DeviceRow,
    DevicesJudged,
    DeviceVerdicts,
    NodesJudged,
    check_rows,
)
from schemas.events.findings import FindingReported
from schemas.events.observations import (
    Condition,
    NodeChecked,
    NodeEvent,
    NodeObserved,
    NodeProblem,
    NodeRegistered,
    PodObserved,
)
from schemas.events.summaries import (
    MAX_PARTS,
    AttemptRepeated,
    AttemptSummarized,
    Balance,
    BindOutcome,
    MessageEmitted,
    PickedDevice,
    Status,
)
from schemas.events.trends import TrendsCounted

__all__ = [
    "EVENTS",
    "FITS",
    "MAX_PARTS",
    "NOT_REACHED",
    "NOT_REASONS",
    "NOT_REPORTED",
    "PICKED",
    "REFUSED",
    "TYPE_PREFIX",
    "UNREGISTERED",
    "AlertChanged",
    "AttemptConcluded",
    "AttemptEvent",
    "AttemptRepeated",
    "AttemptSummarized",
    "Balance",
    "BindConcluded",
    "BindOutcome",
    "Condition",
    "Count",
    "DetailDropped",
    "DeviceInventory",
    "DeviceKind",
    "DeviceRow",
    "DeviceVerdicts",
    "DevicesJudged",
    "Event",
    "FindingReported",
    "Integer",
    "MessageEmitted",
    "Model",
    "Moment",
    "NodeChecked",
    "NodeEvent",
    "NodeObserved",
    "NodeProblem",
    "NodeRegistered",
    "NodesJudged",
    "PickedDevice",
    "PodObserved",
    "PodRef",
    "Provenance",
    "Refusal",
    "Request",
    "Status",
    "TrendsCounted",
    "Words",
    "check_rows",
    "source_of",
]

EVENTS: Final[tuple[type[Event], ...]] = (
    DevicesJudged,
    NodesJudged,
    AttemptConcluded,
    BindConcluded,
    DetailDropped,
    FindingReported,
    AttemptSummarized,
    AttemptRepeated,
    MessageEmitted,
    TrendsCounted,
    NodeRegistered,
    NodeObserved,
    NodeChecked,
    PodObserved,
    AlertChanged,
)
"""Every event type of the contract."""
