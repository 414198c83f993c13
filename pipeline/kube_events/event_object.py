"""Events of events.k8s.io/v1 as JSON objects, and the counts that such an object has. Pure."""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from engine.summaries.foreign_namespaces import KnownNamespaces
from engine.summaries.text import cut
from pipeline.kube_events.event_series import AttemptCounts, PublishedEvent, derive_series
from runtime.kubernetes.object_fields import MANAGED_BY, MANAGER
from schemas.codec.records import format_rfc3339
from schemas.events import PodMessage

SERIES: Final = "schedulerlog.io/series"
COUNTED: Final = "schedulerlog.io/counted"

_CONTROLLER_NAME: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?", re.ASCII)
"""Names that the API server accepts as ``reportingController``; a scheduler's name may be anything."""
_MAX_REASON: Final = 128
"""The API server's limit for ``reason``."""


def make_event(name: str, messages: Sequence[PodMessage], namespaces: KnownNamespaces) -> dict[str, Any]:
    """Make the event that ``messages`` begin: at least one, all of one series.

    The first gives the text, without the pods of other ``namespaces``.
    """
    first = messages[0]
    body = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {
            "name": name,
            "namespace": first.pod.namespace,
            "labels": {MANAGED_BY: MANAGER, SERIES: derive_series(first)},
            "annotations": {COUNTED: AttemptCounts().with_more(messages).write()},
        },
        # A late attempt may be published after later ones.
        "eventTime": format_rfc3339(min(message.reported_at for message in messages)),
        "type": first.severity,
        # Cut rather than refused: a 422 would dead-letter the message.
        "reason": first.reason[:_MAX_REASON],
        "action": _derive_action(first.reason),
        "note": cut(namespaces.hide_others(first.message, first.pod.namespace)),
        "reportingController": first.scheduler if _CONTROLLER_NAME.fullmatch(first.scheduler) else MANAGER,
        "reportingInstance": MANAGER,
        "regarding": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": first.pod.namespace,
            "name": first.pod.name,
            "uid": first.pod.uid,
        },
    }
    # The same attempt may be delivered twice in one batch.
    count = len({message.attempt_id for message in messages})
    # The API server refuses a series that counts less than two.
    return body | (_make_series(count, max(message.reported_at for message in messages)) if count > 1 else {})


def _derive_action(reason: str) -> str:
    return next((action for action in ("Filtering", "Binding") if reason.startswith(action)), "Scheduling")


def _make_series(count: int, latest_at: datetime) -> dict[str, Any]:
    return {"series": {"count": count, "lastObservedTime": format_rfc3339(latest_at)}}


def make_patch(event: PublishedEvent, counts: AttemptCounts, messages: Sequence[PodMessage]) -> dict[str, Any]:
    """Make the patch that counts ``messages`` too. It conflicts if the event has changed since it was read.

    ``counts``: the attempts that the event counts.
    """
    count = event.count + len({message.attempt_id for message in messages})
    counted = counts.with_more(messages).write()
    # With the resourceVersion the API server refuses the patch (409) if another process has written the event since.
    metadata = {"resourceVersion": event.version, "annotations": {COUNTED: counted}}
    latest_at = max([event.latest_at, *(message.reported_at for message in messages)])
    return {"metadata": metadata} | _make_series(count, latest_at)


def parse_event(body: Any) -> PublishedEvent:
    """Parse the JSON object of an event. Raises ``ValueError`` if it is not ours or somebody else edited it."""
    try:
        metadata, series = body["metadata"], body.get("series") or {}
        started_at, annotation = datetime.fromisoformat(body["eventTime"]), metadata["annotations"][COUNTED]
        AttemptCounts.read(annotation)
        return PublishedEvent(
            name=metadata["name"],
            series=metadata["labels"][SERIES],
            started_at=started_at,
            latest_at=datetime.fromisoformat(series["lastObservedTime"]) if series else started_at,
            count=int(series.get("count", 1)),
            annotation=annotation,
            version=metadata["resourceVersion"],
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not an event of this program, or edited: {error!r}") from None
