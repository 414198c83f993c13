"""A node's score is the sum of its terms, in the decision and in the records about it."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.events.node_records import build_node_records
from engine.fit.events.record_columns import NodeNames
from engine.fit.judge.choose.scoring import SCORE_TERMS, score_nodes
from engine.fit.judge.decide import decide
from engine.fit.judge.decision import Decision, SchedulingPolicy
from schemas.codec.records import decode, encode
from schemas.events import NodesJudged, PodRef
from tests.support.builders.kube_objects import STARTED, a_cluster, a_container, a_node, a_pod
from tests.support.builders.vendor_examples import VENDORS, read_node, read_pod
from tests.support.stress import count_examples

AMOUNTS = st.integers(0, 2**31)
ATTEMPT = {
    "cluster": "default", "attempt_id": "a", "pod": PodRef(namespace="default", name="pod1"),
    "scheduler": "hami-scheduler", "started_at": STARTED,
}  # fmt: skip
# Three roundings to 32 bits, each of at most a part in 2^24 of the largest term.
ROUNDING = 4 * 2.0**-23


@given(st.lists(st.tuples(*[st.tuples(AMOUNTS, AMOUNTS.filter(bool))] * 3), min_size=1, max_size=20))
def test_a_score_is_the_sum_of_its_terms(nodes: list[tuple[tuple[int, int], ...]]) -> None:
    columns = np.array(nodes, np.int64)
    used, totals = columns[:, :, 0].T, columns[:, :, 1].T
    scores, terms = score_nodes(list(used), list(totals))
    assert tuple(terms) == SCORE_TERMS
    together = sum(term.astype(np.float64) for term in terms.values())
    assert np.allclose(together, scores, rtol=ROUNDING, atol=0)
    # Worked out apart from the code under test: ten times each used share.
    for term, held, total in zip(terms.values(), used, totals, strict=True):
        assert np.allclose(term, 10 * held / total, rtol=ROUNDING, atol=0)


def encode_parts(decision: Decision) -> list[NodesJudged]:
    names = NodeNames.measure(decision.node_names)
    encoded = [encode(record) for record in build_node_records(ATTEMPT, decision, names, is_placed=True)]
    decoded = [decode(record.value, record.headers) for record in encoded]
    assert all(len(record.value) <= 64 * 1024 for record in encoded)
    return [record for record in decoded if isinstance(record, NodesJudged)]


def decide_on(*nodes: str, memory: int) -> Decision:
    # Half as many slots and half as much memory on the second node: one pod there weighs twice as much.
    cluster = a_cluster(a_node("big", devices=2), a_node("small", devices=1), *(a_node(name) for name in nodes))
    for name, uuid in (("big", "GPU-big-0"), ("small", "GPU-small-0")):
        held = {"hami.io/vgpu-node": name, "hami.io/vgpu-devices-allocated": f"{uuid},NVIDIA,22956,25:;"}
        cluster.apply_pod(a_pod(f"on-{name}", annotations=held))
    pod = a_pod(containers=[a_container(gpumem=memory)])
    answer = decide(cluster, pod, ["big", "small", *nodes], SchedulingPolicy())
    assert isinstance(answer, Decision)
    return answer


def test_the_records_name_the_terms_of_the_nodes_that_fit() -> None:
    (record,) = encode_parts(decide_on(memory=1000))
    # One of ten slots, 25 of 100 percent, half of 45912 MiB; of two devices half of each.
    assert {name: np.round(column, 4).tolist() for name, column in record.score_terms.items()} == {
        "slots": [0.5, 1.0], "cores": [1.25, 2.5], "memory": [2.5, 5.0],
    }  # fmt: skip
    assert np.round(record.score, 4).tolist() == [4.25, 8.5]


def test_where_no_node_fits_there_are_no_terms() -> None:
    (record,) = encode_parts(decide_on(memory=10**6))
    assert record.score_terms == {}


@settings(max_examples=count_examples(2))
@given(st.integers(1, 3000))
def test_records_of_many_nodes_are_small_enough(nodes: int) -> None:
    records = encode_parts(decide_on(*(f"node-{number:05}" for number in range(nodes)), memory=1000))
    assert sum(len(record.nodes) for record in records) == nodes + 2


def test_what_a_vendor_adds_is_a_term_of_its_own() -> None:
    """The example loses 61 by two of its GPUs, which HAMi takes from 2,000."""
    columns = ClusterColumns(VENDORS)
    columns.apply_node(read_node("metax-gpu"))
    answer = decide(columns, read_pod("metax-gpu"), ["metax-gpu-node"], SchedulingPolicy())
    assert isinstance(answer, Decision)
    (record,) = encode_parts(answer)
    terms = {name: column.tolist()[0] for name, column in record.score_terms.items()}
    assert terms["vendor"] == 2000 - 61
    assert np.isclose(sum(terms.values()), record.score[0], rtol=ROUNDING)
