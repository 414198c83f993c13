"""Order of obstacles, and the state of a pod.

The order is that of the docstring of `engine.diagnosis.tree`: first what keeps the scheduler from judging, then what
passes when other pods end, then what an administrator can repair, then what the pod itself excludes.
"""

from collections.abc import Sequence
from typing import Any

import pytest

from engine.diagnosis.evidence import Evidence
from engine.diagnosis.facts import DiagnosisFacts, PodOnCluster
from engine.diagnosis.headline import FITS_NOW
from engine.diagnosis.outcome import FoundObstacle, TreeStep, Word
from engine.diagnosis.tree import SCHEDULER_WORDS, State, derive_state, diagnose, diagnose_judged, rank_obstacles
from engine.hami.reason_codes import ReasonCode as Code
from schemas.events import AttemptSummarized, BindOutcome, Condition, PickedDevice, Refusal
from tests.support.builders.events import STARTED, a_summary
from tests.support.builders.layer_objects import to_english

POD = Evidence("pod", "/pods/job-0", STARTED)
REFUSED = Condition(type="PodScheduled", status="False", reason="Unschedulable", message="0/3 nodes are available.")


def an_obstacle(code: str, *nodes: str, count: int | None = None, **words: Word) -> FoundObstacle:
    return FoundObstacle(code, words, nodes=nodes, node_count=len(nodes) if count is None else count)


def list_ranked(*obstacles: FoundObstacle) -> list[str]:
    return [obstacle.code for obstacle in rank_obstacles(obstacles)]


def test_kinds_of_obstacles_come_in_the_order_of_the_tree() -> None:
    order = [
        "QuotaExceeded", "CardInsufficientMemory", "CardNotHealth", "TooFewDevices", "PodAffinityMismatch",
        "NodeOfAnotherScheduler", "BindConflict",
    ]  # fmt: skip
    # More nodes do not make a kind more important.
    obstacles = [an_obstacle(code, count=count) for count, code in enumerate(order)]
    assert list_ranked(*obstacles) == list_ranked(*obstacles[::-1]) == order


@pytest.mark.parametrize(
    ("first", "second"),
    [
        # Of a kind the obstacle of more nodes.
        (an_obstacle("CardInsufficientCore", count=3), an_obstacle("CardInsufficientMemory", count=2)),
        # A scheduler looks at a device's share when the node has enough of everything else.
        (an_obstacle("GpuShareShort", count=1), an_obstacle("CardInsufficientMemory", count=9)),
        (an_obstacle("DeviceShareTooFew", count=1), an_obstacle("InsufficientResource", count=9)),
        # It checks taints and selectors first.
        (an_obstacle("PodAffinityMismatch", count=1), an_obstacle("TaintNotTolerated", count=9)),
        (an_obstacle("TopologySpread", count=1), an_obstacle("AffinityMismatch", count=9)),
        # Words that nobody knows are a reason of a node, and not the last thing to look at.
        (an_obstacle("RefusedInOtherWords", count=2), an_obstacle("PodAffinityMismatch", count=1)),
        (an_obstacle("PodAffinityMismatch", count=2), an_obstacle("RefusedInOtherWords", count=1)),
        # What closes only nodes that the pod was not meant for comes after everything else.
        (an_obstacle("BindConflict"), an_obstacle("QuotaExceeded", count=9)._replace(is_aside=True)),
    ],
)
def test_of_two_obstacles_one_comes_first(first: FoundObstacle, second: FoundObstacle) -> None:
    assert list_ranked(first, second) == list_ranked(second, first) == [first.code, second.code]


def test_equal_obstacles_are_one_and_the_first_one_counts() -> None:
    first, again = an_obstacle("CardInsufficientMemory", "n0"), an_obstacle("CardInsufficientMemory", "n1")
    assert rank_obstacles([first, again]) == [first]


@pytest.mark.parametrize("word", ["resource", "asked", "count", "request", "terms", "constraints"])
def test_obstacles_about_different_things_are_different(word: str) -> None:
    first, second = (FoundObstacle("InsufficientResource", {word: value}) for value in ("a", "b"))
    assert len(rank_obstacles([first, second])) == 2
    assert len(rank_obstacles([first, first])) == 1


def test_a_word_that_is_not_about_the_request_makes_no_difference() -> None:
    first, second = (FoundObstacle("InsufficientResource", {"share": value}) for value in ("a", "b"))
    assert rank_obstacles([first, second]) == [first]


UNREGISTERED, FITS = Code.NODE_UNREGISTERED, FITS_NOW


@pytest.mark.parametrize(
    ("obstacle", "is_left_out"),
    [
        (an_obstacle(UNREGISTERED, "n0"), True),
        (an_obstacle(UNREGISTERED, "n0", "n1"), True),
        (an_obstacle(UNREGISTERED, "n0", "n2"), False),
        # More nodes are meant than are named.
        (an_obstacle(UNREGISTERED, "n0", count=2), False),
        # Of nodes that are only counted, all have to be explained.
        (an_obstacle(UNREGISTERED, count=2), True),
        (an_obstacle(UNREGISTERED, count=3), False),
        # Devices that the scheduler does not have are none that the pod fits on.
        (an_obstacle(FITS, "n1"), True),
        (an_obstacle(FITS, "n2"), False),
        (an_obstacle("CardInsufficientMemory", "n0"), False),
    ],
)
@pytest.mark.parametrize("problem", ["HandshakeTooOld", "RegistrationMissing", "HandshakeDeleted"])
def test_a_problem_of_a_registration_explains_an_unregistered_node(
    problem: str, obstacle: FoundObstacle, is_left_out: bool
) -> None:
    codes = list_ranked(obstacle, an_obstacle(problem, "n0", "n1"))
    assert set(codes) == ({problem} if is_left_out else {problem, obstacle.code})


def test_an_unregistered_node_stands_where_nothing_explains_it() -> None:
    assert list_ranked(an_obstacle(UNREGISTERED, "n0"), an_obstacle("CardNotHealth", "n0")) == [
        "CardNotHealth",
        UNREGISTERED,
    ]


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        # The scheduler's words as such are the last resort.
        ([SCHEDULER_WORDS], [SCHEDULER_WORDS]),
        ([SCHEDULER_WORDS, "CardNotHealth"], ["CardNotHealth"]),
        # The object that a count is about stands for the count.
        (["DevicesNotAllocatable", "DevicesInUse"], ["DevicesInUse"]),
        (["DevicesNotAllocatable", "DevicesTainted"], ["DevicesTainted"]),
        (["DevicesNotAllocatable", "CardNotHealth"], ["DevicesNotAllocatable", "CardNotHealth"]),
        (["VolumeElsewhere", "VolumeOutOfReach"], ["VolumeOutOfReach"]),
        (["VolumeElsewhere", "NoVolumeForClaim"], ["NoVolumeForClaim"]),
        (["NoVolumeForClaim", "VolumeNotAvailable"], ["VolumeNotAvailable"]),
        (["ClaimNotOnNode", "DeviceClaimElsewhere"], ["DeviceClaimElsewhere"]),
    ],
)
def test_an_obstacle_that_another_one_explains_is_left_out(codes: Sequence[str], expected: list[str]) -> None:
    assert list_ranked(*map(an_obstacle, codes)) == expected


def build_facts(**more: Any) -> DiagnosisFacts:
    return DiagnosisFacts("default", "lab", "job-0", STARTED, **more)


def a_step(question: str, *, is_end: bool = False) -> TreeStep:
    return TreeStep(question, "no", is_end=is_end)


def a_pod(**fields: Any) -> PodOnCluster:
    return PodOnCluster(POD, **{"scheduler": "volcano"} | fields)


def an_attempt(**fields: Any) -> AttemptSummarized:
    return a_summary(**{"ended_at": STARTED} | fields)


BOUND = BindOutcome(node="node1", bound=True, ended_at=STARTED)
NOT_BOUND = BindOutcome(node="node1", bound=False, error="denied", ended_at=STARTED)
CHOSEN = an_attempt(chosen="node1", fit_nodes=1)


@pytest.mark.parametrize(
    ("facts", "steps", "state"),
    [
        (build_facts(), [], "not known"),
        (build_facts(pod=a_pod()), [], "not judged"),
        (build_facts(pod=a_pod(is_gone=True, node="node1")), [], "missing"),
        (build_facts(pod=a_pod(node="node1")), [], "placed"),
        (build_facts(pod=a_pod(node="node1")), [a_step("TakenByNode")], "rejected"),
        (build_facts(pod=a_pod(phase="Succeeded")), [a_step("StillWaits", is_end=True)], "ended"),
        (build_facts(pod=a_pod(phase="Failed", node="node1")), [a_step("StillWaits", is_end=True)], "ended"),
        (build_facts(pod=a_pod(node="node1")), [a_step("StillWaits")], "placed"),
        # A pod that was bound and has ended since does not run on a node any more.
        (build_facts(pod=a_pod(phase="Failed"), attempt=CHOSEN.model_copy(update={"bind": BOUND})),
         [a_step("StillWaits", is_end=True)], "ended"),
        (build_facts(pod=a_pod(is_being_deleted=True), attempt=CHOSEN.model_copy(update={"bind": BOUND})),
         [a_step("StillWaits", is_end=True)], "ended"),
        (build_facts(pod=a_pod(phase="Running"), attempt=CHOSEN.model_copy(update={"bind": BOUND})),
         [a_step("StillWaits", is_end=True)], "placed"),
        (build_facts(pod=a_pod()), [a_step("FreeOfGates")], "gated"),
        (build_facts(attempt=CHOSEN), [], "binding"),
        (build_facts(attempt=an_attempt(fit_nodes=1)), [], "binding"),
        (build_facts(attempt=CHOSEN.model_copy(update={"bind": BOUND})), [], "placed"),
        (build_facts(attempt=CHOSEN.model_copy(update={"bind": NOT_BOUND})), [], "refused"),
        (build_facts(attempt=CHOSEN.model_copy(update={"error": "timeout"})), [], "refused"),
        (build_facts(attempt=an_attempt()), [], "refused"),
        # A log that breaks off inside an attempt leaves it without a verdict.
        (build_facts(attempt=a_summary([], refusals=[]), log_ended_at=STARTED), [], "not judged"),
        (build_facts(attempt=a_summary([], refusals=[])), [], "refused"),
        (build_facts(attempt=a_summary(), log_ended_at=STARTED), [], "refused"),
        (build_facts(attempt=an_attempt(), log_ended_at=STARTED), [], "refused"),
        (build_facts(attempt=a_summary([], refusals=[], fit_nodes=2), log_ended_at=STARTED), [], "binding"),
        (build_facts(attempt=a_summary([], refusals=[], bind=NOT_BOUND), log_ended_at=STARTED), [], "refused"),
        # Without an attempt the condition or a step about the scheduler's words says that it has looked.
        (build_facts(pod=a_pod(conditions=[REFUSED])), [], "refused"),
        (build_facts(pod=a_pod()), [a_step("NodePassed")], "refused"),
        (build_facts(pod=a_pod()), [a_step("QueueHasRoom")], "refused"),
        (build_facts(pod=a_pod()), [a_step("ChoiceHeld")], "refused"),
        (build_facts(pod=a_pod()), [TreeStep("NodePassed", "yes")], "not judged"),
        (build_facts(pod=a_pod()), [a_step("QuotaLeft")], "not judged"),
        # Of an attempt that others followed, the pod of today says nothing.
        (build_facts(pod=a_pod(is_gone=True), attempt=an_attempt(), is_latest=False), [], "refused"),
        (build_facts(pod=a_pod(phase="Failed"), attempt=CHOSEN.model_copy(update={"bind": BOUND}), is_latest=False),
         [], "placed"),
    ],
)  # fmt: skip
def test_the_state_follows_from_pod_attempt_and_steps(
    facts: DiagnosisFacts, steps: list[TreeStep], state: State
) -> None:
    assert derive_state(facts, steps) == state


DEVICE = PickedDevice(container=0, uuid="GPU-1", model="A100", memory_mib=1000, cores_percent=10)


@pytest.mark.parametrize(
    ("facts", "sentence"),
    [
        (build_facts(pod=a_pod(node="node9", phase="Running")), "The pod is on node node9."),
        (build_facts(attempt=CHOSEN.model_copy(update={"bind": BOUND})), "The pod is on node node1."),
        (build_facts(), "Nothing could be read about the pod."),
    ],
)
def test_a_pod_without_obstacles_is_described_by_its_state(facts: DiagnosisFacts, sentence: str) -> None:
    assert to_english(diagnose(facts).sentence) == sentence


def test_picked_devices_are_named_on_the_chosen_node_only() -> None:
    attempt = CHOSEN.model_copy(update={"bind": BOUND, "picked": [DEVICE]})
    assert "A100" in diagnose(build_facts(attempt=attempt)).sentence.en
    moved = build_facts(pod=a_pod(node="node9", phase="Running"), attempt=attempt)
    assert to_english(diagnose(moved).sentence) == "The pod is on node node9."


@pytest.mark.parametrize(("passing", "answer"), [(0, "no"), (1, "yes")])
def test_a_simulated_pod_is_asked_for_the_nodes_that_the_filters_left(passing: int, answer: str) -> None:
    closed = an_obstacle("NodeCordoned", "n0", of=1, refused=1, share="1 of 1 nodes")
    diagnosis = diagnose_judged(build_facts(), [closed], [], passing)
    assert diagnosis.steps[0].answer == answer
    assert (diagnosis.state, diagnosis.excluded_by) == ("refused", None)
    assert diagnosis.obstacle
    assert diagnosis.obstacle.code == "NodeCordoned"
    attempt = a_summary(["n1"], ended_at=STARTED, refusals=[Refusal(bare=Code.NODE_UNREGISTERED)])
    diagnosis = diagnose_judged(build_facts(attempt=attempt), [closed], ["taint"], passing)
    assert [obstacle.code for obstacle in (diagnosis.obstacle, *diagnosis.other_obstacles) if obstacle] == [
        "NodeCordoned", UNREGISTERED,
    ]  # fmt: skip
    assert (diagnosis.state, diagnosis.excluded_by) == ("refused", ["taint"])
