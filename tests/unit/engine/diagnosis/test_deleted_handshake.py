"""A node that HAMi's scheduler has given up by itself."""

from datetime import UTC, datetime

import yaml

from engine.diagnosis.cluster_steps import check_registered_devices
from engine.diagnosis.facts import DiagnosisFacts
from engine.diagnosis.objects import to_node_facts
from engine.diagnosis.texts import write_remedy, write_sentence
from ingest.cases.answers import diagnose_pods
from ingest.cases.read_case import list_pod_names, read_case_text
from tests.support.builders.simulations import a_gpu_node, a_gpu_pod

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


def test_a_node_that_was_given_up_explains_a_pod_that_it_would_take() -> None:
    """Releases of HAMi before v2.9 leave it out, and the present rules do not (docs/hami-differences.md)."""
    node = a_gpu_node("dgx-1")
    node["metadata"]["annotations"]["hami.io/node-handshake"] = "Deleted_2026-05-07 09:12:44"
    pod = a_gpu_pod()
    pod["spec"]["schedulerName"] = "hami-scheduler"
    pod["metadata"]["creationTimestamp"] = "2026-11-25T11:00:00Z"
    pod["status"] = {"phase": "Pending"}
    case = read_case_text(yaml.safe_dump_all([pod, node]))
    (answer,) = diagnose_pods(case, list_pod_names(case))
    assert answer.diagnosis.obstacle is not None
    assert answer.diagnosis.obstacle.code == "HandshakeDeleted"
