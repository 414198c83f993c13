"""Nodes that are walked device by device share a walk where they are equal, and only there."""

import json
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.devices.device_matrix import build_batches
from engine.fit.judge.choose.batch_evaluation import BatchEvaluation
from engine.fit.judge.judgement import ContainerJudgement
from engine.fit.judge.request.pod_annotations import read_pod_annotations
from engine.fit.judge.request.pod_constraints import build_constraints
from engine.fit.judge.request.pod_request import list_requests
from engine.hami.vendors import NVIDIA, ONLY_NVIDIA
from tests.support.builders.nodes_to_judge import (
    A100_PROFILES,
    a_cluster,
    a_device,
    a_mig_device,
    a_node,
    a_pod,
    a_running_pod,
    ask_for,
)
from tests.support.stress import count_examples

NODES = [f"n{number}" for number in range(3)]


def an_instance(uuid: str, start: int, size: int) -> str:
    placement = {"start": start, "size": size}
    profile = "1g.5gb" if size == 1 else "3g.20gb"
    return json.dumps(
        [{"containerIndex": 0, "deviceIndex": 0, "gpuUUID": uuid, "profile": profile, "placement": placement}]
    )


@st.composite
def clusters(draw: st.DrawFn) -> ClusterColumns:
    """Few kinds of nodes, so that some are equal and some differ in one thing alone."""
    profiles = st.sampled_from([A100_PROFILES, A100_PROFILES[:1]])
    columns = a_cluster(
        *(
            a_node(
                name,
                [
                    a_mig_device(f"{name}-0", migProfiles=draw(profiles)),
                    a_mig_device(f"{name}-1"),
                    a_device(f"{name}-2"),
                ],
            )
            for name in NODES
        )
    )
    for number in range(draw(st.integers(0, 12))):
        uuid = f"{draw(st.sampled_from(NODES))}-{draw(st.integers(0, 1))}"
        start, size = draw(st.sampled_from([(0, 1), (1, 1), (4, 1), (5, 1), (0, 4)]))
        given_now = f"{uuid},NVIDIA,{4864 if size == 1 else 19968},{14 if size == 1 else 42}:;"
        pod = a_running_pod(given_now, uuid.split("-")[0], f"uid-{number}")
        pod["metadata"]["annotations"]["hami.io/vgpu-mig-allocations"] = an_instance(uuid, start, size)
        columns.apply_pod(pod)
    return columns


@st.composite
def pods(draw: st.DrawFn) -> dict[str, Any]:
    containers = [
        ask_for(draw(st.integers(1, 3)), gpumem=draw(st.sampled_from([3000, 15000])))
        for _ in range(draw(st.integers(1, 3)))
    ]
    policy = draw(st.sampled_from(["binpack", "topology-aware"]))
    uid = draw(st.sampled_from(["uid-pod", "uid-0"]))
    return a_pod(*containers, annotations={"hami.io/gpu-scheduler-policy": policy}, uid=uid)


def judge_nodes(columns: ClusterColumns, pod: dict[str, Any], names: list[str]) -> dict[tuple[int, str], list[Any]]:
    """Return by container and node all that is decided about it."""
    annotations = read_pod_annotations(pod["metadata"]["annotations"], "binpack", "spread", NVIDIA)
    (batch,) = build_batches(columns, np.array([columns.look_up_ids([name])[0] for name in names]))
    trial = BatchEvaluation({NVIDIA.word: build_constraints(columns, pod["metadata"], annotations, NVIDIA)}, batch)
    value: dict[tuple[int, str], list[Any]] = {}
    for container, request in enumerate(list_requests(pod, ONLY_NVIDIA)):
        if not trial.is_over:
            judgement = trial.judge(container, request)
            value |= {(container, names[node]): rows for node, rows in _split_by_node(judgement)}
    return value


def _split_by_node(part: ContainerJudgement) -> list[tuple[int, list[Any]]]:
    ends = np.cumsum(part.rows)
    columns = (part.device, part.verdict, part.used_memory_mib, part.used_cores, part.used_slots)
    return [
        (node, [bool(part.passed[i]), *(column[ends[i] - part.rows[i] : ends[i]].tolist() for column in columns)])
        for i, node in enumerate(part.nodes.tolist())
    ]


@given(clusters(), pods())
@settings(max_examples=count_examples(25))
def test_a_node_is_judged_among_others_as_it_is_alone(columns: ClusterColumns, pod: dict[str, Any]) -> None:
    together = judge_nodes(columns, pod, NODES)
    alone = [judge_nodes(columns, pod, [name]) for name in NODES]
    assert together == {key: rows for verdicts in alone for key, rows in verdicts.items()}


def hold_instances(columns: ClusterColumns, gpu: str, *starts: int) -> None:
    for start in starts:
        pod = a_running_pod(f"{gpu},NVIDIA,4864,14:;", gpu.split("-")[0], f"uid-{gpu}-{start}")
        pod["metadata"]["annotations"]["hami.io/vgpu-mig-allocations"] = an_instance(gpu, start, 1)
        columns.apply_pod(pod)


def test_nodes_of_equal_use_differ_where_their_instances_stand_elsewhere() -> None:
    columns = a_cluster(*(a_node(name, [a_mig_device(f"{name}-0")]) for name in NODES))
    hold_instances(columns, "n0-0", 0, 1)
    hold_instances(columns, "n1-0", 0, 4)
    hold_instances(columns, "n2-0", 2, 3)
    value = judge_nodes(columns, a_pod(ask_for(1, gpumem=15000)), NODES)
    assert [value[0, name][0] for name in NODES] == [True, False, True]


def test_what_the_pod_itself_took_counts_on_each_node_for_its_next_container() -> None:
    columns = a_cluster(*(a_node(name, [a_mig_device(f"{name}-0")]) for name in NODES))
    hold_instances(columns, "n1-0", 0)
    value = judge_nodes(columns, a_pod(ask_for(1, gpumem=15000), ask_for(1, gpumem=15000)), NODES)
    assert [value[1, name][0] for name in NODES if (1, name) in value] == [True, False, True]
