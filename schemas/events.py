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
      AttemptSummarized   (pipeline) the whole attempt, ready to be read
      Message             (pipeline) one line of event text, as in ``kubectl describe``
    NodeRegistered        the devices that a node offers, and its handshake
    PodObserved           what the cluster itself says about a pod
    NodeObserved          what the cluster itself says about a node
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, Final, Literal, NamedTuple, Self
from urllib.parse import quote

import numpy as np
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, FailFast, Field, model_validator

from schemas.columns import Codes, Floats, Integers, check_codes, check_lengths
from schemas.ids import microseconds

TYPE_PREFIX: Final = "io.schedulerlog."

PICKED: Final = "picked"
"""Of a device: taken for the container. Of a node: chosen for the pod."""
FITS: Final = "fits"
"""Would do, but another was taken."""
REFUSED: Final = "refused"
"""Of a node: it can't take the pod; its refusal says why. Devices carry the reason code itself instead."""
NOT_REACHED: Final = "not reached"
"""The walk ended before this one was looked at."""
UNREGISTERED: Final = "unregistered"
"""Of a node: the scheduler knows no devices of it."""

MAX_PARTS: Final = 65_536
"""Of one summary. What a reader may set aside room for is bounded, whatever a record claims."""

NOT_REASONS: Final = frozenset({PICKED, FITS, NOT_REACHED})
"""The verdicts of a device that are not reason codes."""


_RFC3339: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)


def _from_text(moment: Any) -> Any:
    # pydantic would take digits in a string for seconds since 1970.
    if isinstance(moment, datetime) or (isinstance(moment, str) and _RFC3339.fullmatch(moment)):
        return moment
    raise ValueError("a time is RFC 3339 text with a zone, as in 2026-01-02T03:04:05.678901Z")


def _in_utc(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise ValueError("a time needs a zone, as in 2026-01-02T03:04:05.678901Z")
    try:
        utc = moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("a time lies between the years 1970 and 9999") from None
    if utc.year < 1970:
        raise ValueError("a time lies between the years 1970 and 9999")
    return utc


Moment = Annotated[datetime, BeforeValidator(_from_text), AfterValidator(_in_utc)]
"""A time in UTC to the microsecond, from 1970 on; RFC 3339 in JSON."""

Flag = Annotated[bool, Field(strict=True)]
Count = Annotated[int, Field(ge=0, lt=2**63, strict=True)]
Words = Annotated[list[str], FailFast()]
"""Texts in order; the first wrong entry is reported, not every one of thousands."""


class Model(BaseModel):
    """Frozen, and tolerant of fields that a later version adds."""

    model_config = ConfigDict(frozen=True, extra="ignore", arbitrary_types_allowed=True, use_attribute_docstrings=True)


class PodRef(Model):
    namespace: Annotated[str, Field(min_length=1)]
    name: Annotated[str, Field(min_length=1)]
    uid: str = ""
    """Empty where the source does not say it."""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class Request(Model):
    """What one container asks for. ``count`` 0 is a container without devices."""

    container: str
    """The container's name."""
    init: Flag = False
    """True for an init container."""
    vendor: str = ""
    """Whose devices, as HAMi calls them: ``NVIDIA``, ``DCU``, … Empty without devices."""
    count: Count = 0
    """Devices."""
    memory_mib: Count | None = None
    """Per device; None where a share of the card is asked for."""
    memory_percent: Count | None = None
    """Per device, of the card's total; None where MiB are asked for."""
    cores_percent: Count = 0
    """Per device, of one card."""


class Refusal(Model):
    """Why a node can't take a container: counted devices, or one word for the whole node.

    ``counts`` says how many of the node's ``devices`` were refused for which code. ``bare`` is a reason that counts no
    devices (``NodeInsufficientDevice``, ``node unregistered``, the text of another scheduler); ``cause`` adds what is
    known behind it, such as where an annotation is malformed.
    """

    counts: dict[str, Count] = Field(default_factory=dict)
    """Reason code to number of devices: the X of ``X/Y Reason``."""
    devices: Count = 0
    """The Y of ``X/Y Reason``."""
    bare: str = ""
    """A reason that counts no devices; empty where ``counts`` says it."""
    cause: str = ""
    """What is known behind ``bare``."""


class Event(Model):
    """Anything that travels as a record of its own."""

    TYPE: ClassVar[str]

    @property
    def id(self) -> str:
        """The CloudEvents id: equal for two tellings of the same fact, different for two facts."""
        raise NotImplementedError

    @property
    def key(self) -> str:
        """The Kafka key: one key is one partition, so what shares it is read in order."""
        raise NotImplementedError

    @property
    def time(self) -> datetime:
        raise NotImplementedError

    @property
    def source(self) -> str:
        """The CloudEvents source: who says so."""
        raise NotImplementedError


def source_of(scheduler: str) -> str:
    """Who says so, as CloudEvents wants it: a URI reference."""
    return f"/schedulers/{quote(scheduler, safe='')}"


class AttemptEvent(Event):
    """One scheduling try of one pod is what it is about."""

    attempt_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9._:-]{1,128}$")]
    """Names the attempt everywhere: in ids of events (before the first ``/``), of documents, in paths."""
    pod: PodRef
    scheduler: str
    """The name of the scheduler that decided."""
    started: Moment
    """When the attempt began."""

    @property
    def key(self) -> str:
        return str(self.pod)

    @property
    def time(self) -> datetime:
        return self.started

    @property
    def source(self) -> str:
        return source_of(self.scheduler)


class DeviceRow(NamedTuple):
    """One device as it stood when it was judged."""

    node: str
    uuid: str
    verdict: str
    model: str
    numa: int
    memory_total_mib: int
    memory_used_mib: int
    cores_total_percent: int
    cores_used_percent: int
    slots_total: int
    slots_used: int


class DevicesJudged(AttemptEvent):
    """One container against the devices of a run of nodes.

    Two lengths: ``nodes``, ``node_index``, ``devices`` and ``rows`` have an entry per node; ``uuid`` and everything
    below it an entry per row. The first ``rows[0]`` rows belong to ``nodes[0]``, and so on. A row is a device; only a
    card cut into MIG instances may have several, one for each time it was looked at.
    """

    TYPE: ClassVar[str] = TYPE_PREFIX + "devices.judged.v1"

    part: Count
    """Counts the records of this type within the attempt, from 0."""
    container: Count
    """The container's position in the attempt's requests."""
    request: Request
    """What the container asked for."""
    verdicts: Words
    """The table behind ``verdict``: ``picked``, ``fits``, ``not reached``, or a reason code as HAMi spells it."""
    models: Words
    """The table behind ``model``."""
    nodes: Words
    """Names."""
    node_index: Integers
    """The node's position among all nodes of the attempt."""
    devices: Integers
    """How many devices of the asked vendor the node has: the Y of ``X/Y Reason``."""
    rows: Integers
    """How many of the rows below belong to the node."""
    uuid: Words
    """The device, as its vendor names it."""
    verdict: Codes
    """Index into ``verdicts``."""
    model: Codes
    """Index into ``models``; -1 where it is not known."""
    numa: Integers
    """The NUMA node that the device sits on."""
    memory_total_mib: Integers
    memory_used_mib: Integers
    """Booked before this attempt."""
    cores_total_percent: Integers
    cores_used_percent: Integers
    """Booked before this attempt."""
    slots_total: Integers
    """How many containers may share the device."""
    slots_used: Integers

    @model_validator(mode="after")
    def _columns_agree(self) -> Self:
        by_node = {"node_index": self.node_index, "devices": self.devices, "rows": self.rows}
        check_lengths(by_node, len(self.nodes))
        if self.rows.size and (self.rows.min() < 0 or self.node_index.min() < 0 or self.devices.min() < 0):
            raise ValueError("rows, node_index and devices are counts, never negative")
        # Checked before they are added up: a sum of huge counts wraps around.
        if self.rows.size and self.rows.max() > len(self.uuid):
            raise ValueError(f"a node has {self.rows.max()} rows where {len(self.uuid)} are there in all")
        check_lengths({name: getattr(self, name) for name in ROW_COLUMNS}, int(self.rows.sum()))
        check_codes({"verdict": (self.verdict, len(self.verdicts)), "model": (self.model, len(self.models))})
        if self.verdict.size and self.verdict.min() < 0:
            raise ValueError("every row has a verdict")
        return self

    @property
    def id(self) -> str:
        return f"{self.attempt_id}/devices/{self.part}"

    def each_device(self) -> Iterator[DeviceRow]:
        """The rows as objects, in the order of the record, for whoever prefers objects to columns."""
        numbers = zip(*(getattr(self, name).tolist() for name in ROW_COLUMNS[3:]), strict=True)
        owners = np.repeat(np.arange(len(self.nodes)), self.rows).tolist()
        codes = zip(owners, self.uuid, self.verdict.tolist(), self.model.tolist(), numbers, strict=True)
        for node, uuid, verdict, model, row in codes:
            word = self.models[model] if model >= 0 else ""
            yield DeviceRow(self.nodes[node], uuid, self.verdicts[verdict], word, *row)


ROW_COLUMNS: Final = (
    "uuid",
    "verdict",
    "model",
    "numa",
    "memory_total_mib",
    "memory_used_mib",
    "cores_total_percent",
    "cores_used_percent",
    "slots_total",
    "slots_used",
)
"""The columns of ``DevicesJudged`` with an entry per row."""


class NodesJudged(AttemptEvent):
    """What became of a run of nodes. All columns have an entry per node."""

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
    node_index: Integers
    """The node's position among all nodes of the attempt."""
    verdict: Codes
    """Index into ``verdicts``."""
    score: Floats
    """0 where the node does not fit."""
    refused_by: Codes
    """Which container the node refused: those before it passed, those behind it were not reached; -1 for none."""
    refusal: Codes
    """Index into ``refusals``; -1 where the node does not refuse."""

    @model_validator(mode="after")
    def _columns_agree(self) -> Self:
        check_node_columns(self, {"node_index": self.node_index})
        check_codes({"refused_by": (self.refused_by, len(self.containers))})
        if self.node_index.size and self.node_index.min() < 0:
            raise ValueError("node_index is a position, never negative")
        return self

    @property
    def id(self) -> str:
        return f"{self.attempt_id}/nodes/{self.part}"


class AttemptConcluded(AttemptEvent):
    """The end of the filter: what was asked, how much was judged, what was chosen."""

    TYPE: ClassVar[str] = TYPE_PREFIX + "attempt.concluded.v1"

    ended: Moment
    requests: list[Request]
    """Every container of the pod, init containers first, in the pod's order."""
    node_policy: str = ""
    """How the node is chosen: ``binpack`` or ``spread``."""
    device_policy: str = ""
    """How devices are chosen on the node."""
    offered_nodes: Count
    """How many nodes the scheduler was asked about."""
    judged_nodes: Count
    judged_devices: Count
    """Rows of all ``DevicesJudged`` records."""
    device_records: Count
    node_records: Count
    """How many records of the two kinds came before this one; what is missing is known from these."""
    chosen: str | None = None
    """The chosen node; null when none fits."""
    error: str = ""
    """Why the attempt ended without judging, as the scheduler says it."""

    @property
    def id(self) -> str:
        return f"{self.attempt_id}/concluded"

    @property
    def time(self) -> datetime:
        return self.ended


class BindConcluded(AttemptEvent):
    """The chosen node was written into the pod, or could not be."""

    TYPE: ClassVar[str] = TYPE_PREFIX + "bind.concluded.v1"

    node: str
    bound: Flag
    error: str = ""
    """Why not, as the scheduler or the API server says it; empty when bound."""
    bind_started: Moment
    ended: Moment

    @property
    def id(self) -> str:
        return f"{self.attempt_id}/bind/{microseconds(self.ended)}"

    @property
    def time(self) -> datetime:
        return self.ended


class DetailDropped(AttemptEvent):
    """Device records of an attempt that were given up before they reached Kafka; verdicts of nodes never are."""

    TYPE: ClassVar[str] = TYPE_PREFIX + "detail.dropped.v1"

    dropped_at: Moment
    device_records: Count
    """How many ``DevicesJudged`` records were given up."""
    judged_devices: Count
    """How many rows they held."""
    cause: str

    @property
    def id(self) -> str:
        return f"{self.attempt_id}/dropped/{microseconds(self.dropped_at)}"

    @property
    def time(self) -> datetime:
        return self.dropped_at


class BindOutcome(Model):
    node: str
    bound: Flag
    error: str = ""
    """Why not; empty when bound."""
    ended: Moment


Status = Literal["succeeded", "failed", "pending"]


class AttemptSummarized(AttemptEvent):
    """A whole attempt, ready to be read: the counts per node in columns, everything else once.

    An attempt on thousands of nodes is cut into ``parts`` records that differ in their nodes alone; ``runs.split`` and
    ``runs.join`` do it. ``version`` grows with what is known (microseconds of the latest event's time), so the newest
    telling wins in every store.
    """

    TYPE: ClassVar[str] = TYPE_PREFIX + "attempt.summarized.v1"

    version: Count
    """Microseconds since 1970; of two tellings the greater one holds."""
    part: Count = 0
    """Which of the ``parts`` this record is, from 0."""
    parts: Annotated[int, Field(ge=1, le=MAX_PARTS, strict=True)] = 1
    status: Status
    """``succeeded``: bound. ``failed``: no node fits, or the bind failed. ``pending``: no bind result yet."""
    complete: Flag = True
    """False when records of the attempt are missing; ``missing`` says which."""
    missing: str = ""
    ended: Moment | None = None
    """When the filter ended; null when its end is not known."""
    requests: list[Request]
    """Every container of the pod, init containers first, in the pod's order."""
    node_policy: str = ""
    device_policy: str = ""
    offered_nodes: Count
    """How many nodes the scheduler was asked about."""
    fit_nodes: Count
    judged_devices: Count
    chosen: str | None = None
    """The chosen node; null when none fits."""
    picked_devices: Words = Field(default_factory=list)
    """UUIDs taken on the chosen node."""
    error: str = ""
    """Why the attempt ended without judging."""
    bind: BindOutcome | None = None
    """Null until a bind result is known."""
    verdicts: Words
    """The table behind ``verdict``: ``picked``, ``fits``, ``refused``, ``unregistered``, ``not reached``."""
    refusals: list[Refusal]
    """The table behind ``refusal``: each distinct one once."""
    nodes: Words
    """Sorted by name, over all parts."""
    verdict: Codes
    """Index into ``verdicts``."""
    score: Floats
    """0 where the node does not fit."""
    refused_by: Codes
    """Which of ``requests`` the node refused; -1 for none."""
    refusal: Codes
    """Index into ``refusals``; -1 where the node does not refuse."""

    @model_validator(mode="after")
    def _columns_agree(self) -> Self:
        check_node_columns(self, {})
        check_codes({"refused_by": (self.refused_by, len(self.requests))})
        if self.part >= self.parts:
            raise ValueError(f"part {self.part} of {self.parts}")
        return self

    @property
    def id(self) -> str:
        return f"{self.attempt_id}/summary/{self.version}/{self.part}"

    @property
    def source(self) -> str:
        return "/pipeline"


class Message(AttemptEvent):
    """One line of event text about a pod, as ``kubectl describe`` shows it."""

    TYPE: ClassVar[str] = TYPE_PREFIX + "message.v1"

    said: Moment
    severity: Literal["Normal", "Warning"]
    reason: str
    """``FilteringFailed``, ``FilteringSucceed``, ``BindingFailed``, ``BindingSucceed``."""
    code: str = ""
    """The reason code that the line counts nodes for; empty for the line about the whole attempt."""
    message: str
    """The line as ``kubectl describe`` shows it."""

    @property
    def id(self) -> str:
        return f"{self.attempt_id}/message/{self.reason}/{self.code}"

    @property
    def time(self) -> datetime:
        return self.said

    @property
    def source(self) -> str:
        return "/pipeline"


class NodeEvent(Event):
    node: Annotated[str, Field(min_length=1)]
    """The node's name."""
    observed: Moment
    scheduler: str = ""
    """Who registered it; empty where the cluster itself says so."""

    @property
    def key(self) -> str:
        return self.node

    @property
    def time(self) -> datetime:
        return self.observed

    @property
    def id(self) -> str:
        kind = self.TYPE.removeprefix(TYPE_PREFIX)
        return f"{self.scheduler}/{self.node}/{kind}/{microseconds(self.observed)}"

    @property
    def source(self) -> str:
        return source_of(self.scheduler) if self.scheduler else "/cluster"


class NodeRegistered(NodeEvent):
    """The devices that a node offers, a column each, and its handshake."""

    TYPE: ClassVar[str] = TYPE_PREFIX + "node.registered.v1"

    registered: Flag
    """False when the scheduler can't use the node's registration; ``cause`` says why."""
    cause: str = ""
    handshake: str = ""
    """The handshake annotation as it stood."""
    uuid: Words
    model: Words
    mode: Words
    """How the device is shared: ``hami-core``, ``mig``, ``mps``."""
    index: Integers
    """The device's number on its node."""
    memory_mib: Integers
    cores_percent: Integers
    """100 is one whole card."""
    slots: Integers
    """How many containers may share the device."""
    numa: Integers
    healthy: Annotated[list[Flag], FailFast()]

    @model_validator(mode="after")
    def _columns_agree(self) -> Self:
        names = ("model", "mode", "index", "memory_mib", "cores_percent", "slots", "numa", "healthy")
        check_lengths({name: getattr(self, name) for name in names}, len(self.uuid))
        return self


class Condition(Model):
    type: str
    status: str
    """``True``, ``False`` or ``Unknown``."""
    reason: str = ""
    message: str = ""
    since: Moment | None = None
    """When the status last changed."""


class NodeObserved(NodeEvent):
    """Capacity, allocatable and conditions, as the cluster reports them (quantities as Kubernetes writes them)."""

    TYPE: ClassVar[str] = TYPE_PREFIX + "node.observed.v1"

    capacity: dict[str, str] = Field(default_factory=dict)
    allocatable: dict[str, str] = Field(default_factory=dict)
    conditions: list[Condition] = Field(default_factory=list)


class PodObserved(Event):
    """Phase, node and conditions of a pod, as the cluster reports them."""

    TYPE: ClassVar[str] = TYPE_PREFIX + "pod.observed.v1"

    pod: PodRef
    observed: Moment
    phase: str
    """``Pending``, ``Running``, …"""
    node: str = ""
    """Empty before the pod is bound."""
    conditions: list[Condition] = Field(default_factory=list)

    @property
    def id(self) -> str:
        return f"{self.pod.uid or self.pod}/observed/{microseconds(self.observed)}"

    @property
    def key(self) -> str:
        return str(self.pod)

    @property
    def time(self) -> datetime:
        return self.observed

    @property
    def source(self) -> str:
        return "/cluster"


def check_node_columns(event: NodesJudged | AttemptSummarized, more: dict[str, Any]) -> None:
    """Raise ``ValueError`` unless the columns that both kinds of node tables share agree with each other."""
    columns = {
        "verdict": event.verdict,
        "score": event.score,
        "refused_by": event.refused_by,
        "refusal": event.refusal,
    } | more
    check_lengths(columns, len(event.nodes))
    tables = {"verdict": (event.verdict, len(event.verdicts)), "refusal": (event.refusal, len(event.refusals))}
    check_codes(tables)
    if event.verdict.size and event.verdict.min() < 0:
        raise ValueError("every node has a verdict")


EVENTS: Final[tuple[type[Event], ...]] = (
    DevicesJudged,
    NodesJudged,
    AttemptConcluded,
    BindConcluded,
    DetailDropped,
    AttemptSummarized,
    Message,
    NodeRegistered,
    NodeObserved,
    PodObserved,
)
"""Every event type of the contract."""
