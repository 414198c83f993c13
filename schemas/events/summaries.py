"""Publications of the pipeline: summaries of attempts."""

from typing import Annotated, Any, ClassVar, Final, Literal, Self

from pydantic import Field, model_validator

from .base import TYPE_PREFIX, AttemptEvent, Model, Refusal, Request
from .columns import Codes, CodeText, Floats, check_codes
from .decisions import LockHolder, Reconstruction
from .device_models import PickedDevice
from .field_types import Count, Flag, Moment, Words
from .node_columns import check_node_columns, restore_scores, write_node_columns
from .pods import PodDescription


class PodWait(Model):
    """Obstacle of a pod that an attempt placed nowhere: on every node, and on the nearest ones.

    The worker adds it when it publishes the attempt, so that a list of thousands of waiting pods reads no attempt.
    """

    code: str = ""
    """The main obstacle's code, as in the pod's diagnosis; empty where none is known, as while a bind has no result."""
    layer: str = ""
    """Layer of the obstacle: ``queue``, ``gate``, ``nodes``, ``bind`` or ``start``; empty where none is known."""
    sentence_en: str = ""
    """The obstacle in a sentence, by the attempt alone: without what only the devices' numbers say."""
    sentence_zh: str = ""
    devices: Count = 0
    """The most devices that the pod holds at a time."""
    models: Words
    """The models of the devices that were judged, as they are registered; sorted."""
    pools: Words
    """The pools of the nodes that were judged; sorted."""
    nearest_nodes: Words
    """Nodes that lack the fewest devices, at most ``MAX_NEAREST`` of them, all with the same refusal."""
    reasons: dict[str, Count]
    """Reasons of their refusal: reason code to number of devices."""
    asked: Request | None = None
    """Refused request; null where several containers request devices and the source does not name the refused one."""
    missing_devices: Count | None = None
    """Number of devices that each of them lacks; null where the source does not count devices."""


MAX_PARTS: Final = 65_536
"""Parts of one summary: bounds the memory that a reader reserves, whatever a record claims."""


LOCK_CONTENTION: Final = "node lock contention"
BINDING_FAILED: Final = "BindingFailed"  # As ``engine.hami.reason_codes`` spells them.
BIND_REASONS: Final = (LOCK_CONTENTION, BINDING_FAILED)
"""Values of ``BindOutcome.reason`` for a bind that failed."""
MAX_REPEATED_TEXT: Final = 240
"""Characters of text in the record of a repetition; the attempt that it repeats has all of it."""


class BindOutcome(Model):
    node: str
    bound: Flag
    error: str = ""
    """Error of the bind; empty when bound."""
    lock_holder: LockHolder | None = None
    """Holder of the node's lock, where the bind failed because of it."""
    ended_at: Moment

    @property
    def reason(self) -> str:
        """The reason code of a bind that failed; empty when bound.

        Sources recognise a held lock by the words of their version and then give its holder, named or not.
        """
        if self.bound:
            return ""
        return BINDING_FAILED if self.lock_holder is None else LOCK_CONTENTION


class Report(Model):
    """Report of one source about an attempt. Several may report the same one: scheduler, log, events."""

    source: str
    """``scheduler`` where it published the attempt itself, else the reader: ``hami-log``, ``kube-events``, …"""
    attempt_id: str
    """The id that this source's records have; the attempt has that of the report that came first."""
    started_at: Moment
    ended_at: Moment | None = None
    """End of the filter, as this source reports it."""
    bind_ended_at: Moment | None = None
    """End of the bind, as this source reports it."""
    levels: list[Count] = Field(default_factory=list)
    """The log levels of the lines about the attempt, ascending."""
    not_reported: Words = Field(default_factory=list)
    """Parts that this source leaves open, in words."""
    gives: Words = Field(default_factory=list)
    """Parts of the attempt that come from this source: ``filter``, ``bind``, … Empty where no other source reported the
    attempt."""


Status = Literal["succeeded", "failed", "pending"]


class Balance(Model):
    """The judged devices and nodes against the published ones: they add up, or ``missing`` says what does not.

    ``judged_devices`` = all of ``devices`` + ``dropped_devices``, and ``judged_nodes`` = all of ``nodes``.
    """

    judged_nodes: Count
    """Number of nodes in the end of the attempt; the number above where there is no end."""
    judged_devices: Count
    dropped_devices: Count = 0
    """Rows that were given up before they reached Kafka."""
    nodes: dict[str, Count] = Field(default_factory=dict)
    """Verdict to number of nodes: ``picked``, ``fits``, ``refused``, ``unregistered``, ``not reached``."""
    devices: list[dict[str, Count]] = Field(default_factory=list)
    """Per container, verdict to number of rows: ``picked``, ``fits``, ``not reached``, or the reason."""
    models: dict[str, Count] = Field(default_factory=dict)
    """Device model to number of rows."""
    missing: str = ""
    """Missing records, in words; empty where none is missing."""


class AttemptSummarized(AttemptEvent):
    """A whole attempt, ready to be read: the counts per node in columns, everything else once.

    An attempt on thousands of nodes is split into ``parts`` records that differ only in their nodes; consumers join
    them (``codec.chunking.join``). ``version`` grows with what is known (microseconds of the latest event's time,
    a little more for everything that is known at that time), so the more complete summary wins in every store.
    """

    TYPE: ClassVar[str] = TYPE_PREFIX + "attempt.summarized.v1"

    version: Count
    """Microseconds since 1970; of two summaries of one attempt the greater version holds."""
    part: Count = 0
    """Number of this record among the ``parts``, from 0."""
    parts: Annotated[int, Field(ge=1, le=MAX_PARTS, strict=True)] = 1
    status: Status
    """``succeeded``: bound. ``failed``: no node fits, or the bind failed. ``pending``: no bind result yet."""
    complete: Flag = True
    """False when records of the attempt are missing; ``missing`` says which."""
    missing: str = ""
    ended_at: Moment | None = None
    """End of the filter; null where it is not known."""
    requests: list[Request]
    """Every container of the pod, init containers first, in the pod's order."""
    constraints: dict[str, str] | None = None
    """Annotations of the pod that constrain its devices and nodes; null where they are not known."""
    node_policy: str = ""
    device_policy: str = ""
    offered_nodes: Count
    """Number of nodes that the scheduler was offered."""
    fit_nodes: Count
    judged_devices: Count
    chosen: str | None = None
    """The chosen node; null when none fits."""
    picked_devices: Words = Field(default_factory=list)
    """UUIDs taken on the chosen node."""
    picked: list[PickedDevice] = Field(default_factory=list)
    """The chosen devices with the amounts taken of each, where the device rows report them."""
    balance: Balance | None = None
    error: str = ""
    """Error that ended the attempt before any node was judged."""
    refused_nodes: dict[str, Count] = Field(default_factory=dict)
    """Reason to number of nodes, of a scheduler that counts nodes without naming them."""
    nominated: str = ""
    """The node that the pod waits for until others have left it."""
    scheduler_message: str = ""
    """The end in the words of the scheduler that it was read from."""
    reconstruction: Reconstruction | None = None
    """Origin of the verdicts where a reader worked them out on the cluster's objects; null where they are the
    scheduler's own."""
    reports: list[Report] = Field(default_factory=list)
    """Sources that reported the attempt, the best one first. Each field has the value of the best source that reports
    it."""
    may_duplicate: Words = Field(default_factory=list)
    """Ids of other attempts that may be the same try, reported by another source, where that is not certain."""
    description: PodDescription | None = None
    """Origin of the pod; null where no source reports it."""
    settings_digest: str = ""
    """The scheduler's settings in force, as in ``SchedulerObserved``; empty where they are not known."""
    first_judged_at: Moment | None = None
    """Start of the pod's first known attempt. The worker adds it when it publishes the summary."""
    attempts: Count = 0
    """Number of published attempts of the pod, this one included; 0 where it is not known. The worker adds it. An
    attempt that is read again after the pod's history has dropped it counts those that came after it too."""
    wait: PodWait | None = None
    """Reason for the pod's wait, for lists; null where it was placed. The worker adds it when it publishes the
    summary."""
    bind: BindOutcome | None = None
    """Null until a bind result is known."""
    episode: str = ""
    """The id of the first of the pod's attempts in a row that ended as this one did; empty until the worker, which
    compares attempts, publishes the summary."""
    episode_started_at: Moment | None = None
    """Start of that attempt."""
    changes: Words = Field(default_factory=list)
    """Differences from the pod's previous attempt, one line each. Only on the first attempt of an episode. The worker
    adds them when it publishes the summary."""
    verdicts: Words
    """The table behind ``verdict``: ``picked``, ``fits``, ``refused``, ``unregistered``, ``not reached``."""
    refusals: list[Refusal]
    """The table behind ``refusal``: each distinct one once."""
    nodes: Words
    """Sorted by name, over all parts."""
    verdict: CodeText
    """Index into ``verdicts``."""
    score: Floats
    """0 where the node does not fit; empty in JSON where that is every node."""
    refused_by: CodeText
    """Index of the container in ``requests`` that the node refused; -1 for none."""
    refusal: Codes
    """Index into ``refusals``; -1 where the node does not refuse."""
    score_terms: dict[str, Floats] = Field(default_factory=dict)
    """The terms that ``score`` is the sum of, by name, an entry per node; empty where no source says them."""

    @model_validator(mode="after")
    def _columns_agree(self) -> Self:
        restore_scores(self)
        check_node_columns(self, self.score_terms)
        check_codes({"refused_by": (self.refused_by, len(self.requests))})
        if self.part >= self.parts:
            raise ValueError(f"part {self.part} of {self.parts}")
        return self

    @property
    def id(self) -> str:
        # With the version: a summary that knows more is another record, and readers keep the greatest.
        return f"{self.attempt_id}/summary/{self.version}/{self.part}"

    def to_json_fields(self) -> dict[str, Any]:
        return self.__dict__ | write_node_columns(self)

    @property
    def source(self) -> str:
        return "/pipeline"


class AttemptRepeated(AttemptEvent):
    """An attempt that ended as an earlier one did, node for node and for the same reasons: only what differs.

    Everything else stands in the summary of the attempt that ``repeats`` names, which is never itself a repetition,
    began on the same day (UTC) and at most six hours before. ``engine.summaries.retries.resolve`` puts both together.
    """

    TYPE: ClassVar[str] = TYPE_PREFIX + "attempt.repeated.v1"

    version: Count
    """Version of the summary."""
    status: Status
    ended_at: Moment | None = None
    """End of the filter."""
    repeats: Annotated[str, Field(min_length=1)]
    """The id of the attempt that has the rest."""
    repeats_started_at: Moment
    """Start of that attempt."""
    episode: str
    """The id of the first of the attempts in a row that ended so."""
    episode_started_at: Moment
    reports: list[Report]
    """Sources that reported the attempt, the best one first."""
    # What an index needs to find the attempt without the other one's summary.
    offered_nodes: Count
    fit_nodes: Count
    judged_devices: Count
    reasons: Words
    """Every reason code that some node was refused for, sorted."""
    text: str
    """The summary of the filter in words, at most ``MAX_REPEATED_TEXT`` characters."""
    scheduler_message: str | None = None
    """Message of the scheduler, as in ``AttemptSummarized``; null if equal to the repeated attempt's."""
    nominated: str | None = None
    """Nominated node, as in ``AttemptSummarized``; null if equal to the repeated attempt's."""
    # What lists of waiting pods need, and searches by workload.
    description: PodDescription | None = None
    """Origin of the pod, from any of its attempts; null where none has it."""
    first_judged_at: Moment | None = None
    """Start of the pod's first known attempt, as in ``AttemptSummarized``."""
    attempts: Count = 0
    """Number of published attempts of the pod, as in ``AttemptSummarized``."""
    wait: PodWait | None = None
    """Reason for the pod's wait, as in ``AttemptSummarized``."""

    @property
    def id(self) -> str:
        return f"{self.attempt_id}/repeated/{self.version}"

    @property
    def source(self) -> str:
        return "/pipeline"
