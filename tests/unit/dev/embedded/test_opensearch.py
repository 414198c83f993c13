"""Log of an OpenSearch that died, and the cause that it names."""

from pathlib import Path

import pytest

from dev.embedded.errors import PortTakenError
from dev.embedded.jvm import Jvm
from dev.embedded.opensearch import OpenSearchNode

STARTED = "[o.o.c.s.ClusterManagerService] Tasks batched with key: [elected-as-cluster-manager ([1] nodes joined)]"
HTTP = "[o.o.h.AbstractHttpServerTransport] publish_address {127.0.0.1:9201}, bound_addresses {127.0.0.1:9201}"
CLOSED = "[stdout] Closed all nodes."


@pytest.mark.parametrize(
    ("lines", "may_move"),
    [
        ([STARTED, CLOSED], True),
        ([STARTED, HTTP, CLOSED], False),
        (["java.lang.OutOfMemoryError: Java heap space", CLOSED], False),
    ],
    ids=["no port for HTTP", "stopped later", "no memory"],
)
def test_a_node_that_got_no_port_for_http_may_be_started_at_another(
    tmp_path: Path, lines: list[str], may_move: bool
) -> None:
    node = OpenSearchNode(tmp_path, 9201, Jvm("64m", (), (), tmp_path))
    node.log.write_text("\n".join(lines))
    assert isinstance(node._build_failure("opensearch died while starting"), PortTakenError) is may_move
