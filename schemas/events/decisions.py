"""Decisions of a scheduler about a pod: devices, nodes, the end of the filter, the bind."""

from datetime import datetime, timedelta
from typing import Annotated, Any, ClassVar, Final, Literal, Self

from pydantic import Field, model_validator

from ..ids import count_microseconds
from .base import ATTEMPT_ID, TYPE_PREFIX, AttemptEvent, Model, Provenance, Refusal, Request
from .columns import Codes, CodeText, Floats, check_codes
from .device_models import PickedDevice
from .field_types import Count, Flag, Moment, Words
from .node_columns import check_node_columns, restore_scores, write_node_columns
from .pods import PodDescription

MAX_REQUESTS: Final = 500
"""Containers of a pod in its events: with more, a record would be larger than Kafka takes."""


class NodesJudged(AttemptEvent):
    """Verdicts on a run of nodes. All columns have an entry per node."""

    TYPE: ClassVar[str] = TYPE_PREFIX + "nodes.judged.v1"

    part: Count
    """Counts the records of this type within the attempt, from 0."""
    containers: Words
    """Names in the order of the attempt's requests."""
    verdicts: Words
    """The table behind ``verdict``: ``picked``, ``fits``, ``refused``, ``unregistered``, ``not reached``."""
    refusals: list[Refusal]
    """The table behind ``refusal``: each distinct one once."""
    nodes: Words
    """Names."""
    verdict: CodeText
    """Index into ``verdicts``."""
    score: Floats
    """0 where the node does not fit; empty in JSON where that is every node."""
    refused_by: CodeText
    """Index of the container that the node refused: the node passed those before it, and those after it were not
    reached; -1 for none."""
    refusal: Codes
    """Index into ``refusals``; -1 where the node does not refuse."""
    score_terms: dict[str, Floats] = Field(default_factory=dict)
    """The terms that ``score`` is the sum of, by name, an entry per node; empty where the source does not say them."""

    @model_validator(mode="after")
    def _columns_agree(self) -> Self:
        restore_scores(self)
        check_node_columns(self, self.score_terms)
        # Checked here once, so that readers may index tables without looking.
        check_codes({"refused_by": (self.refused_by, len(self.containers))})
        return self

    @property
    def id(self) -> str:
        return f"{self.attempt_id}/nodes/{self.part}"

    def to_json_fields(self) -> dict[str, Any]:
        return self.__dict__ | write_node_columns(self)


class JudgedObstacle(Model):
    """The main obstacle that the objects prove, as the pod's diagnosis names it, without pods of other namespaces."""

    code: str
    sentence_en: str
    sentence_zh: str


class Reconstruction(Model):
    """Verdicts that the reader worked out on the cluster's objects, because the scheduler only counts nodes.

    The attempt has them as node and device records. Only refused nodes are among them: a node that nothing refuses by
    the objects is counted in ``passing_nodes``.
    """

    agreement: Literal["equal", "different", "not compared"]
    """``equal``: as many nodes were refused for each reason as the scheduler counts. ``different``: they were not; the
    scheduler's counts hold, and the verdicts are what the objects say. ``not compared``: kinds of objects that decide
    could not be read."""
    counts: dict[str, Count] = Field(default_factory=dict)
    """Reason to number of nodes as worked out, in kube-scheduler's words; a node may count repeatedly."""
    passing_nodes: Count = 0
    """Number of nodes that nothing refuses by the objects."""
    passing: Words = Field(default_factory=list)
    """Names of the first of these nodes."""
    unread: Words = Field(default_factory=list)
    """Kinds of objects without which some verdict is open, as a right names them:
    ``persistentvolumes``, ``resourceslices.resource.k8s.io``."""
    obstacle: JudgedObstacle | None = None
    """The main obstacle of the nodes, with what the scheduler's words lack, such as the largest node or who holds it.
    Null unless the scheduler's counts are equal."""


class AttemptConcluded(AttemptEvent):
    """The end of the filter: what was asked, how much was judged, what was chosen."""

    TYPE: ClassVar[str] = TYPE_PREFIX + "attempt.concluded.v1"

    ended_at: Moment
    requests: list[Request]
    """Every container of the pod, init containers first, in the pod's order; of a pod with more than ``MAX_REQUESTS``
    the first ones."""
    requests_left_out: Count = 0
    """Number of further containers of the pod."""
    constraints: dict[str, str] | None = None
    """Annotations of the pod that constrain its devices and nodes; null where they are not known, or longer than 4,096
    characters."""
    description: PodDescription | None = None
    """Origin of the pod; null where the source does not report it."""
    settings_digest: str = ""
    """The scheduler's settings in force, as in ``SchedulerObserved``; empty where they are not known."""
    node_policy: str = ""
    """Policy for the choice of the node: ``binpack`` or ``spread``."""
    device_policy: str = ""
    """Policy for the choice of devices on the node."""
    offered_nodes: Count
    """Number of nodes that the scheduler was offered."""
    judged_nodes: Count
    judged_devices: Count
    """Rows of all ``DevicesJudged`` records."""
    device_records: Count
    node_records: Count
    """Number of records of the two kinds before this one; consumers derive from it what is missing."""
    chosen: str | None = None
    """The chosen node; null when none fits."""
    picked: list[PickedDevice] = Field(default_factory=list)
    """The devices taken on the chosen node, by container."""
    error: str = ""
    """Error that ended the attempt before any node was judged, in the scheduler's words."""
    provenance: Provenance | None = None
    """Evidence of the reader, and the parts it leaves open; null where the scheduler published the attempt itself."""
    refused_nodes: dict[str, Count] = Field(default_factory=dict)
    """Reason to number of nodes, of a scheduler that counts nodes without naming them; a node may count repeatedly."""
    nominated: str = ""
    """The node that the pod waits for until others have left it."""
    scheduler_message: str = ""
    """The end in the scheduler's own words, where it was read and not made here."""
    reconstruction: Reconstruction | None = None
    """Origin of the verdicts where the reader worked them out; null where they are the scheduler's own."""

    @property
    def id(self) -> str:
        return f"{self.attempt_id}/concluded"

    @property
    def time(self) -> datetime:
        return self.ended_at


UNCHANGED_FOR: Final = timedelta(minutes=30)
"""Longest time that ``AttemptUnchanged`` refers back. It never refers to the day before."""


class AttemptUnchanged(AttemptEvent):
    """The end of an attempt that differs from an earlier one of the same pod in nothing but its times.

    It stands for all records of the attempt: the scheduler published those of the attempt that ``repeats`` names in
    full, and found the same requests, verdicts and refusals again, on the same nodes in whatever order. That attempt
    chose no node, began on the same day (UTC) and at most ``UNCHANGED_FOR`` before, and never is unchanged itself.
    """

    TYPE: ClassVar[str] = TYPE_PREFIX + "attempt.unchanged.v1"

    ended_at: Moment
    repeats: Annotated[str, Field(pattern=ATTEMPT_ID)]
    """The id of the attempt that was published in full."""
    repeats_started_at: Moment
    """Start of that attempt."""

    @property
    def id(self) -> str:
        return f"{self.attempt_id}/unchanged"

    @property
    def time(self) -> datetime:
        return self.ended_at


class LockHolder(Model):
    """Holder of a node's lock, which keeps other pods from being bound to the node."""

    pod: str = ""
    """``namespace/name``; empty where the lock names none."""
    locked_at: Moment | None = None


class BindConcluded(AttemptEvent):
    """The chosen node was written into the pod, or could not be."""

    TYPE: ClassVar[str] = TYPE_PREFIX + "bind.concluded.v1"

    node: str
    bound: Flag
    error: str = ""
    """Error in the words of the scheduler or the API server; empty when bound."""
    lock_holder: LockHolder | None = None
    """Holder of the node's lock, where the bind failed because of it."""
    bind_started_at: Moment
    ended_at: Moment

    @property
    def id(self) -> str:
        # With the time: an attempt may have several binds, one that failed and a later one.
        return f"{self.attempt_id}/bind/{count_microseconds(self.ended_at)}"

    @property
    def time(self) -> datetime:
        return self.ended_at


class DetailDropped(AttemptEvent):
    """Device records of an attempt that were given up before they reached Kafka; verdicts of nodes never are."""

    TYPE: ClassVar[str] = TYPE_PREFIX + "detail.dropped.v1"

    dropped_at: Moment
    device_records: Count
    """Number of ``DevicesJudged`` records that were dropped."""
    judged_devices: Count
    """Number of rows in the dropped records."""
    cause: str

    @property
    def id(self) -> str:
        # With the time: an attempt may lose records more than once.
        return f"{self.attempt_id}/dropped/{count_microseconds(self.dropped_at)}"

    @property
    def time(self) -> datetime:
        return self.dropped_at
