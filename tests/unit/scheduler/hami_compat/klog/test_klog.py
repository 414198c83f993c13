"""HAMi's log lines: spelled as HAMi v2.10 spells them, with pod, node and device in each, and never in the way."""

import os
import re
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest

from engine.fit.events.attempt import AttemptRef, Identity
from engine.fit.judge.decide import decide
from engine.fit.judge.decision import Decision, Failed, SchedulingPolicy
from engine.hami.annotations import ASSIGNED_NODE, DEVICES_ALLOCATED
from scheduler.hami_compat.klog import lines
from scheduler.hami_compat.klog.device_lines import LogLine, format_float
from scheduler.hami_compat.klog.writer import KlogWriter, add_headers
from schemas.events import PodRef
from schemas.json_types import Json
from tests.support.builders.kube_objects import STARTED, a_cluster, a_container, a_device, a_node, a_pod

ASKING = a_container(gpus=2, gpumem=20480, gpucores=20)
A40, V100 = 45912, 32768


def an_attempt(name: str = "deepseek") -> AttemptRef:
    return AttemptRef.start(
        Identity("default", "hami-scheduler"), PodRef(namespace="llm", name=name, uid=f"uid-{name}"), STARTED
    )


def a_decision(*nodes: Json, pods: tuple[Json, ...] = (), offered: tuple[str, ...] = (), pod: Json) -> Decision:
    columns = a_cluster(*nodes)
    for running_pod in pods:
        columns.apply_pod(running_pod)
    answer = decide(columns, pod, [*(node["metadata"]["name"] for node in nodes), *offered], SchedulingPolicy())
    assert isinstance(answer, Decision)
    return answer


def write_lines(decision: Decision, level: int, error: str = "") -> list[str]:
    return [line.text for line in lines.render_decision(an_attempt(), decision, STARTED, error, level)]


def a_pod_using(device: str, memory: int, cores: int, node: str = "node1") -> Json:
    held = {ASSIGNED_NODE: node, DEVICES_ALLOCATED: f"{device},NVIDIA,{memory},{cores}:;"}
    return a_pod(f"on-{device}", annotations=held)


@pytest.fixture
def mixed() -> Decision:
    """node1 refuses for many reasons, node2 fits, node3 has too few devices, node4 is not registered."""
    node_devices = [
        a_device("GPU-dead", health=False),
        a_device("GPU-out"),
        a_device("GPU-old", type="NVIDIA-Tesla V100-PCIE-32GB", devmem=V100),
        a_device("GPU-full"),
        a_device("GPU-busy"),
        a_device("GPU-shared", count=1),
        a_device("GPU-free"),
    ]
    nodes = [
        a_node("node1", devices=node_devices, annotations={"hami.io/device-cordon": "GPU-out"}),
        a_node("node2", devices=2),
        a_node("node3", devices=1),
    ]
    pods = (a_pod_using("GPU-full", 41645, 10), a_pod_using("GPU-busy", 1000, 90), a_pod_using("GPU-shared", 1000, 10))
    annotations = {"nvidia.com/use-gputype": "A40"}
    asking = a_pod("deepseek", [ASKING], annotations, namespace="llm")
    return a_decision(*nodes, pods=pods, offered=("node4",), pod=asking)


def test_level_0_says_what_is_asked_and_what_kubectl_describe_shows(mixed: Decision) -> None:
    assert write_lines(mixed, 0) == [
        '"Starting schedule filter process" pod="deepseek" uuid="uid-deepseek" namespace="llm"',
        (
            '"Allocating device for container request" pod="llm/deepseek" card request='
            '{"Nums":2,"Type":"NVIDIA","Memreq":20480,"MemPercentagereq":101,"Coresreq":20}'
        ),
        (
            '"Scheduling pod to node" podNamespace="llm" podName="deepseek" nodeID="node2" devices={"NVIDIA":[['
            # As in the pod's annotation, in the order in which they were taken.
            '{"UUID":"GPU-node2-1","Type":"NVIDIA","Usedmem":20480,"Usedcores":20},'
            '{"UUID":"GPU-node2-0","Type":"NVIDIA","Usedmem":20480,"Usedcores":20}]]}'
        ),
        (
            '"Event occurred" object="llm/deepseek" fieldPath="" kind="Pod" apiVersion="v1" type="Normal" '
            'reason="FilteringSucceed" message="find fit node(node2), 3 nodes not fit, 1 nodes fit(node2:0.00)"'
        ),
    ]


def test_level_2_says_the_score_of_every_node_that_fits(mixed: Decision) -> None:
    assert set(write_lines(mixed, 2)) - set(write_lines(mixed, 0)) == {"node node2 computer default score is 0.000000"}


def test_level_4_says_every_node_with_its_reasons_or_its_score(mixed: Decision) -> None:
    reasons = (
        "1/7 AllocatedCardsInsufficientRequest, 1/7 CardCordoned, 1/7 CardInsufficientCore, "
        "1/7 CardInsufficientMemory, 1/7 CardNotHealth, 1/7 CardTimeSlicingExhausted, 1/7 CardTypeMismatch"
    )
    assert [line for line in write_lines(mixed, 4) if line not in write_lines(mixed, 2)] == [
        '"Processing resource requirements" pod="llm/deepseek" initContainerCount=0 containerCount=1 totalContainers=1',
        (
            '"Resource requirements collected" pod="llm/deepseek" requests='
            '[{"NVIDIA":{"Nums":2,"Type":"NVIDIA","Memreq":20480,"MemPercentagereq":101,"Coresreq":20}}]'
        ),
        f'"NodeUnfitPod" pod="llm/deepseek" node="node1" reason="{reasons}"',
        '"NodeFitPod" pod="llm/deepseek" node="node2" score=0',
        '"NodeUnfitPod" pod="llm/deepseek" node="node3" reason="NodeInsufficientDevice"',
        '"node unregistered" pod="llm/deepseek" node="node4" error="node node4 not found"',
    ]


def test_level_5_says_every_device_with_the_numbers_behind_its_verdict(mixed: Decision) -> None:
    where = 'pod="llm/deepseek" node="node1"'
    refused = (
        "1/7 AllocatedCardsInsufficientRequest, 1/7 CardCordoned, 1/7 CardInsufficientCore, "
        "1/7 CardInsufficientMemory, 1/7 CardNotHealth, 1/7 CardTimeSlicingExhausted, 1/7 CardTypeMismatch"
    )
    expected = {
        '"Processing container resources" pod="llm/deepseek" containerIndex=0 containerName="main"',
        "Filtering node node1 for pod llm/deepseek",
        # GPU-full has 45912 - 41645 MiB left.
        f"Node node1 filtered out: {refused}, requested 20480Mi but available 4267Mi",
        "Filtering node node2 for pod llm/deepseek",
        "Filtering node node3 for pod llm/deepseek",
        "Node node3 filtered out: NodeInsufficientDevice",
        f'"CardNotHealth" {where} device="GPU-dead" health=false',
        f'"CardCordoned" {where} device="GPU-out"',
        f'"CardTypeMismatch" {where} device="GPU-old" NVIDIA-Tesla V100-PCIE-32GB="NVIDIA"',
        (
            f'"CardInsufficientMemory" {where} device="GPU-full" device index=3 device total memory=45912 '
            "device used memory=41645 request memory=20480"
        ),
        (
            f'"CardInsufficientCore" {where} device="GPU-busy" device index=4 device total core=100 '
            "device used core=90 request cores=20"
        ),
        f'"CardTimeSlicingExhausted" {where} device="GPU-shared" count=1 used=1',
        f'"find fit device" {where} device="GPU-free"',
        f'"AllocatedCardsInsufficientRequest" {where} request=2 allocated=1',
        '"find fit device" pod="llm/deepseek" node="node2" device="GPU-node2-0"',
        '"find fit device" pod="llm/deepseek" node="node2" device="GPU-node2-1"',
        (
            '"NodeInsufficientDevice" pod="llm/deepseek" node="node3" request devices nums=2 node device nums (type)=1 '
            'type="NVIDIA"'
        ),
    }
    assert set(write_lines(mixed, 5)) - set(write_lines(mixed, 4)) == expected


def log_one_device(gpu: Json, pod: Json, *pods: Json) -> list[str]:
    decision = a_decision(a_node("node1", devices=[gpu]), pods=pods, pod=pod)
    return [line for line in write_lines(decision, 5) if "device=" in line]


def test_a_device_without_cores_left_names_its_index() -> None:
    lines_value = log_one_device(
        a_device("GPU-a"), a_pod(containers=[a_container(gpumem=100)]), a_pod_using("GPU-a", 100, 100)
    )
    assert lines_value == ['"CardComputeUnitsExhausted" pod="llm/deepseek" node="node1" device="GPU-a" device index=0']


def test_a_device_that_would_have_to_be_alone_names_how_many_use_it() -> None:
    pod = a_pod(
        containers=[a_container(gpumem=100, gpucores=100)], annotations={"hami.io/gpu-scheduler-policy": "mutex"}
    )
    assert log_one_device(a_device("GPU-a"), pod, a_pod_using("GPU-a", 100, 10)) == [
        '"ExclusiveDeviceAllocateConflict" pod="llm/deepseek" node="node1" device="GPU-a" device index=0 used=1'
    ]


def test_a_device_that_was_not_wanted_is_described() -> None:
    pod = a_pod(annotations={"nvidia.com/use-gpuuuid": "GPU-b"})
    assert log_one_device(a_device("GPU-a"), pod) == [
        (
            '"CardUuidMismatch" pod="llm/deepseek" node="node1" device="GPU-a" current device info is:='
            '{"Index":0,"Used":0,'
            '"Count":10,"Usedmem":0,"Totalmem":45912,"Totalcore":100,"Usedcores":0,"Numa":0,"Type":"NVIDIA A40"}'
        )
    ]


def test_what_stands_in_annotations_never_makes_a_line_of_its_own() -> None:
    evil = 'GPU-a"\nE1121 00:00:00.000000 1 x.go:1] "forged"'
    decision = a_decision(a_node("node1", devices=[a_device(evil, type="NVIDIA A40\nX", health=False)]), pod=a_pod())
    value = b"".join(add_headers(lines.render_decision(an_attempt(), decision, STARTED, "", 5), STARTED, 1))
    assert all(re.match(rb"I\d{4} ", line) for line in value.splitlines())


def test_reasons_that_count_no_devices_have_no_event_of_their_own() -> None:
    decision = a_decision(a_node("node1", devices=1), offered=("node2",), pod=a_pod(containers=[ASKING]))
    (event,) = [line for line in write_lines(decision, 5) if line.startswith('"Event occurred"')]
    assert event.endswith('reason="FilteringFailed" message="no available node, 2 nodes do not meet"')


def test_a_decision_that_could_not_be_written_says_why(mixed: Decision) -> None:
    assert write_lines(mixed, 0, error='pods "deepseek" not found')[-1].endswith(
        'type="Warning" reason="FilteringFailed" message="pods \\"deepseek\\" not found"'
    )


def test_an_attempt_that_could_not_be_judged_says_why() -> None:
    value = [line.text for line in lines.render_failure(an_attempt(), Failed((), "calcScore failed"), STARTED, 0)]
    assert value[-1].endswith('reason="FilteringFailed" message="calcScore failed"')


def test_a_bind_is_reported_with_its_event() -> None:
    value = [line.text for line in lines.render_bind(an_attempt(), "node3", "", STARTED)]
    assert value[0] == '"Successfully bound pod to node" pod="deepseek" namespace="llm" node="node3"'
    assert value[1].endswith('reason="BindingSucceed" message="Successfully binding node [node3] to llm/deepseek"')


def test_a_locked_node_is_an_error() -> None:
    error = "node node5 has been locked within 5m0s: node lock contention"
    first, event = lines.render_bind(an_attempt(), "node5", error, STARTED)
    assert (first.severity, first.text) == ("E", f'"Failed to lock node" err="{error}" node="node5" pod="llm/deepseek"')
    assert event.text.endswith(f'type="Warning" reason="BindingFailed" message="{error}"')


@pytest.mark.parametrize(
    ("number", "text"),
    # What Go's %v makes of a float32.
    [(7.4607077, "7.4607077"), (0.0, "0"), (2.5, "2.5"), (1e-5, "1e-05"), (float("nan"), "NaN"), (1e39, "+Inf")],
)
@pytest.mark.filterwarnings("ignore:overflow")
def test_a_score_is_written_as_go_writes_it(number: float, text: str) -> None:
    assert format_float(number) == text


def test_the_header_is_klogs() -> None:
    moment = datetime(2026, 11, 21, 3, 6, 23, 218602, tzinfo=UTC)
    (line,) = add_headers([LogLine("score.go:275", '"NodeUnfitPod"')], moment, 32118)
    local = moment.astimezone()
    assert line.decode() == f'I{local:%m%d %H:%M:%S}.218602   32118 score.go:275] "NodeUnfitPod"\n'


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


def read_until(end: int, is_enough: Callable[[bytes], bool]) -> bytes:
    value = b""
    while not is_enough(value):
        value += os.read(end, 65536)
    return value


def test_lines_come_out_whole_and_in_order(pipe: tuple[int, int], mixed: Decision) -> None:
    writer = KlogWriter(5, pipe[1])
    for number in range(5):
        writer.log_decision(an_attempt(f"pod{number}"), mixed, STARTED, "")
    writer.close()
    value = read_until(pipe[0], lambda value: value.count(b"Event occurred") == 5).decode().splitlines()
    assert [line.split('uuid="uid-')[1].split('"')[0] for line in value if "Starting" in line] == [
        f"pod{number}" for number in range(5)
    ]
    assert all(re.fullmatch(r"I\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ \w+\.go:\d+\] .+", line) for line in value)


def test_who_does_not_read_costs_lines_and_never_the_filter(pipe: tuple[int, int], mixed: Decision) -> None:
    writer = KlogWriter(5, pipe[1], max_waiting=2_000)
    for number in range(500):
        writer.log_decision(an_attempt(f"pod{number}"), mixed, STARTED, "")
    # It came to its end although nobody read: what did not fit was left out.
    assert writer.dropped > 300
    # As soon as somebody continues to read, the number of lines left out is reported.
    read_until(pipe[0], lambda value: b'"Log lines left out: they are read too slowly" attempts=' in value)
    while True:
        before = writer.dropped
        writer.log_decision(an_attempt("late"), mixed, STARTED, "")
        if writer.dropped == before:
            break
        os.read(pipe[0], 65536)
    read_until(pipe[0], lambda value: b"uid-late" in value)
    writer.close()


def test_a_log_that_is_gone_does_no_harm(mixed: Decision) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    writer = KlogWriter(5, writing)
    for _ in range(3):
        writer.log_decision(an_attempt(), mixed, STARTED, "")
        time.sleep(0.01)
    writer.close()
    os.close(writing)
    assert writer.dropped >= 1
