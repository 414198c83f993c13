"""A container's lines in the JSON of each shipper."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

STARTED = datetime(2026, 11, 21, 3, 13, 30, tzinfo=UTC)
NAMES = ("kai", "kai-scheduler-7d9", "scheduler")
FORMS = ("fluent-bit", "vector", "otel")


def record(
    form: str, text: str, time: datetime = STARTED, names: tuple[str, str, str] = NAMES, *, tag: str = "F"
) -> bytes:
    namespace, pod, container = names
    stamp = time.isoformat().replace("+00:00", "Z")
    if form == "fluent-bit":
        kubernetes = {"namespace_name": namespace, "pod_name": pod, "container_name": container, "labels": {"app": "x"}}
        shipped: object = {"@timestamp": time.timestamp(), "time": stamp, "stream": "stderr", "_p": tag,
                           "log": text + "\n",
                        "kubernetes": kubernetes}  # fmt: skip
    elif form == "vector":
        kubernetes = {"pod_namespace": namespace, "pod_name": pod, "container_name": container}
        shipped = {"message": text, "timestamp": stamp, "source_type": "kubernetes_logs", "kubernetes": kubernetes | {
            "pod_labels": {"app": "x"}}}  # fmt: skip
    else:
        shipped = {"resourceLogs": [build_otel_resource([text], time, names, tag)]}
    return json.dumps(shipped).encode()


def build_otel_resource(
    texts: Sequence[str], time: datetime, names: tuple[str, str, str], tag: str = "F"
) -> dict[str, object]:
    keys = ("k8s.namespace.name", "k8s.pod.name", "k8s.container.name", "k8s.pod.labels.app")
    attributes = [{"key": key, "value": {"stringValue": value}} for key, value in zip(keys, (*names, "x"), strict=True)]
    records = [
        {
            "timeUnixNano": str(int((time + timedelta(milliseconds=index)).timestamp() * 1000) * 1_000_000),
            "body": {"stringValue": text},
            "attributes": [{"key": "logtag", "value": {"stringValue": tag}}],
        }
        for index, text in enumerate(texts)
    ]
    return {"resource": {"attributes": attributes}, "scopeLogs": [{"scope": {}, "logRecords": records}]}
