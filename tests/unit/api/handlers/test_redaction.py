"""Nodes of the list for callers who may not read every namespace."""

from datetime import UTC, datetime

from api.handlers.redaction import redact_listed_node
from api.http.cluster import Cluster
from api.index.nodes.node_list import NodeRecords, to_listed_node
from schemas.answers.nodes import NamespaceOnNode, NodeListed, NodeLock

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def an_amount(namespace: str, devices: int) -> NamespaceOnNode:
    return NamespaceOnNode(namespace=namespace, pods=1, devices=devices, memory_mib=10 * devices, cores_percent=0)


def build_node() -> NodeListed:
    lock = NodeLock(pod="llm/qwen-0", locked_at=None, seen_at="2026-11-21T12:00:00Z")
    node = to_listed_node(Cluster("default"), "node1", NodeRecords((), (), lock), NOON)
    return node.model_copy(update={"held": [an_amount("batch", 1), an_amount("default", 4), an_amount("llm", 2)]})


def test_namespaces_that_are_not_readable_are_one_amount_without_a_name() -> None:
    redacted = redact_listed_node(build_node(), {"default"})
    assert [(entry.namespace, entry.pods, entry.devices, entry.memory_mib) for entry in redacted.held] == [
        ("", 2, 3, 30), ("default", 1, 4, 40),
    ]  # fmt: skip
    assert redacted.lock is not None
    assert "llm" not in redacted.model_dump_json()
    assert "batch" not in redacted.model_dump_json()


def test_a_caller_who_may_read_all_of_them_sees_all_names() -> None:
    node = build_node()
    assert redact_listed_node(node, {"batch", "default", "llm"}) == node
