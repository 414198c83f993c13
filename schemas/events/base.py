"""Fields that every event shares: the verdicts, the pod and the scheduler of an event."""

from collections.abc import Callable
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, NamedTuple, cast
from urllib.parse import quote

from pydantic import ConfigDict, Field

from ..described import DescribedModel
from .field_types import ClusterName, Count, Flag, Moment, Words

TYPE_PREFIX: Final = "io.schedulerlog."

PICKED: Final = "picked"
"""A device is taken for the container, or would have been on a node that was not chosen; a node is chosen."""
FITS: Final = "fits"
"""Meets the request, but another one was taken."""
REFUSED: Final = "refused"
"""A node can't take the pod; its refusal says why. Devices carry the reason code itself instead."""
NOT_REACHED: Final = "not reached"
"""The scheduler stopped before it looked at this one."""
UNREGISTERED: Final = "unregistered"
"""The scheduler knows no devices of the node."""

NOT_REASONS: Final = frozenset({PICKED, FITS, NOT_REACHED})
"""The verdicts of a device that are not reason codes."""

NOT_REPORTED: Final = -1
"""Value in a column of numbers about devices that the source does not report."""


class Model(DescribedModel):
    """Frozen, and tolerant of fields that a later version adds."""

    # Frozen, because a summary shares the columns and models of the records that it was made from.
    # Each is built when it is first used: a command that reads a log uses a few of them.
    model_config = ConfigDict(frozen=True, extra="ignore", arbitrary_types_allowed=True, defer_build=True)

    # mypy knows the fields of pydantic's.
    if not TYPE_CHECKING:

        @classmethod
        def model_construct(cls, _fields_set=None, **values):
            """Build a model without validation, for models without aliases and private attributes (all models of
            the contract).

            Pydantic looks for these in every field, and for the signature of every default's factory: a third of the
            worker's CPU for an attempt on ten nodes.
            """
            template, factories, required = _describe_fields(cls)
            fields = template | values
            for name, factory in factories:
                if name not in values:
                    fields[name] = factory()
            if len(fields) > len(template) or not values.keys() >= required:
                fields = {name: fields[name] for name in template if name in values or name not in required}
                values = {name: values[name] for name in fields if name in values}
            return _build(cls, fields, set(values) if _fields_set is None else _fields_set)

        def model_copy(self, *, update=None, deep=False):
            """Copy the model as pydantic does, which copies each part of it by a call of its own."""
            if deep:
                return super().model_copy(update=update, deep=deep)
            update = update or {}
            return _build(type(self), self.__dict__ | update, self.__pydantic_fields_set__ | update.keys())

    def to_json_fields(self) -> dict[str, Any]:
        """Return the fields in the form of their JSON; columns may be numpy arrays."""
        return self.__dict__


class _Fields(NamedTuple):
    """Fields of a model, for building it."""

    template: dict[str, Any]
    """Each field with its default, in the order of the fields, which is that of their JSON."""
    factories: list[tuple[str, Callable[[], Any]]]
    """Fields whose default is made for each model."""
    required: frozenset[str]


@cache
def _describe_fields(kind: type[Model]) -> _Fields:
    fields = kind.model_fields.items()
    # A field's default value is shared by all models: only what can't change may be one.
    return _Fields(
        {name: field.default for name, field in fields},
        [(name, cast("Callable[[], Any]", field.default_factory)) for name, field in fields if field.default_factory],
        frozenset(name for name, field in fields if field.is_required()),
    )


def _build(kind: type[Model], fields: dict[str, Any], fields_set: set[str]) -> Any:
    """Build a model that has these fields."""
    model = kind.__new__(kind)
    set_attribute = object.__setattr__
    set_attribute(model, "__dict__", fields)
    set_attribute(model, "__pydantic_fields_set__", fields_set)
    set_attribute(model, "__pydantic_extra__", None)
    set_attribute(model, "__pydantic_private__", None)
    return model


class PodRef(Model):
    namespace: Annotated[str, Field(min_length=1)]
    name: Annotated[str, Field(min_length=1)]
    uid: str = ""
    """Empty where the source does not say it."""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class Request(Model):
    """Request of one container. ``count`` 0 is a container without devices."""

    container: str
    """The container's name."""
    init: Flag = False
    """True for an init container."""
    vendor: str = ""
    """Vendor of the devices, as HAMi calls it: ``NVIDIA``, ``DCU``, … Empty without devices."""
    count: Count = 0
    """Devices."""
    memory_mib: Count | None = None
    """Per device; None where a share of the device is asked for."""
    memory_percent: Count | None = None
    """Per device, of its total; None where MiB are asked for."""
    cores_percent: Count = 0
    """Per device; 100 is one whole device."""

    def compute_memory(self, total_mib: int | None) -> int | None:
        """Compute the MiB that the container takes of a device of this size; None where they are not known."""
        if self.memory_mib is None and self.memory_percent is not None and total_mib is not None:
            # HAMi's ``memreq = Totalmem * pct / 100`` in int32, which truncates.
            return total_mib * self.memory_percent // 100
        return self.memory_mib


class Refusal(Model):
    """Refusal of a container by a node: counted devices, or one word for the whole node.

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
    """Known cause of ``bare``."""
    uncounted: Words = Field(default_factory=list)
    """Codes that some devices were refused for, where the source does not say how many; then ``counts`` is empty."""


OFFERED_NODES: Final = "offered nodes"
"""Entry of ``Provenance.not_reported``: the number of nodes that the scheduler was offered."""

FILTER_END: Final = "end of the filter"
"""Entry of ``Provenance.not_reported``: the end of the filter. The source reported only the bind, and ``ended_at`` is
its time."""

SCHEDULER: Final = "scheduler"
"""Value of ``Report.source``: the scheduler published the report itself."""


class Provenance(Model):
    """Evidence that a reader has of an attempt that its scheduler did not publish itself."""

    levels: list[Count] = Field(default_factory=list)
    """The log levels of the lines about the attempt, ascending; empty where the source has no levels."""
    not_reported: Words = Field(default_factory=list)
    """Parts that the source leaves open: ``offered nodes``, ``devices``, … Empty where it reports everything."""


class Event(Model):
    """Anything that travels as a record of its own."""

    TYPE: ClassVar[str]

    cluster: ClusterName
    """The cluster that it happened in."""

    @property
    def id(self) -> str:
        """The CloudEvents id: equal for two records of the same fact, different for two facts."""
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
        """The CloudEvents source: who reports it."""
        raise NotImplementedError


def build_source(cluster: str, scheduler: str) -> str:
    """Build the CloudEvents source of a scheduler: a URI reference."""
    return f"/clusters/{cluster}/schedulers/{quote(scheduler, safe='')}"


def build_pod_key(cluster: str, pod: PodRef) -> str:
    """Build the Kafka key of everything about a pod, so that consumers read it in order."""
    return f"{cluster}/{pod}"


ATTEMPT_ID: Final = r"^[A-Za-z0-9._:-]{1,128}$"
"""Form of the ids of attempts. No slash: ids of events are ``attempt_id/…``, and the attempt is read from them."""


class AttemptEvent(Event):
    """An event about one attempt: one scheduling try of one pod."""

    attempt_id: Annotated[str, Field(pattern=ATTEMPT_ID)]
    """Names the attempt everywhere: in ids of events (before the first ``/``), of documents, in paths."""
    pod: PodRef
    scheduler: str
    """The name of the scheduler that decided."""
    reader: str = ""
    """Reader that read the event from a log or the cluster: ``hami-log``, ``kube-events``, …; empty where the scheduler
    published it itself."""
    started_at: Moment
    """Start of the attempt."""

    @property
    def key(self) -> str:
        return build_pod_key(self.cluster, self.pod)

    @property
    def time(self) -> datetime:
        return self.started_at

    @property
    def source(self) -> str:
        return build_source(self.cluster, self.scheduler)
