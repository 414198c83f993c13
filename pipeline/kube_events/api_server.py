"""Requests to the API server that write events.

The role needs, cluster-wide: ``create``, ``get``, ``list``, ``patch`` of ``events`` in the group ``events.k8s.io``, and
``get`` of ``pods`` for sources of decisions that don't record the pod's UID.
"""

import logging
from collections.abc import AsyncIterator, Sequence
from typing import Final, Protocol

from engine.summaries.foreign_namespaces import KnownNamespaces
from pipeline.kube_events.event_object import make_event, make_patch, parse_event
from pipeline.kube_events.event_series import AttemptCounts, EventSeries, PublishedEvent
from runtime.kubernetes.errors import KubeApiError
from runtime.kubernetes.object_fields import MANAGED_BY, MANAGER
from runtime.kubernetes.resources import EVENTS, PODS, Key
from schemas.events import PodMessage
from schemas.json_types import Json

logger = logging.getLogger(__name__)

PAGE: Final = 500
# More than a few conflicts in a row mean that another writer is at it; the caller then waits before it tries again.
_MAX_TRIES: Final = 10


class EventsApi(Protocol):
    """Used part of ``runtime.kubernetes.client.Client``."""

    async def get(self, path: str) -> Json: ...
    async def get_page(self, path: str, **query: str | int) -> Json: ...
    async def create(self, path: str, body: Json) -> Json: ...
    async def patch(self, path: str, change: Json) -> Json: ...


async def read_events(api: EventsApi) -> EventSeries:
    """Read all events of this program, in all namespaces. Raises ``KubeApiError``."""
    events = EventSeries()
    async for body in _list_events(api):
        try:
            events.put(body["metadata"]["namespace"], parse_event(body))
        except ValueError as error:
            logger.debug("an event is left as it is: %s", error)
    return events


async def _list_events(api: EventsApi) -> AsyncIterator[Json]:
    # In pages, since a large cluster has tens of thousands of events.
    query: dict[str, str | int] = {"labelSelector": f"{MANAGED_BY}={MANAGER}", "limit": PAGE}
    while True:
        answer = await api.get_page(EVENTS.build_collection_path(), **query)
        for body in answer["items"]:
            yield body
        if not (token := answer["metadata"].get("continue")):
            return
        query["continue"] = token


async def read_uid(api: EventsApi, namespace: str, pod: str) -> str:
    """Read the pod's UID; empty if the pod does not exist (any more). Raises ``KubeApiError``."""
    try:
        body = await api.get(PODS.build_object_path(Key(namespace, pod)))
    except KubeApiError as error:
        if error.is_missing:
            return ""
        raise
    return str(body["metadata"]["uid"])


async def count_in_event(
    api: EventsApi, events: EventSeries, name: str, messages: Sequence[PodMessage], namespaces: KnownNamespaces
) -> int:
    """Make the event count the ``messages`` that it does not count yet; return their number. A new event's text names
    no pod of other ``namespaces``.

    Raises ``KubeApiError``. If the error leaves it open whether the write took place, the same call may be repeated: a
    create or patch that did take place conflicts, and the event is read.
    """
    namespace = messages[0].pod.namespace
    event = events.get(namespace, name)
    # The event is compared again after each conflict: the other process may have counted some of these messages.
    for _ in range(_MAX_TRIES):
        counts = event.read_counts() if event else AttemptCounts()
        uncounted = counts.list_uncounted(messages)
        if not uncounted:
            return 0
        try:
            if event is None:
                body = make_event(name, uncounted, namespaces)
                written = await api.create(EVENTS.build_collection_path(namespace), body)
            else:
                change = make_patch(event, counts, uncounted)
                written = await api.patch(EVENTS.build_object_path(Key(namespace, name)), change)
        except KubeApiError as error:
            # A conflict: another process has written it. Missing: the API server has dropped it, so it begins again.
            if not error.is_conflict and not (error.is_missing and event):
                raise
            event = await _read(api, events, namespace, name)
            continue
        events.put(namespace, parse_event(written))
        return len(uncounted)
    raise KubeApiError(
        409, f"event {namespace}/{name} was changed by others at each of {_MAX_TRIES} tries to write it; it is retried"
    )


async def _read(api: EventsApi, events: EventSeries, namespace: str, name: str) -> PublishedEvent | None:
    """Read the event as the API server has it; None if it has dropped it. Raises ``KubeApiError``."""
    try:
        event = parse_event(await api.get(EVENTS.build_object_path(Key(namespace, name))))
    except KubeApiError as error:
        if not error.is_missing:
            raise
        events.drop(namespace, name)
        return None
    except ValueError as error:
        # Without our labels the name is taken and what it counts is unknown: 422 dead-letters the messages, since no
        # retry can succeed.
        raise KubeApiError(422, f"event {namespace}/{name}: {error}; delete it to have it written again") from None
    events.put(namespace, event)
    return event
