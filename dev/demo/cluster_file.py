"""The file that describes the cluster while the demo runs: a copy of examples/cluster.yaml that the demo edits.

The scheduler service watches this file as it otherwise watches an API server.
"""

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import yaml

from engine.hami.annotations import NODE_LOCK

APPLIED = "schedulerlog_scheduler_cluster_file_applied_timestamp_seconds"


class ClusterFile:
    """A copy of ``source`` at ``path``, and the changes that the scenarios make to it."""

    def __init__(self, source: Path, copy: Path) -> None:
        self.path = copy
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(source.read_text())

    def end_pod(self, namespace: str, name: str) -> None:
        """Let a pod succeed, which frees its devices."""
        objects = self.read_objects()
        self._find(objects, "Pod", name, namespace)["status"]["phase"] = "Succeeded"
        self._write(objects)

    def lock_node(self, node: str, owner: str) -> None:
        """Lock the node as HAMi does while it binds the pod ``owner`` (``namespace/name``) to it."""
        objects = self.read_objects()
        lock = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ},{owner.replace('/', ',')}"
        self._find(objects, "Node", node)["metadata"]["annotations"][NODE_LOCK] = lock
        self._write(objects)

    def wait_until_applied(self, metrics_url: str, timeout_seconds: float = 30) -> None:
        """Return when the scheduler's metrics show that it has applied the present content of the file."""
        written = self.path.stat().st_mtime
        deadline = time.monotonic() + timeout_seconds
        while time.monotonic() < deadline:
            lines = httpx.get(metrics_url, timeout=2).text.splitlines()
            applied = next((float(line.split()[-1]) for line in lines if line.startswith(APPLIED)), 0.0)
            # As text the metric may lose the last digits of the modification time.
            if applied >= written - 1e-3:
                return
            time.sleep(0.05)
        raise TimeoutError(f"the scheduler did not apply {self.path} in {timeout_seconds:.0f} s")

    def read_objects(self) -> list[dict[str, Any]]:
        return list(yaml.safe_load_all(self.path.read_text()))

    def _write(self, objects: list[dict[str, Any]]) -> None:
        # Written beside and renamed, so that the scheduler never reads half a file.
        draft = self.path.with_suffix(".draft")
        draft.write_text(yaml.safe_dump_all(objects, sort_keys=False, width=10**6))
        draft.replace(self.path)

    @staticmethod
    def _find(objects: list[dict[str, Any]], kind: str, name: str, namespace: str | None = None) -> dict[str, Any]:
        wanted = (kind, name, namespace)
        for candidate in objects:
            metadata = candidate["metadata"]
            if (candidate["kind"], metadata["name"], metadata.get("namespace")) == wanted:
                return candidate
        raise LookupError(f"the cluster file has no {kind} {name}")
