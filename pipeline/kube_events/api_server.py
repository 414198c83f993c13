"""The API server as the writer of events needs it.

Its role needs, cluster-wide: ``create``, ``get``, ``list``, ``patch`` of ``events`` in the group ``events.k8s.io``, and
``get`` of ``pods`` where a source of decisions does not say the pod's UID.
"""

import logging
from collections.abc import AsyncIterator, Sequence
from typing import Final, Protocol

from kube.errors import KubeApiError
from kube.resources import EVENTS, PODS, Json, Key
from pipeline.kube_events.event_object import MANAGED_BY, OURS, more, new_event, told_of
from pipeline.kube_events.event_series import Book, Told
from schemas.events import MessageEmitted

logger = logging.getLogger(__name__)

PAGE: Final = 500
_MOST_TRIES: Final = 10


class Api(Protocol):
    """``kube.client.Client``."""

    async def get(self, path: str) -> Json: ...
    async def page(self, path: str, **query: str | int) -> Json: ...
    async def create(self, path: str, found: Json) -> Json: ...
    async def patch(self, path: str, change: Json) -> Json: ...


async def read_book(api: Api) -> Book:
    """All events of ours. Raises ``KubeApiError``."""
    book = Book()
    async for found in _listed(api):
        try:
            book.put(found["metadata"]["namespace"], told_of(found))
        except ValueError as error:
            logger.debug("left alone: %s", error)
    return book


async def _listed(api: Api) -> AsyncIterator[Json]:
    query: dict[str, str | int] = {"labelSelector": f"{MANAGED_BY}={OURS}", "limit": PAGE}
    while True:
        answer = await api.page(EVENTS.collection(), **query)
        for found in answer["items"]:
            yield found
        if not (token := answer["metadata"].get("continue")):
            return
        query["continue"] = token


async def uid_of(api: Api, namespace: str, pod: str) -> str:
    """Empty where there is no such pod (any more). Raises ``KubeApiError``."""
    try:
        found = await api.get(PODS.item(Key(namespace, pod)))
    except KubeApiError as error:
        if error.is_missing:
            return ""
        raise
    return str(found["metadata"]["uid"])


async def tell(api: Api, book: Book, name: str, messages: Sequence[MessageEmitted]) -> int:
    """Have the event count the messages that it does not count yet; gives how many those were.

    Raises ``KubeApiError``; after one that leaves it open whether the write took place the same call finds out.
    """
    namespace = messages[0].pod.namespace
    told = book.get(namespace, name)
    for _ in range(_MOST_TRIES):
        fresh = told.uncounted(messages) if told else list(messages)
        if not fresh:
            return 0
        try:
            written = await _write(api, namespace, name, told, fresh)
        except KubeApiError as error:
            if not error.is_conflict and not (error.is_missing and told):
                raise
            told = await _read(api, book, namespace, name)
            continue
        book.put(namespace, told_of(written))
        return len(fresh)
    raise KubeApiError(409, f"event {namespace}/{name} changes faster than it can be written")


async def _write(api: Api, namespace: str, name: str, told: Told | None, fresh: Sequence[MessageEmitted]) -> Json:
    if told is None:
        return await api.create(EVENTS.collection(namespace), new_event(name, fresh))
    return await api.patch(EVENTS.item(Key(namespace, name)), more(told, fresh))


async def _read(api: Api, book: Book, namespace: str, name: str) -> Told | None:
    """As the API server has it; None where it has dropped it. Raises ``KubeApiError``."""
    try:
        told = told_of(await api.get(EVENTS.item(Key(namespace, name))))
    except KubeApiError as error:
        if not error.is_missing:
            raise
        book.drop(namespace, name)
        return None
    except ValueError as error:
        # Somebody has taken our labels off: the name is taken, and what it counts is not known.
        raise KubeApiError(422, f"event {namespace}/{name} is {error}") from None
    book.put(namespace, told)
    return told
