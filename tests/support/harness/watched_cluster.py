"""``ingest kube-events`` on a cluster, alone or with everything behind it up to the API."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.harness.api_process import Served, serving
from tests.support.harness.forked import Forked
from tests.support.harness.pipeline_process import pipeline
from tests.support.reused_backends import reused_backends


@contextmanager
def watching_cluster(kubeconfig: Path, kafka: str, folder: Path, *flags: str) -> Iterator[Forked]:
    """``python -m ingest kube-events`` as a process, with its log in the folder; it ends with the block."""
    command = ["ingest", "kube-events", "--kubeconfig", str(kubeconfig), "--kafka", kafka, *flags]
    with (folder / "kube-events.log").open("ab") as log:
        process = Forked(*command, stdout=log, stderr=log)
        try:
            yield process
        finally:
            process.terminate()
            process.wait(timeout=120)


@contextmanager
def watched_api(kubeconfig: Path, folder: Path) -> Iterator[Served]:
    """An API that reads the cluster, with the pipeline and the reader of its events before it."""
    with (
        reused_backends.taken() as servers,
        pipeline(folder, servers) as running,
        serving(servers.bootstrap_servers, servers.opensearch_url, SCHEDULERLOG_KUBECONFIG=str(kubeconfig)) as api,
    ):
        running.start_all()
        with watching_cluster(kubeconfig, servers.bootstrap_servers, folder):
            yield api
