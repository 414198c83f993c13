"""The rules are written twice: for all nodes at once, and device by device. Both must say the same."""

import json
from typing import Any

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.devices.device_matrix import build_batches
from engine.fit.judge.choose.batch_evaluation import BatchEvaluation
from engine.fit.judge.judgement import ContainerJudgement
from engine.fit.judge.request.pod_annotations import read_pod_annotations
from engine.fit.judge.request.pod_constraints import PodConstraints, build_constraints
from engine.fit.judge.request.pod_request import list_requests
from engine.hami.vendors import NVIDIA, ONLY_NVIDIA
from tests.support.builders.nodes_to_judge import a_cluster, a_device, a_node, a_pod, a_quota, a_running_pod, ask_for
from tests.support.stress import count_examples

POLICIES = [
    "binpack",
    "spread",
    "mutex",
    "numa",
    "numa,binpack",
    "mutex,spread",
    "unknown",
    "topology-aware",
    "topology-aware,spread",
    "",
]


@st.composite
def gpus(draw: st.DrawFn, node: str) -> list[dict[str, Any]]:
    return [
        a_device(
            f"{node}-{number}",
            index=draw(st.integers(0, 3)),
            numa=draw(st.integers(0, 2)),
            count=draw(st.integers(0, 4)),
            devmem=draw(st.sampled_from([0, 1000, 4000])),
            devcore=draw(st.sampled_from([0, 100, 200])),
            type=draw(st.sampled_from(["NVIDIA", "NVIDIA A30", "NVIDIA A30", "Tesla P4"])),
            health=draw(st.booleans()) or draw(st.booleans()),
        )
        for number in range(draw(st.integers(1, 9)))
    ]


@st.composite
def pair_scores(draw: st.DrawFn, node: str) -> dict[str, str]:
    """Few different scores, so that choices are often equal; some nodes say none, or not of every pair."""
    uuids = [f"{node}-{number}" for number in range(draw(st.sampled_from([0, 0, 5, 9])))]
    score = st.sampled_from([0, 10, 20, -5, 2**62])
    rows = [{"uuid": uuid, "score": {other: draw(score) for other in uuids}} for uuid in uuids]
    return {"node_nvidia_score": json.dumps(rows)} if uuids else {}


@st.composite
def clusters(draw: st.DrawFn) -> ClusterColumns:
    names = [f"n{i}" for i in range(draw(st.integers(1, 5)))]
    columns = a_cluster(
        *(a_node(name, draw(gpus(name)), device_cordon="n0-1,n1-0", **draw(pair_scores(name))) for name in names)
    )
    for number in range(draw(st.integers(0, 8))):
        node = draw(st.sampled_from(names))
        device, memory, cores = draw(st.integers(0, 8)), draw(st.integers(0, 3000)), draw(st.sampled_from([0, 30, 100]))
        columns.apply_pod(a_running_pod(f"{node}-{device},NVIDIA,{memory},{cores}:;", node, f"uid-{number}"))
    if draw(st.booleans()):
        columns.apply_quota(a_quota(gpumem=draw(st.integers(0, 12000)), gpucores=draw(st.integers(0, 400))))
    return columns


@st.composite
def pods(draw: st.DrawFn) -> dict[str, Any]:
    def draw_container() -> dict[str, Any]:
        amounts = {"gpumem": [None, 500, 2500], "gpumem_percentage": [None, 40, 100], "gpucores": [None, 0, 30, 100]}
        drawn = {key: draw(st.sampled_from(values)) for key, values in amounts.items()}
        return ask_for(draw(st.integers(0, 4)), **{key: value for key, value in drawn.items() if value is not None})

    annotations = {
        "nvidia.com/numa-bind": draw(st.sampled_from(["true", "false"])),
        "nvidia.com/nouse-gpuuuid": draw(st.sampled_from(["", "n0-0", "n1-1, n2-0"])),
        "hami.io/gpu-scheduler-policy": draw(st.sampled_from(POLICIES)),
        "hami.io/device-scoring-weights": draw(st.sampled_from(["slot=1,core=1,memory=1", "slot=0,core=5,memory=1"])),
    }
    init = [draw_container() for _ in range(draw(st.integers(0, 1)))]
    uid = draw(st.sampled_from(["uid-pod", "uid-0"]))
    return a_pod(
        *(draw_container() for _ in range(draw(st.integers(1, 3)))), init=init, annotations=annotations, uid=uid
    )


def judge_containers(columns: ClusterColumns, terms: PodConstraints, pod: dict[str, Any]) -> list[ContainerJudgement]:
    (batch,) = build_batches(columns, np.sort(columns.look_up_ids(columns.node_names)))
    trial = BatchEvaluation({NVIDIA.word: terms}, batch)
    requests = list_requests(pod, ONLY_NVIDIA)
    return [
        trial.judge(container, request)
        for container, request in enumerate(requests)
        if request.asks and not trial.is_over
    ]


@given(clusters(), pods())
@settings(max_examples=count_examples(20))
def test_all_nodes_at_once_say_what_walking_each_says(columns: ClusterColumns, pod: dict[str, Any]) -> None:
    annotations = read_pod_annotations(pod["metadata"]["annotations"], "binpack", "spread", NVIDIA)
    terms = build_constraints(columns, pod["metadata"], annotations, NVIDIA)
    assume(len(list(build_batches(columns, columns.look_up_ids(columns.node_names)))) == 1)
    together = judge_containers(columns, terms, pod)
    singly = judge_containers(columns, terms._replace(one_by_one=True), pod)
    assert len(together) == len(singly)
    for ours, theirs in zip(together, singly, strict=True):
        for name in ContainerJudgement.__dataclass_fields__.keys() - {"container"}:
            assert getattr(ours, name).tolist() == getattr(theirs, name).tolist(), name
