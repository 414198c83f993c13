"""An alert as its topic has it."""

from datetime import UTC, datetime, timedelta

from schemas.events import AlertChanged


def an_alert(rule: str = "PodPendingForLong", minutes_ago: float = 5, **fields: object) -> AlertChanged:
    changed = datetime.now(UTC) - timedelta(minutes=minutes_ago)
    values = {
        "cluster": "default",
        "rule": rule,
        "labels": {"cluster": "default", "namespace": "llm", "pod": "train-0"},
        "state": "firing",
        "severity": "warning",
        "started_at": changed,
        "changed_at": changed,
        "summary": f"{rule} of llm/train-0",
    }
    return AlertChanged.model_validate(values | fields)
