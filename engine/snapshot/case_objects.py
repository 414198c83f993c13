"""Objects of a cluster at one moment, by kind, and the Kubernetes events about each of them."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Final, TypeVar

from engine.hami.releases import HamiRelease
from engine.snapshot import kinds
from runtime.kubernetes.object_fields import Fields, get_object, get_text, iterate_objects, parse_moment

Derived = TypeVar("Derived")
Key = tuple[str, str]
"""Namespace and name; the namespace of what belongs to none is ""."""
EVENT_KINDS: Final = ("Event", "Event.events.k8s.io")
_NEVER: Final = datetime.min.replace(tzinfo=UTC)
_UNNAMESPACED: Final = frozenset(
    (
        kinds.NODE,
        kinds.NAMESPACE,
        kinds.VOLUME,
        kinds.STORAGE_CLASS,
        kinds.CSI_NODE,
        kinds.CSI_DRIVER,
        kinds.VOLUME_ATTACHMENT,
        kinds.RESOURCE_SLICE,
        kinds.DEVICE_CLASS,
        kinds.PRIORITY_CLASS,
        kinds.RUNTIME_CLASS,
        kinds.MUTATING_WEBHOOKS,
    )
)
_LISTED: Final = _UNNAMESPACED - {kinds.NODE} | {kinds.VOLUME_CLAIM, kinds.DISRUPTION_BUDGET}
"""Kinds of which an API server's list is one of all objects: others are listed by name or by namespace, too."""
_DEFAULT: Final = "default"
_NO_OBJECTS: Final[Mapping[Key, Fields]] = {}


@dataclass(frozen=True, slots=True)
class ObjectEvent:
    """A Kubernetes event about one object, in either of the two forms that Kubernetes writes."""

    kind: str
    """Kind of the object without its group, such as ``Pod``."""
    namespace: str
    name: str
    uid: str
    reason: str
    note: str
    reporter: str
    is_warning: bool
    time: datetime | None
    """Time of the latest occurrence."""
    first_time: datetime | None
    count: int


@dataclass(frozen=True)
class CaseObjects:
    """Plain objects by kind (``engine.snapshot.kinds``: ``Pod``, ``Workload.kueue.x-k8s.io``)."""

    tables: Mapping[str, Mapping[Key, Fields]] = field(default_factory=dict)
    unread: frozenset[str] = frozenset()
    """Kinds of which some or all objects could not be read."""
    listed: frozenset[str] = frozenset()
    """Kinds of which all objects were listed, also those that have none."""
    hami_release: HamiRelease | None = None
    """Release of HAMi whose rules decide; None for the one that the pods show."""

    def find(self, kind: str, name: str, namespace: str = "") -> Fields | None:
        """Find an object by its kind and name; what people write by hand may leave out the namespace `default`."""
        table = self.tables.get(kind, _NO_OBJECTS)
        entry = table.get((namespace, name))
        return table.get(("", name)) if entry is None and namespace == _DEFAULT else entry

    def select(self, kind: str, namespace: str | None = None) -> list[Fields]:
        """Select the objects of a kind, of one namespace where one is named."""
        table = self.tables.get(kind, _NO_OBJECTS)
        return [entry for key, entry in table.items() if namespace is None or key[0] == namespace]

    def has_read(self, kind: str) -> bool:
        """Tell whether the kind was listed, or an object of it was read: then one that is absent does not exist."""
        return kind in self.listed or (bool(self.tables.get(kind)) and kind not in self.unread)

    def iterate_objects(self) -> Iterator[Fields]:
        """Iterate over all objects."""
        for table in self.tables.values():
            yield from table.values()

    def select_events(self, kind: str, name: str, namespace: str = "", uid: str = "") -> list[ObjectEvent]:
        """Select the events about an object, the latest first; ``uid`` leaves out earlier objects of its name."""
        events = self._events.get((kind, namespace, name), [])
        return [event for event in events if not uid or event.uid in ("", uid)]

    def list_event_subjects(self, kind: str) -> list[Key]:
        """List the objects of the kind that events are about, as (namespace, name), whether they were read or not."""
        return [(namespace, name) for subject, namespace, name in self._events if subject == kind]

    def list_events(self) -> list[ObjectEvent]:
        """List all events, the latest first."""
        events = [event for subject in self._events.values() for event in subject]
        return sorted(events, key=lambda event: event.time or _NEVER, reverse=True)

    def derive(self, build: Callable[["CaseObjects"], Derived]) -> Derived:
        """Derive a value from the objects, once for each function: an answer and its suggestions share a cluster."""
        if build not in self._derived:
            self._derived[build] = build(self)
        value: Derived = self._derived[build]
        return value

    @cached_property
    def _derived(self) -> dict[Callable[["CaseObjects"], Any], Any]:
        return {}

    @cached_property
    def _events(self) -> Mapping[tuple[str, str, str], list[ObjectEvent]]:
        grouped: dict[tuple[str, str, str], list[ObjectEvent]] = {}
        for kind in EVENT_KINDS:
            for event in map(parse_event, self.select(kind)):
                grouped.setdefault((event.kind, event.namespace, event.name), []).append(event)
        for events in grouped.values():
            events.sort(key=lambda event: event.time or _NEVER, reverse=True)
        return grouped

    @cached_property
    def latest_time(self) -> datetime | None:
        """The latest time that an object or event names: what was read is at least as young."""
        times = (time for entry in self.iterate_objects() for time in _iterate_times(entry))
        return max(times, default=None)


def collect_objects(objects: Iterable[Any], unread: Iterable[str] = ()) -> CaseObjects:
    """Collect objects of any origin; lists are flattened, of two objects with one name the last counts.

    A complete list of an API server also proves that there are no others, even if it is empty.
    """
    tables: dict[str, dict[Key, Fields]] = {}
    values = list(objects)
    for position, value in enumerate(kinds.flatten(values)):
        if not isinstance(value, Mapping) or not isinstance(value.get("kind"), str):
            continue
        kind = kinds.identify(get_text(value, "apiVersion"), value["kind"])
        name, namespace = get_text(value, "metadata", "name"), get_text(value, "metadata", "namespace")
        named = get_object(value, "involvedObject") or get_object(value, "regarding") if kind in EVENT_KINDS else {}
        if any(map(_is_misnamed, (name, namespace, get_text(named, "name"), get_text(named, "namespace")))):
            continue
        if not namespace and kind not in _UNNAMESPACED and kind in kinds.NAMESPACED:
            namespace = "default"
        tables.setdefault(kind, {})[namespace, name or f"#{position}"] = value
    return CaseObjects(tables, frozenset(unread), frozenset(_iterate_listed(values)) - frozenset(unread))


def _is_misnamed(name: str) -> bool:
    """Tell whether Kubernetes refuses the name, because paths are built of names.

    https://kubernetes.io/docs/concepts/overview/working-with-objects/names/#path-segment-names
    """
    return name in (".", "..") or "/" in name or "%" in name


def _iterate_listed(values: Iterable[Any]) -> Iterator[str]:
    """Iterate over the kinds of complete lists; that of several pages is complete with its last one."""
    for value in values:
        if isinstance(value, Mapping) and isinstance(value.get("items"), list):
            kind = kinds.identify(get_text(value, "apiVersion"), get_text(value, "kind").removesuffix("List"))
            if kind in _LISTED and not get_text(value, "metadata", "continue"):
                yield kind


def list_claim_names(pod: Fields) -> list[str]:
    """List the PersistentVolumeClaims that the pod's volumes name."""
    volumes = list(iterate_objects(pod, "spec", "volumes"))
    volume_claims = [get_text(volume, "persistentVolumeClaim", "claimName") for volume in volumes]
    # Kubernetes creates the claim of an ephemeral volume, and names it after pod and volume.
    ephemeral_claims = [
        f"{get_text(pod, 'metadata', 'name')}-{get_text(volume, 'name')}"
        for volume in volumes
        if get_object(volume, "ephemeral")
    ]
    return [name for name in (*volume_claims, *ephemeral_claims) if name]


def parse_event(event: Fields) -> ObjectEvent:
    """Parse a Kubernetes event of ``v1`` or ``events.k8s.io/v1``."""
    regarding = get_object(event, "regarding") or get_object(event, "involvedObject")
    count = get_object(event, "series").get("count") or event.get("count") or event.get("deprecatedCount") or 1
    last = _find_time(event, ("series", "lastObservedTime"), ("deprecatedLastTimestamp",), ("lastTimestamp",))
    first = _find_time(event, ("eventTime",), ("deprecatedFirstTimestamp",), ("firstTimestamp",))
    return ObjectEvent(
        kind=get_text(regarding, "kind"),
        namespace=get_text(regarding, "namespace"),
        name=get_text(regarding, "name"),
        uid=get_text(regarding, "uid"),
        reason=get_text(event, "reason"),
        note=get_text(event, "note") or get_text(event, "message"),
        reporter=get_text(event, "reportingController")
        or get_text(event, "reportingComponent")
        or get_text(event, "source", "component")
        or get_text(event, "deprecatedSource", "component"),
        is_warning=get_text(event, "type") == "Warning",
        time=last or first or _find_time(event, ("metadata", "creationTimestamp")),
        first_time=first or last,
        count=count if isinstance(count, int) else 1,
    )


def _find_time(event: Fields, *paths: tuple[str, ...]) -> datetime | None:
    return next((time for path in paths if (time := parse_moment(get_text(event, *path)))), None)


def _iterate_times(entry: Fields) -> Iterator[datetime]:
    stamps = [get_text(entry, "metadata", "creationTimestamp"), get_text(entry, "status", "startTime")]
    for condition in iterate_objects(entry, "status", "conditions"):
        stamps += [get_text(condition, "lastTransitionTime"), get_text(condition, "lastHeartbeatTime")]
    if entry.get("kind") == "Event":
        event = parse_event(entry)
        yield from (time for time in (event.time, event.first_time) if time)
    yield from (time for stamp in stamps if stamp and (time := parse_moment(stamp)))
