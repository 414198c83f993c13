"""Ports of servers: free, below the range of outgoing connections, and of one process alone."""

import subprocess
import sys
from itertools import pairwise

import pytest

from dev.embedded.errors import EmbeddedError
from dev.embedded.ports import KAFKA_PORTS, KUBERNETES_PORTS, OPENSEARCH_PORTS, SERVICE_PORTS, find_free_port, is_free


def ask_another_process(candidates: range) -> str:
    """Ask another process for a free port among these; return what it prints."""
    program = f"from dev.embedded.ports import find_free_port; print(find_free_port({candidates}))"
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    return process.stdout.strip() or process.stderr


def test_a_range_without_a_free_port_is_named() -> None:
    with pytest.raises(EmbeddedError, match="every port from 5 to 7"):
        find_free_port(range(5, 8), besides=[5, 6, 7])


def test_a_port_is_given_to_no_other_process_although_nothing_listens_there() -> None:
    port = find_free_port(SERVICE_PORTS)
    assert is_free(port)
    assert "is taken" in ask_another_process(range(port, port + 1))


def test_a_process_that_has_ended_holds_no_port() -> None:
    port = find_free_port(KAFKA_PORTS)
    other = int(ask_another_process(range(port + 1, port + 400)))
    assert find_free_port(range(other, other + 1)) == other


def test_a_process_is_given_its_port_again_where_there_is_no_other() -> None:
    port = find_free_port(SERVICE_PORTS)
    assert find_free_port(range(port, port + 1)) == port


def test_ports_of_one_kind_of_server_are_of_no_other() -> None:
    ranges = sorted((OPENSEARCH_PORTS, SERVICE_PORTS, KUBERNETES_PORTS, KAFKA_PORTS), key=lambda ports: ports.start)
    assert all(before.stop <= after.start for before, after in pairwise(ranges))
    assert ranges[-1].stop < 32_768  # Linux' default of net.ipv4.ip_local_port_range.
