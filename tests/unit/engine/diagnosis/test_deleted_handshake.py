"""A node that HAMi's scheduler has given up by itself."""

from datetime import UTC, datetime

from engine.diagnosis.cluster_steps import check_registered_devices
from engine.diagnosis.facts import DiagnosisFacts
from engine.diagnosis.objects import to_node_facts
from engine.diagnosis.texts import write_remedy, write_sentence
from tests.support.builders.simulations import a_gpu_node

NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)


def test_a_deleted_handshake_is_not_a_plugin_that_stopped_reporting() -> None:
    node = a_gpu_node("dgx-1")
    node["metadata"]["annotations"]["hami.io/node-handshake"] = "Deleted_2026-05-07 09:12:44"
    facts = DiagnosisFacts("c", "default", "p", NOW, nodes=[to_node_facts(node, "/api/v1/nodes/dgx-1", NOW)])
    step = check_registered_devices(facts)
    assert step is not None
    [obstacle] = step.obstacles
    assert obstacle.code == "HandshakeDeleted"
    assert "given up a node: dgx-1 (its handshake reads Deleted_2026" in write_sentence(obstacle).en
    assert "kubectl annotate node dgx-1 hami.io/node-handshake-" in write_remedy(obstacle, "default", "p").en
