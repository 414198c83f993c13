"""The story of the demo: the cluster, then pod by pod the answer to why it is placed or refused, as a person reads it.

The texts are the API's: its sentence, the first of its suggestions, and the next best node of a placed pod.
"""

import textwrap
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from dev.demo.drawing import draw_cluster
from dev.demo.kube_scheduler import Pod, read_pod
from dev.demo.many import DRAINED_NODE, JOB, plan_drain, try_job
from dev.demo.reader import Reader, build_pod_path, until
from dev.demo.scenarios import ALL_NODES, EXAMPLES
from dev.demo.stack import Stack
from schemas.json_types import Json

WIDTH: Final = 80
WAITING_POD: Final = "llm/finetune"
HOLDER: Final = "llm/pretrain"
"""Holds the devices that the waiting pod requests."""
SHOWN_POD: Final = "default/gpu-pod-default"
RETRY_SECONDS: Final = 5.0
"""Pause between two tries of the waiting pod."""
Write = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Act:
    """A pod of the story and what it requests."""

    file: str
    request: str
    nodes: list[str] = field(default_factory=lambda: list(ALL_NODES))
    locked_node: str = ""


ACTS: Final = (
    Act("1-gpu-pod", "requests four devices for two of its three containers"),
    Act("2-gpu-pod-default", "requests five devices with 3,000 MiB and 30 % each"),
    Act("3-deepseek", "requests three whole devices of one NUMA node", ALL_NODES[:5]),
    Act("4-pinned", "requests one particular device of node4", locked_node="node4"),
)
LAST_ACT: Final = Act("5-finetune", "requests all eight H100s")


@dataclass(frozen=True, slots=True)
class PodAnswers:
    """Answers of the API about one pod after it was tried."""

    pod: str
    diagnosis: Json
    suggestions: Json
    scores: Json

    def to_json(self) -> Json:
        """Convert to the document that ``--json`` prints."""
        return {
            "pod": self.pod, "diagnosis": self.diagnosis, "suggestions": self.suggestions, "scores": self.scores
        }  # fmt: skip


def draw(running: Stack, write: Write) -> None:
    """Write the cluster before the first pod comes."""
    for line in draw_cluster(running.cluster.read_objects()):
        write(line)


def play(running: Stack) -> Iterator[tuple[Act, PodAnswers]]:
    """Let each pod of the story be tried, and yield its answers."""
    for act in ACTS:
        if act.locked_node:
            running.cluster.lock_node(act.locked_node, "llm/trainer-0")
            running.wait_until_cluster_applied()
        yield act, try_pod(running, act)


def try_pod(running: Stack, act: Act) -> PodAnswers:
    """Let kube-scheduler try the pod once, and read the answers when the API has them."""
    pod = read_pod(EXAMPLES / "pods" / f"{act.file}.yaml")
    node = running.kube_scheduler.schedule_once(pod, act.nodes)
    return read_answers(running.reader, name_pod(pod), node)


def name_pod(pod: Pod) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def read_answers(reader: Reader, pod: str, node: str | None) -> PodAnswers:
    """Read the answers about a pod that is on ``node`` now, or was refused."""
    until(lambda: reader.get_status(pod), "succeeded" if node else "failed")
    diagnosis, suggestions, scores = (
        reader.get(build_pod_path(pod, answer)) for answer in ("diagnosis", "suggestions", "scores")
    )
    return PodAnswers(pod, diagnosis, suggestions, scores)


def format_act(act: Act, answers: PodAnswers) -> Iterator[str]:
    """Format what the pod requests, its sentence, and what would help or why this node was taken."""
    yield ""
    yield f"{answers.pod} {act.request}."
    is_placed = answers.diagnosis["state"] == "placed"
    yield from _format_sentence(answers.diagnosis)
    if is_placed:
        yield from _format_choice(answers.scores)
    else:
        yield from _fold("helps", _find_help(answers))


def _format_sentence(diagnosis: Json) -> Iterator[str]:
    """Format the sentence; a placed pod's without the UUIDs of its devices, which its page lists."""
    text = str(diagnosis["sentence"]["en"])
    if diagnosis["state"] == "placed":
        return _fold("placed", f"{text.partition(', with ')[0].rstrip('.')}.")
    return _fold("refused", text)


def _format_choice(scores: Json) -> Iterator[str]:
    nodes = {node["node"]: node["score"] for node in scores.get("nodes", [])}
    if (other := scores.get("runner_up")) and (chosen := scores.get("chosen")) in nodes:
        yield from _fold(
            "because", f"{chosen} is fuller than {other['node']} ({nodes[chosen]:.2f} > {other['score']:.2f}: binpack)."
        )


def _find_help(answers: PodAnswers) -> str:
    """Find the first change after which the pod fits, or the first step of the remedy where none helps."""
    if items := answers.suggestions.get("items"):
        return str(items[0]["sentence"]["en"])
    obstacle = answers.diagnosis["obstacle"]
    return f"{obstacle['remedy']['en'].partition('. ')[0].rstrip('.')}." if obstacle else ""


def _fold(label: str, text: str) -> Iterator[str]:
    indent = " " * 11
    yield from textwrap.wrap(f"  {label:<9}{text}", WIDTH, subsequent_indent=indent, break_on_hyphens=False)


def wait_for_end(running: Stack, write: Write, wait_seconds: float) -> PodAnswers:
    """Let the last pod wait for the end of another one, and return its answers when it is placed."""
    answers = try_pod(running, LAST_ACT)
    for line in format_act(LAST_ACT, answers):
        write(line)
    write(f"  {'waits':<9}{HOLDER} holds them and ends in {wait_seconds:.0f} s.")
    started = time.monotonic()
    while (left := started + wait_seconds - time.monotonic()) > 0:
        time.sleep(min(left, RETRY_SECONDS))
        if left > RETRY_SECONDS:
            try_pod(running, LAST_ACT)
    running.cluster.end_pod(*HOLDER.split("/"))
    running.wait_until_cluster_applied()
    _write_moment(write, f"{HOLDER} has ended.")
    answers = try_pod(running, LAST_ACT)
    waited = time.monotonic() - started
    _write_moment(write, f"{WAITING_POD} was placed {waited:.0f} s after its first try.")
    for line in _format_sentence(answers.diagnosis):
        write(line)
    return answers


def format_alert(reader: Reader) -> Iterator[str]:
    """Format the most severe alert that fires, when the rules have been evaluated; nothing where none does."""
    until(lambda: bool(_list_firing(reader)), expected=True)
    firing = _list_firing(reader)
    if firing:
        yield ""
        yield f"{len(firing)} alerts fire; one of them:" if len(firing) > 1 else "An alert fires:"
        yield from _fold(firing[0]["severity"], firing[0]["summary"])


def format_many(running: Stack) -> Iterator[str]:
    """Format the answer about a Job of several pods, and the plan of a drain."""
    api = running.build_url("api")
    yield ""
    yield f"vision/{JOB}, a Job of three pods, requests four T4s for each."
    yield from _fold("answer", str(try_job(running)["sentence"]["en"]))
    yield f"Open  {api}/ui/workloads/vision/job/{JOB}"
    yield ""
    yield f"A drain of {DRAINED_NODE}, planned and not carried out:"
    yield from _fold("plan", str(plan_drain(running.reader)["sentence"]["en"]))
    yield f"Open  {api}/ui/nodes/{DRAINED_NODE}/drain"


def _list_firing(reader: Reader) -> list[Json]:
    items: list[Json] = reader.get("/api/v1/alerts").get("items", [])
    return [alert for alert in items if alert["state"] == "firing"]


def _write_moment(write: Write, text: str) -> None:
    write(f"  {datetime.now(UTC):%H:%M:%S} {text}")
