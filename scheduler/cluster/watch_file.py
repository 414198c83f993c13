"""Following the cluster file: each change is applied; while the file is broken, the last good state holds."""

import asyncio
import logging
from pathlib import Path

from engine.fit import manifests
from engine.fit.manifests import ManifestError
from scheduler.cluster.file_cluster import SimulatedCluster
from scheduler.metrics import Metrics

log = logging.getLogger(__name__)

Stamp = tuple[int, int, int]
"""Modification time in nanoseconds, size, inode: equal as long as nobody has written the file."""


class FileWatch:
    """`problem` is what is wrong with the file now; empty while it is as applied."""

    def __init__(self, path: Path, cluster: SimulatedCluster, metrics: Metrics) -> None:
        self._path, self._cluster, self._metrics = path, cluster, metrics
        self._seen: Stamp | None = None
        self.problem = ""

    def load(self) -> None:
        """Read the file for the first time. Raises `ManifestError`."""
        stamp = self._stamp()
        manifest = manifests.read(self._path)
        self._cluster.apply(manifest)
        self._note(stamp)

    async def run(self, poll_seconds: float = 0.2) -> None:
        """Follow the file until cancelled."""
        while True:
            await asyncio.sleep(poll_seconds)
            stamp = self._stamp()
            # A file that is absent for a moment is being replaced by an editor.
            if stamp is not None and stamp != self._seen:
                await self._reload(stamp)

    async def _reload(self, stamp: Stamp) -> None:
        # Also of a broken file, so that its mistake is logged once and not at every look.
        self._seen = stamp
        try:
            # In a thread: parsing a large file would hold up every filter call.
            manifest = await asyncio.to_thread(manifests.read, self._path)
        except ManifestError as error:
            self.problem = str(error)
            self._metrics.cluster_broken.set(1)
            log.error("%s. The cluster remains as it was before this edit.", error)  # noqa: TRY400 - a user's mistake
            return
        self._cluster.apply(manifest)
        self._note(stamp)
        log.info("applied %s: %d nodes, %d pods", self._path, len(manifest.nodes), len(manifest.pods))

    def _note(self, stamp: Stamp | None) -> None:
        self._seen, self.problem = stamp, ""
        self._metrics.cluster_broken.set(0)
        if stamp:
            self._metrics.cluster_applied.set(stamp[0] / 1e9)

    def _stamp(self) -> Stamp | None:
        try:
            status = self._path.stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size, status.st_ino
