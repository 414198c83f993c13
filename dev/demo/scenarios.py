"""The five scenarios: what the demo does, and the answers it must get (docs/demo.md works them out by hand)."""

import difflib
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from dev.demo.kube_scheduler import read_pod
from dev.demo.many import DRAINED_NODE, JOB, plan_drain, try_job
from dev.demo.reader import Reader, build_schedulerlog_path, until
from dev.demo.stack import Stack

EXAMPLES = Path(__file__).parents[2] / "examples"
ALL_NODES = [f"node{number}" for number in range(1, 11)]
SEARCHED_REASON = "CardTimeSlicingExhausted"
BACKOFF_SECONDS = 1.0
"""kube-scheduler's first pause before it tries a pod again."""
SOURCES = ["scheduler", "kube-events"]


@dataclass(frozen=True, slots=True)
class ScenarioAnswer:
    """The answer that a reader got, beside the one it should have got."""

    title: str
    pod: str
    actual: Any
    expected: Any

    @property
    def is_right(self) -> bool:
        return bool(self.actual == self.expected)

    def describe_difference(self) -> str:
        expected, actual = _to_lines(self.expected), _to_lines(self.actual)
        return "\n".join(difflib.unified_diff(expected, actual, "expected", "actual", lineterm=""))


def _to_lines(value: Any) -> list[str]:
    return json.dumps(value, indent=2, sort_keys=True).splitlines()


def read_expected(name: str) -> Any:
    return json.loads((EXAMPLES / "expected" / f"{name}.json").read_text())


def play(stack: Stack) -> Iterator[ScenarioAnswer]:
    """Run all five in order on one cluster; yield each answer as soon as the API gives it."""
    yield _schedule_pod(stack, "1-gpu-pod", "A pod of three containers, one without GPU, is placed")
    yield _schedule_pod(
        stack, "2-gpu-pod-default", "Five devices on one node: every node refuses, each for its own reasons"
    )
    yield _compare_devices(stack, "default/gpu-pod-default", "node3", "2-devices-of-node3")
    yield _schedule_pod(
        stack, "3-deepseek", "Two of five nodes refuse, three fit, the fullest is chosen", ALL_NODES[:5]
    )
    yield _schedule_on_locked_node(stack)
    yield from _retry_until_placed(stack)


def _schedule_pod(stack: Stack, name: str, title: str, nodes: list[str] = ALL_NODES) -> ScenarioAnswer:
    pod = read_pod(EXAMPLES / "pods" / f"{name}.yaml")
    stack.kube_scheduler.schedule_once(pod, nodes)
    return _answer(stack, title, pod, name)


def _answer(stack: Stack, title: str, pod: Any, name: str) -> ScenarioAnswer:
    label = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
    actual = until(lambda: stack.reader.get_schedulerlog(label), read_expected(name))
    return ScenarioAnswer(title, label, actual, read_expected(name))


def _compare_devices(stack: Stack, pod: str, node: str, name: str) -> ScenarioAnswer:
    """Compare device by device: the verdict of the attempt, and the usage in the node's state before it."""

    def read_devices() -> list[list[str]]:
        log = stack.reader.get(build_schedulerlog_path(pod), detail="full", node=node)
        return [_describe_device(device) for device in log.get("devices") or []]

    return ScenarioAnswer(
        f"The devices of {node}, one by one", pod, until(read_devices, read_expected(name)), read_expected(name)
    )


def _describe_device(device: Any) -> list[str]:
    use = [("memory_used_mib", "memory_total_mib"), ("cores_used_percent", "cores_total_percent")]
    use.append(("slots_used", "slots_total"))
    return [device["uuid"], device["verdict"], *(f"{device[used]} of {device[total]}" for used, total in use)]


def _schedule_on_locked_node(stack: Stack) -> ScenarioAnswer:
    stack.cluster.lock_node("node4", "llm/trainer-0")
    stack.wait_until_cluster_applied()
    return _schedule_pod(stack, "4-pinned", "The filter passes, but another pod holds the node's lock")


def _retry_until_placed(stack: Stack) -> Iterator[ScenarioAnswer]:
    pod = read_pod(EXAMPLES / "pods" / "5-finetune.yaml")
    for _ in range(3):
        stack.kube_scheduler.schedule_once(pod, ALL_NODES)
        time.sleep(BACKOFF_SECONDS)
    yield _answer(stack, "Refused three times: the only node of its kind is full", pod, "5-finetune-refused")
    stack.cluster.end_pod("llm", "pretrain")
    stack.wait_until_cluster_applied()
    stack.kube_scheduler.schedule_once(pod, ALL_NODES)
    yield _answer(stack, "Placed, now that llm/pretrain has ended", pod, "5-finetune-placed")
    outline = [{"status": "succeeded", "attempts": 1}, {"status": "failed", "attempts": 3}]
    history = until(lambda: _list_episodes(stack.reader, "llm/finetune"), outline)
    yield ScenarioAnswer("Its history shows both, latest first", "llm/finetune", history, outline)


def answer_many(stack: Stack) -> Iterator[ScenarioAnswer]:
    """Answer for a Job of three pods, and plan the drain of a node."""
    job = try_job(stack)
    actual = {key: job[key] for key in ("state", "wanted", "placed", "waiting")}
    actual["obstacles"] = [group["obstacle"]["code"] for group in job["groups"] if group["obstacle"]]
    wanted = {"state": "waiting", "wanted": 3, "placed": 2, "waiting": 1, "obstacles": ["CardInsufficientCore"]}
    yield ScenarioAnswer("Two pods of the Job are placed, the third waits for compute", f"vision/{JOB}", actual, wanted)
    moves = {f"{pod['namespace']}/{pod['name']}": pod["node"] for pod in plan_drain(stack.reader)["pods"]}
    goals = {"llm/chat-1": "node3", "llm/rerank-0": "node1", "default/notebook-3": "node6"}
    yield ScenarioAnswer(f"The drain of {DRAINED_NODE} has a node for each pod", DRAINED_NODE, moves, goals)


def _list_episodes(reader: Reader, pod: str) -> list[Any]:
    return [{key: episode[key] for key in ("status", "attempts")} for episode in reader.list_episodes(pod)]


def compare_sources(stack: Stack) -> Iterator[ScenarioAnswer]:
    """Compare the answers about the same pods after ``kube-events`` has reported each of their tries, too."""
    names = ("1-gpu-pod", "2-gpu-pod-default", "3-deepseek", "4-pinned", "5-finetune")
    title = "The same, now that kube-events has reported it too"
    for name in names:
        metadata = read_pod(EXAMPLES / "pods" / f"{name}.yaml")["metadata"]
        pod = f"{metadata['namespace']}/{metadata['name']}"
        reports = until(partial(_list_sources, stack, pod), SOURCES)
        yield ScenarioAnswer("Its sources", pod, reports, SOURCES)
        wanted = read_expected("5-finetune-placed" if name == "5-finetune" else name)
        yield ScenarioAnswer(title, pod, stack.reader.get_schedulerlog(pod), wanted)
    outline = [{"status": "succeeded", "attempts": 1}, {"status": "failed", "attempts": 3}]
    yield ScenarioAnswer(
        "Each of its four tries counts once", "llm/finetune", _list_episodes(stack.reader, "llm/finetune"), outline
    )


def _list_sources(stack: Stack, pod: str) -> list[str]:
    log = stack.reader.get(build_schedulerlog_path(pod), detail="full")
    return [report["source"] for report in log.get("detail", {}).get("reports", [])]


def compare_messages(stack: Stack) -> Iterator[ScenarioAnswer]:
    """Compare the event messages of every pod, in the order of their time."""
    wanted: dict[str, list[list[str]]] = read_expected("messages")
    actual: dict[str, list[list[str]]] = {pod: [] for pod in wanted}
    for message in stack.reader.read_messages(sum(map(len, wanted.values()))):
        actual.setdefault(str(message.pod), []).append([message.severity, message.reason, message.message])
    for pod, lines in actual.items():
        yield ScenarioAnswer("Event messages", pod, lines, wanted.get(pod, []))


def search(stack: Stack) -> ScenarioAnswer:
    """Search for the attempts that met a device without a free slot."""

    def read_items() -> list[list[str]]:
        items = stack.reader.search(reason=SEARCHED_REASON).get("items", [])
        return [[item["namespace"], item["name"], item["status"]] for item in items]

    wanted = [["default", "gpu-pod-default", "failed"]]
    return ScenarioAnswer(f"Search: reason={SEARCHED_REASON}", "every namespace", until(read_items, wanted), wanted)
