"""An event of events.k8s.io/v1 as JSON, and what we know of it from its JSON. Pure."""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from pipeline.kube_events.event_series import Counted, Told, series_of
from schemas.codec.records import rfc3339
from schemas.events import MessageEmitted
from summaries.cut import cut

MANAGED_BY: Final = "app.kubernetes.io/managed-by"
OURS: Final = "schedulerlog"
SERIES: Final = "schedulerlog.io/series"
COUNTED: Final = "schedulerlog.io/counted"

_CONTROLLER: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?", re.ASCII)


def new_event(name: str, messages: Sequence[MessageEmitted]) -> dict[str, Any]:
    """The event that ``messages``, one or more of one series, begin. The first says its text."""
    first = messages[0]
    body = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {
            "name": name,
            "namespace": first.pod.namespace,
            "labels": {MANAGED_BY: OURS, SERIES: series_of(first)},
            "annotations": {COUNTED: Counted().with_more(messages).write()},
        },
        "eventTime": rfc3339(min(each.reported_at for each in messages)),
        "type": first.severity,
        "reason": first.reason[:128],
        "action": _action(first.reason),
        "note": cut(first.message),
        "reportingController": first.scheduler if _CONTROLLER.fullmatch(first.scheduler) else OURS,
        "reportingInstance": OURS,
        "regarding": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": first.pod.namespace,
            "name": first.pod.name,
            "uid": first.pod.uid,
        },
    }
    count = len({each.attempt_id for each in messages})
    return body | (_series(count, max(each.reported_at for each in messages)) if count > 1 else {})


def _action(reason: str) -> str:
    return next((action for action in ("Filtering", "Binding") if reason.startswith(action)), "Scheduling")


def _series(count: int, last: datetime) -> dict[str, Any]:
    return {"series": {"count": count, "lastObservedTime": rfc3339(last)}}


def more(told: Told, messages: Sequence[MessageEmitted]) -> dict[str, Any]:
    """The change of an event that counts ``messages`` too; refused where the event has changed since."""
    count = told.count + len({each.attempt_id for each in messages})
    counted = told.counted.with_more(messages).write()
    metadata = {"resourceVersion": told.version, "annotations": {COUNTED: counted}}
    return {"metadata": metadata} | _series(count, max([told.last, *(each.reported_at for each in messages)]))


def told_of(found: Any) -> Told:
    """Raises ``ValueError`` for an event that is not ours, or that somebody has changed."""
    try:
        metadata, series = found["metadata"], found.get("series") or {}
        began = datetime.fromisoformat(found["eventTime"])
        return Told(
            name=metadata["name"],
            series=metadata["labels"][SERIES],
            started_at=began,
            last=datetime.fromisoformat(series["lastObservedTime"]) if series else began,
            count=int(series.get("count", 1)),
            counted=Counted.read(metadata["annotations"][COUNTED]),
            version=metadata["resourceVersion"],
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"no event of ours: {error!r}") from None
