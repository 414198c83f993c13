"""Pods whose place KAI takes for others, placements that it commits, and nodes that lack resources."""

from engine.diagnosis.logged_facts import EarlierAttempts, LoggedFact, UnfinishedAttempt
from engine.summaries.answer import build_schedulerlog
from ingest.readers.kai import KaiLog
from schemas.events import AttemptSummarized
from tests.support.builders.kai_lines import print_lines, read, summarize_attempts

LOOK = "common/allocate.go: Looking for best node for task - Task: <{pod}>, init requested: <{requested}>."
TWO_GPUS = "GPU: 2, CPU: 1 (cores), memory: 1 (GB)"
REFUSED = (
    "framework/session.go: Not enough resources for task: <{pod}>, init requested: <{requested}>. Node <{node}> with"
    " limited resources, releasing: <{releasing}>, idle: <{idle}>"
)
NOTHING = "CPU: 0 (cores), memory: 0 (GB), Gpus: 0"
NO_GPUS = "CPU: 19 (cores), memory: 19 (GB), Gpus: 0"
ALLOCATED = (
    "framework/statement.go: Statement allocated task: <team-b/short-0> to node: <gpu-0>",
    "common/allocate.go: Allocation succeeded for task: <team-b/short-0>",
)
REASON = "Pod team-a/long-0 was preempted by workload team-b/short.\nQueue queue-a uses 4 GPUs, deserved 2 GPUs"
EVICTED = (
    f"common/action.go: Statement eviction for task <team-a/long-0>, message: <{REASON}> ",
    "framework/statement.go: Statement evicted task: <team-a/long-0> from node: <gpu-0>",
)
PIPELINED = (
    LOOK.format(pod="team-b/short-0", requested=TWO_GPUS),
    "framework/statement.go: Statement pipelined task: <team-b/short-0> to node: <gpu-0>, gpuGroup: <[]>",
)
VICTIM_AGAIN = (
    LOOK.format(pod="team-a/long-0", requested=TWO_GPUS),
    "framework/session.go: Overall priority node score of node <gpu-0> for task <team-a/long-0> is: 3.000000",
    REFUSED.format(pod="team-a/long-0", requested=TWO_GPUS, node="gpu-0", releasing=NOTHING, idle=NO_GPUS),
)
COMMITTED = (
    "framework/statement.go: Committing operations ...",
    "framework/statement.go: Evicting task: team-a/long-0",
    "framework/statement.go: Pipelining task: team-b/short-0",
)


def read_attempts(*messages: str) -> list[AttemptSummarized]:
    return summarize_attempts(read(print_lines(*messages)))


def test_a_pod_that_kai_evicts_in_a_simulation_has_no_attempt() -> None:
    attempts = read_attempts(*EVICTED, *PIPELINED, *VICTIM_AGAIN)
    assert [str(attempt.pod) for attempt in attempts] == ["team-b/short-0"]


def test_a_simulation_that_the_end_of_the_log_cuts_off_is_no_placement() -> None:
    refused = REFUSED.format(pod="team-b/short-0", requested=TWO_GPUS, node="gpu-0", releasing=NOTHING, idle=NO_GPUS)
    (attempt,) = read_attempts(LOOK.format(pod="team-b/short-0", requested=TWO_GPUS), refused, *EVICTED, *PIPELINED)
    assert (attempt.chosen, attempt.complete) == (None, False)
    (node,) = build_schedulerlog(attempt).filter.nodes
    assert (node.containers[0].reason or "").startswith("Node didn't have enough resources: GPUs: ")


def test_a_committed_eviction_leaves_its_pod_without_a_verdict_and_the_winner_with_a_node() -> None:
    noted: list[EarlierAttempts | LoggedFact | UnfinishedAttempt] = []
    events = read(print_lines(*EVICTED, *PIPELINED, *VICTIM_AGAIN, *COMMITTED), KaiLog(note=noted.append))
    (winner,) = summarize_attempts(events)
    assert (str(winner.pod), winner.status, winner.nominated) == ("team-b/short-0", "pending", "gpu-0")
    attempt, fact = noted
    assert isinstance(attempt, UnfinishedAttempt)
    assert isinstance(fact, LoggedFact)
    assert (attempt.pod, attempt.reader) == ("team-a/long-0", "kai-log")
    assert (fact.kind, fact.node, fact.pod, fact.words) == ("pod evicted", "gpu-0", "team-a/long-0", REASON)


def test_a_simulated_eviction_that_was_not_committed_is_not_noted() -> None:
    noted: list[EarlierAttempts | LoggedFact | UnfinishedAttempt] = []
    read(print_lines(*EVICTED, *VICTIM_AGAIN), KaiLog(note=noted.append))
    assert noted == []


def test_scores_of_a_victim_before_its_eviction_is_committed_are_no_attempt() -> None:
    """Level 5 prints scores, and of an eviction only its commit."""
    score = "framework/session.go: Overall priority node score of node <gpu-0> for task <team-a/long-0> is: 3.000000"
    assert read_attempts(score, *COMMITTED[:2]) == []


def test_a_committed_allocation_has_its_node_without_the_line_of_the_bind_request() -> None:
    (attempt,) = read_attempts(
        LOOK.format(pod="team-b/short-0", requested=TWO_GPUS), *ALLOCATED, COMMITTED[0],
        "framework/statement.go: Allocating task: team-b/short-0",
    )  # fmt: skip
    assert (attempt.status, attempt.chosen) == ("pending", "gpu-0")


def test_an_allocation_that_was_not_committed_has_no_node() -> None:
    (attempt,) = read_attempts(LOOK.format(pod="team-b/short-0", requested=TWO_GPUS), *ALLOCATED)
    assert (attempt.chosen, attempt.complete) == (None, False)


def test_a_pod_that_was_placed_and_is_evicted_in_a_later_simulation_keeps_its_node() -> None:
    evicted = "framework/statement.go: Statement evicted task: <team-b/short-0> from node: <gpu-0>"
    (attempt,) = read_attempts(
        LOOK.format(pod="team-b/short-0", requested=TWO_GPUS), *ALLOCATED,
        "framework/statement.go: Allocating task: team-b/short-0", evicted,
        REFUSED.format(pod="team-b/short-0", requested=TWO_GPUS, node="gpu-1", releasing=NOTHING, idle=NO_GPUS),
    )  # fmt: skip
    assert attempt.chosen == "gpu-0"
    assert [node.name for node in build_schedulerlog(attempt).filter.nodes] == ["gpu-0"]


def test_the_shortage_of_a_node_follows_from_its_amounts() -> None:
    for requested, releasing, idle, shortage in (
        (TWO_GPUS, NOTHING, "CPU: 0.5 (cores), memory: 19 (GB), Gpus: 1", "GPUs and CPU cores"),
        (TWO_GPUS, "CPU: 0 (cores), memory: 0 (GB), Gpus: 2", "CPU: 19 (cores), memory: 0 (GB), Gpus: 0", "memory"),
        ("[1000 1e+09 2 1]", "[0 0 0 0]", "[2000 1e+10 1 108]", "GPUs"),
        # A request for memory of devices is printed as 0 GPUs.
        ("[1000 1e+09 0 1]", "[0 0 0 0]", "[2000 1e+10 0 108]", "GPUs"),
    ):
        line = REFUSED.format(pod="team-b/short-0", requested=requested, node="gpu-0", releasing=releasing, idle=idle)
        (attempt,) = read_attempts(LOOK.format(pod="team-b/short-0", requested=requested), line)
        (node,) = build_schedulerlog(attempt).filter.nodes
        assert (node.containers[0].reason or "").startswith(f"Node didn't have enough resources: {shortage}: ")
