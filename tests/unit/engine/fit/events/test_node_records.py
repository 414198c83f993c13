"""Node records of a decision: the chosen node is picked only where the pod was placed."""

import pytest

from engine.fit.events.node_records import build_node_records
from engine.fit.events.record_columns import NodeNames
from engine.fit.judge.decide import decide
from engine.fit.judge.decision import Decision, SchedulingPolicy
from schemas.codec.records import decode, encode
from schemas.events import NodesJudged, PodRef
from tests.support.builders.kube_objects import STARTED, a_cluster, a_container, a_node, a_pod

ATTEMPT = {
    "cluster": "default", "attempt_id": "a", "pod": PodRef(namespace="default", name="pod1"),
    "scheduler": "hami-scheduler", "started_at": STARTED,
}  # fmt: skip


def collect_verdicts(decision: Decision, *, is_placed: bool) -> dict[str, str]:
    verdicts: dict[str, str] = {}
    names = NodeNames.measure(decision.node_names)
    for record in build_node_records(ATTEMPT, decision, names, is_placed=is_placed):
        encoded = encode(record)
        decoded = decode(encoded.value, encoded.headers)
        assert isinstance(decoded, NodesJudged)
        verdicts |= {
            name: decoded.verdicts[verdict] for name, verdict in zip(decoded.nodes, decoded.verdict, strict=True)
        }
    return verdicts


@pytest.mark.parametrize(("is_placed", "expected"), [(False, "fits"), (True, "picked")])
def test_a_node_is_picked_only_where_the_pod_was_placed(is_placed: bool, expected: str) -> None:
    cluster = a_cluster(a_node("empty"), a_node("full", devices=0))
    decision = decide(cluster, a_pod(containers=[a_container()]), ["empty", "full"], SchedulingPolicy())
    assert isinstance(decision, Decision)
    verdicts = collect_verdicts(decision, is_placed=is_placed)
    assert verdicts["empty"] == expected
    assert verdicts["full"] not in ("picked", "fits")
    # The reply reads the decision's own column afterwards.
    assert collect_verdicts(decision, is_placed=True)["empty"] == "picked"
