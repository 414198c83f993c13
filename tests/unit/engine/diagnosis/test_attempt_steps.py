"""Questions about an attempt: whether its filter ran, whether a node passed, and the obstacle of each refused group.

kube-scheduler's texts are as its framework writes them ("0/N nodes are available: …", then "preemption: …"); the counts
and shares are worked out by hand.
"""

from datetime import timedelta
from typing import Any

import pytest

from engine.diagnosis.attempt_steps import answer_attempt_questions
from engine.diagnosis.evidence import Evidence, Unknown
from engine.diagnosis.facts import Claim, DiagnosisFacts, NodeFacts, Quota
from engine.diagnosis.logged_facts import LoggedFact
from engine.diagnosis.open_nodes import Closed
from engine.diagnosis.outcome import FoundObstacle, TreeStep
from engine.hami.reason_codes import ReasonCode as Code
from schemas.answers.attempts import DeviceLog
from schemas.events import AttemptSummarized, NodeProblem, Refusal
from tests.support.builders.events import STARTED, a_refusal, a_report, a_request, a_summary
from tests.support.builders.layer_objects import to_english

HERE = Evidence("object", "/objects/1", STARTED)
NO_DEVICE_OF_THE_KIND, NO_MEMORY = a_refusal(CardTypeMismatch=8), a_refusal(CardInsufficientMemory=8)
GPUS, CPU = "Insufficient nvidia.com/gpu", "Insufficient cpu"
NOT_HELPFUL = "preemption: 0/{} nodes are available: {} Preemption is not helpful for scheduling."


def build_facts(*rows: DeviceLog, **more: Any) -> DiagnosisFacts:
    return DiagnosisFacts("default", "lab", "job-0", STARTED, devices=rows or None, **more)


def answer(attempt: AttemptSummarized, facts: DiagnosisFacts | None = None, **closed: Closed) -> list[TreeStep]:
    return list(answer_attempt_questions(facts or build_facts(), attempt, closed))


def find_obstacles(
    attempt: AttemptSummarized, facts: DiagnosisFacts | None = None, **closed: Closed
) -> list[FoundObstacle]:
    """Find the obstacles of the question whether a node passed."""
    return [
        obstacle
        for step in answer(attempt, facts, **closed)
        if step.question == "NodePassed"
        for obstacle in step.obstacles
    ]


def list_codes(attempt: AttemptSummarized, facts: DiagnosisFacts | None = None, **closed: Closed) -> list[str]:
    return [obstacle.code for obstacle in find_obstacles(attempt, facts, **closed)]


def an_attempt(*refusals: Refusal, **fields: Any) -> AttemptSummarized:
    """An ended attempt whose nodes n0, n1, … have these refusals."""
    plain: dict[str, Any] = {"ended_at": STARTED, "refusals": list(refusals), "refusal": list(range(len(refusals)))}
    return a_summary([f"n{index}" for index in range(len(refusals))], **plain | fields)


def a_count(counts: dict[str, int], **fields: Any) -> AttemptSummarized:
    """An ended attempt of a scheduler that counts nodes by reason and names none."""
    plain: dict[str, Any] = {"ended_at": STARTED, "refused_nodes": counts, "offered_nodes": 3, "refusals": []}
    return a_summary([], **plain | fields)


def a_row(node: str, verdict: str, **fields: Any) -> DeviceLog:
    plain: dict[str, Any] = dict.fromkeys(DeviceLog.model_fields)
    plain |= {"node": node, "container": "worker", "verdict": verdict, "uuid": f"GPU-{node}", "model": "", "checks": {}}
    return DeviceLog(**plain | fields)


def a_node(name: str, **fields: Any) -> NodeFacts:
    return NodeFacts(name, HERE._replace(record=f"/nodes/{name}"), **fields)


def test_an_attempt_that_has_not_ended_leaves_both_questions_open() -> None:
    missing = Unknown("records", "index-down")
    attempt = a_summary([], refusals=[], offered_nodes=2)
    ran, passed = answer(attempt, build_facts(unknown=[missing, Unknown("devices", "not-read")]))
    assert (ran.question, ran.answer, ran.not_known) == ("FilterRan", "not known", (missing,))
    assert (passed.question, passed.answer, passed.obstacles) == ("NodePassed", "not known", [])
    assert passed.not_known == (missing, Unknown("devices", "not-read"))
    # A refusal that is known answers the second one.
    assert [step.answer for step in answer(a_summary(["n0"]))] == ["not known", "no"]


def test_a_log_that_breaks_off_ends_the_questions() -> None:
    attempt = a_summary([], refusals=[], ended_at=None, judged_devices=0)
    (step,) = answer(attempt, build_facts(log_ended_at=STARTED + timedelta(minutes=1)))
    assert (step.question, step.answer, step.is_end) == ("FilterRan", "not known", True)
    assert [obstacle.code for obstacle in step.obstacles] == ["UnfinishedAttempt"]
    assert step.evidence[0].record == attempt.attempt_id


@pytest.mark.parametrize(("chosen", "fit_nodes"), [("n0", 1), ("n0", 0), (None, 1)])
def test_a_node_that_fits_has_passed(chosen: str | None, fit_nodes: int) -> None:
    steps = answer(an_attempt(NO_MEMORY, chosen=chosen, fit_nodes=fit_nodes))
    assert [(step.question, step.answer, step.obstacles) for step in steps] == [
        ("FilterRan", "yes", ()),
        ("NodePassed", "yes", ()),
    ]


def test_a_pod_with_a_nominated_node_waits_for_its_victims() -> None:
    (_, step) = answer(an_attempt(NO_MEMORY, nominated="n7"))
    assert (step.answer, step.is_end) == ("no", True)
    assert [(obstacle.code, obstacle.words, obstacle.nodes) for obstacle in step.obstacles] == [
        ("WaitsForVictims", {"node": "n7"}, ["n7"])
    ]


def test_a_reason_that_ends_with_other_pods_comes_first_with_its_share() -> None:
    attempt = an_attempt(NO_DEVICE_OF_THE_KIND, NO_MEMORY, NO_MEMORY, refusal=[0, 1, 1])
    memory, kind = find_obstacles(attempt)
    assert (memory.code, memory.node_count, list(memory.nodes)) == (Code.CARD_INSUFFICIENT_MEMORY, 2, ["n1", "n2"])
    # Nobody has looked for memory on the node of the other kind.
    assert to_english(memory.words["share"]) == "2 of 2 nodes with a device that the pod accepts"
    assert to_english(kind.words["share"]) == "1 of 3 nodes"
    assert (memory.words["refused"], memory.words["of"], kind.words["of"]) == (2, 2, 3)
    assert (memory.words["namespace"], memory.words["scheduler"]) == ("lab", "hami-scheduler")
    assert memory.numbers == {
        "nodes": 2,
        "of_nodes": 2,
        "devices_asked": 2,
        "asked_memory_mib": 20480,
    }


@pytest.mark.parametrize(
    ("other", "share"),
    [
        (NO_DEVICE_OF_THE_KIND, "1 of 2 nodes with A100 or L20"),
        (Refusal(bare=Code.NODE_UNREGISTERED), "1 of 2 nodes with A100 or L20"),
        (a_refusal(CardInsufficientCore=8), "1 of 3 nodes"),
        # A cordoned node has such devices or not.
        (Refusal(bare="node(s) were unschedulable"), "1 of 3 nodes"),
    ],
)
def test_nodes_without_an_accepted_device_are_not_in_the_share_of_one_for_memory(other: Refusal, share: str) -> None:
    rows = [
        a_row("n0", Code.CARD_INSUFFICIENT_MEMORY, model="L20"),
        a_row("n1", Code.CARD_INSUFFICIENT_CORE, model="A100"),
    ]
    attempt = an_attempt(NO_MEMORY, a_refusal(CardInsufficientCore=8), other)
    obstacle = next(
        candidate for candidate in find_obstacles(attempt, build_facts(*rows)) if list(candidate.nodes) == ["n0"]
    )
    assert to_english(obstacle.words["share"]) == share


def test_models_are_not_named_where_some_devices_were_not_read() -> None:
    attempt = an_attempt(NO_MEMORY, NO_MEMORY, NO_DEVICE_OF_THE_KIND, refusal=[0, 0, 2])
    row = a_row("n0", Code.CARD_INSUFFICIENT_MEMORY, model="L20")
    for facts, share in (
        (build_facts(row), "with L20"),
        (build_facts(row, unknown=[Unknown("devices", "not-read")]), "with a device that the pod accepts"),
    ):
        memory = find_obstacles(attempt, facts)[0]
        assert to_english(memory.words["share"]) == f"2 of 2 nodes {share}"


@pytest.mark.parametrize(
    ("cluster_nodes", "nodes", "share"),
    [
        (0, 0, "the only node"),
        (0, 1, "the only node"),
        (0, 2, "the only node that the scheduler looked at"),
        (5, 2, "1 of 5 nodes"),
        (1, 2, "the only node that the scheduler looked at"),
    ],
)
def test_one_node_of_many_is_the_one_that_the_scheduler_looked_at(cluster_nodes: int, nodes: int, share: str) -> None:
    states = [a_node(f"n{index}") for index in range(nodes)]
    (obstacle,) = find_obstacles(an_attempt(NO_MEMORY), build_facts(nodes=states, cluster_nodes=cluster_nodes))
    assert to_english(obstacle.words["share"]) == share


@pytest.mark.parametrize(
    ("largest", "other", "code"),
    [
        (16_384, NO_DEVICE_OF_THE_KIND, "MemoryBeyondDevice"),
        (16_384, Refusal(bare=Code.NODE_UNREGISTERED), "MemoryBeyondDevice"),
        (20_480, NO_DEVICE_OF_THE_KIND, Code.CARD_INSUFFICIENT_MEMORY),
        # The devices of a node that was refused as a whole were not judged: one may be larger.
        (16_384, Refusal(bare="node(s) were unschedulable"), Code.CARD_INSUFFICIENT_MEMORY),
    ],
)
def test_more_memory_than_any_judged_device_has_is_an_obstacle_of_its_own(
    largest: int, other: Refusal, code: str
) -> None:
    row = a_row("n0", Code.CARD_INSUFFICIENT_MEMORY, memory_total_mib=largest, memory_used_mib=10_000)
    obstacles = find_obstacles(an_attempt(NO_MEMORY, other), build_facts(row))
    obstacle = next(candidate for candidate in obstacles if list(candidate.nodes) == ["n0"])
    assert obstacle.code == code
    if code == "MemoryBeyondDevice":
        assert obstacle.numbers == {
            "largest_memory_mib": largest,
            "devices": 1,
            "asked_memory_mib": 20480,
            "devices_asked": 2,
        }
    else:
        assert obstacle.numbers["free_memory_mib"] == largest - 10_000


def test_free_cores_are_a_number_in_percent() -> None:
    row = a_row("n0", Code.CARD_INSUFFICIENT_CORE, cores_total_percent=100, cores_used_percent=70)
    request = a_request(memory_mib=None, memory_percent=50, cores_percent=40)
    attempt = an_attempt(a_refusal(CardInsufficientCore=8), requests=[request])
    (obstacle,) = find_obstacles(attempt, build_facts(row))
    assert obstacle.numbers == {
        "nodes": 1,
        "of_nodes": 1,
        "free_cores_percent": 30,
        "asked_memory_percent": 50,
        "asked_cores_percent": 40,
        "devices_asked": 2,
    }


def test_codes_of_nodes_that_are_closed_now_are_left_to_the_nodes() -> None:
    cordoned = "node(s) were unschedulable"
    attempt = a_count({GPUS: 2, cordoned: 1})
    facts = build_facts(nodes=[])
    assert list_codes(attempt, facts) == ["InsufficientResource", "NodeCordoned"]
    assert list_codes(attempt, facts, n0=Closed("NodeCordoned")) == ["InsufficientResource"]
    # A code that nodes do not show stands, whatever is known of them.
    assert list_codes(attempt, facts, n0=Closed("InsufficientResource")) == ["InsufficientResource", "NodeCordoned"]


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (
            "0/2 nodes are available: preemption: 0/2 nodes are available: 2 No preemption victims.",
            "RefusedWithoutReason",
        ),
        ("0/10 nodes are available: preemption: not eligible.", "RefusedWithoutReason"),
        ("0/0 nodes are available: preemption: not eligible.", Code.FILTERING_FAILED),
        ("", Code.FILTERING_FAILED),
    ],
)
def test_an_attempt_that_ended_without_any_reason_says_so(message: str, code: str) -> None:
    (obstacle,) = find_obstacles(a_count({}, scheduler_message=message))
    assert (obstacle.code, obstacle.words) == (code, {"scheduler": "hami-scheduler", "of": 3})


@pytest.mark.parametrize(
    ("message", "uncounted"),
    [
        ("0/5 nodes are available: 2 Insufficient nvidia.com/gpu. preemption: 0/5 nodes are available: 5 No.", 3),
        ("0/5 nodes are available: 2 Insufficient nvidia.com/gpu.", 3),
        ("0/5 nodes are available: 2 Insufficient nvidia.com/gpu, 1 node(s) had unt", None),
        # Three full stops are those of a text that was cut.
        ("0/5 nodes are available: 2 Insufficient nvidia.com/gpu...", None),
        ("0/2 nodes are available: 2 Insufficient nvidia.com/gpu.", None),
        # A node with two reasons is counted under each.
        ("0/1 nodes are available: 2 Insufficient nvidia.com/gpu.", None),
        ("no nodes", None),
    ],
)
def test_nodes_of_the_total_under_no_reason_are_counted(message: str, uncounted: int | None) -> None:
    attempt = a_count({GPUS: 2}, scheduler_message=message, offered_nodes=5)
    obstacles = {obstacle.code: obstacle for obstacle in find_obstacles(attempt)}
    assert ("NodesWithoutReason" in obstacles) == (uncounted is not None)
    if uncounted:
        obstacle = obstacles["NodesWithoutReason"]
        assert (obstacle.node_count, obstacle.words) == (
            uncounted, {"rest": uncounted, "of": 5, "scheduler": "hami-scheduler"},
        )  # fmt: skip


def test_nodes_that_a_source_names_are_not_uncounted() -> None:
    message = "0/5 nodes are available: 2 Insufficient nvidia.com/gpu."
    attempt = an_attempt(NO_MEMORY, scheduler_message=message, refused_nodes={GPUS: 2})
    assert "NodesWithoutReason" not in list_codes(attempt)


UNREGISTERED, NO_HANDSHAKE = Refusal(bare=Code.NODE_UNREGISTERED), "HandshakeTooOld"


def test_unregistered_nodes_are_asked_about_unless_a_later_attempt_followed() -> None:
    nodes = [a_node("n0", devices=0), a_node("n1", devices=8), a_node("n2", devices=0)]
    attempt = an_attempt(UNREGISTERED, NO_MEMORY)
    *_, step = answer(attempt, build_facts(nodes=nodes))
    assert (step.question, step.answer) == ("DevicesRegistered", "no")
    # Of the attempt's own nodes only: n2 is unregistered too, and was not offered.
    assert step.evidence[0].numbers == {"nodes": 1, "nodes_with_devices": 0, "devices": 0}
    assert [step.question for step in answer(attempt, build_facts(nodes=nodes, is_latest=False))] == [
        "FilterRan",
        "NodePassed",
    ]
    assert [step.question for step in answer(an_attempt(NO_MEMORY), build_facts(nodes=nodes))][2:] == []


@pytest.mark.parametrize(
    ("counted", "listed"),
    [
        (2, 2),
        (3, 2),
        # More nodes have no devices than were refused: some of them were not.
        (1, None),
    ],
)
def test_unregistered_nodes_that_are_only_counted_are_those_without_devices_now(
    counted: int, listed: int | None
) -> None:
    deleted = NodeProblem(code=NO_HANDSHAKE, message="…", handshake="Deleted_2026.11.21 03:00:00")
    old = NodeProblem(code=NO_HANDSHAKE, message="…", handshake="Requesting_2026.11.21 03:00:00")
    nodes = [
        a_node("n0", devices=0), a_node("n1", devices=8), a_node("n2", devices=8, problems=[deleted]),
        a_node("n3", devices=8, problems=[old]), a_node("n4"),
    ]  # fmt: skip
    steps = answer(a_count({Code.NODE_UNREGISTERED: counted}, offered_nodes=5), build_facts(nodes=nodes))
    numbers = [step.evidence[0].numbers["nodes"] for step in steps if step.question == "DevicesRegistered"]
    assert numbers == ([listed] if listed else [])


@pytest.mark.parametrize(
    ("error", "message", "code"),
    [
        ('Post "http://127.0.0.1:80/filter": EOF', "", "ExtenderUnreachable"),
        ('persistentvolumeclaim "data" not found', "", "ClaimMissing"),
        ('persistentvolumeclaim "data" is being deleted', "", "RefusedBeforeNodes"),
        ('persistentvolumeclaim "data" bound to non-existent persistentvolume "pv-1"', "", "RefusedBeforeNodes"),
        ("plugin X failed", "", "FilterError"),
        ("plugin X failed", "running PreFilter plugin X: failed", "FilterError"),
        ("plugin X failed", "0/12 nodes are available: plugin X failed.", "RefusedBeforeNodes"),
        ("no nodes available to schedule pods", "0/0 nodes are available: no nodes", "NoNodes"),
    ],
)
def test_an_error_ends_the_questions(error: str, message: str, code: str) -> None:
    (step,) = answer(a_summary([], error=error, scheduler_message=message, refusals=[]))
    assert (step.question, step.answer, step.is_end) == ("FilterRan", "no", True)
    (obstacle,) = step.obstacles
    assert (obstacle.code, obstacle.clauses) == (code, ())
    assert obstacle.words == {"scheduler": "hami-scheduler", "namespace": "lab", "words": error}


def test_an_error_of_a_node_lock_names_the_node() -> None:
    error = "node gpu-7 has been locked within 5 minutes"
    (step,) = answer(a_summary([], error=error, refusals=[]))
    assert [obstacle.words["node"] for obstacle in step.obstacles] == ["gpu-7"]


@pytest.mark.parametrize(
    ("error", "claim"),
    [
        ('persistentvolumeclaim "data" not found', "gone"),
        ("pod has unbound immediate PersistentVolumeClaims", "unbound"),
        ("plugin X failed", None),
    ],
)
def test_an_error_about_a_claim_names_the_claim_in_this_state(error: str, claim: str | None) -> None:
    phases = {"bound": "Bound", "lost": "Lost", "gone": "", "unbound": "Pending"}
    claims = [Claim(name, HERE._replace(record=name), phase) for name, phase in phases.items()]
    (step,) = answer(a_summary([], error=error, refusals=[]), build_facts(claims=claims))
    (obstacle,) = step.obstacles
    assert obstacle.words.get("claim") == claim
    assert list(obstacle.clauses) == (["claim"] if claim else [])
    assert [evidence.record for evidence in obstacle.evidence][1:] == ([claim] if claim else [])


KAI = "Insufficient GPU memory"


@pytest.mark.parametrize(
    ("counts", "facts", "code", "resource"),
    [
        ({GPUS: 3}, build_facts(), "ResourceShortOrMissing", "nvidia.com/gpu"),
        ({"Insufficient nvidia.com/gpu.memory": 3}, build_facts(), "ResourceIsLabel", "nvidia.com/gpu.memory"),
        ({CPU: 3}, build_facts(), "InsufficientResource", "cpu"),
        ({KAI: 3}, build_facts(), "KaiMemoryShortOrUnknown", "GPU memory"),
        ({KAI: 3}, build_facts(nodes=[]), "InsufficientResource", "GPU memory"),
        ({GPUS: 3}, build_facts(nodes=[]), "InsufficientResource", "nvidia.com/gpu"),
        # HAMi's extender counts it, and no node offers it.
        ({"Insufficient nvidia.com/gpumem": 3}, build_facts(), "ResourceOfExtender", "nvidia.com/gpumem"),
    ],
)
def test_a_resource_that_only_the_scheduler_counted_may_be_missing(
    counts: dict[str, int], facts: DiagnosisFacts, code: str, resource: str
) -> None:
    (obstacle,) = find_obstacles(a_count(counts), facts)
    assert (obstacle.code, to_english(obstacle.words["resource"])) == (code, resource)


@pytest.mark.parametrize(
    ("counts", "message", "claims", "code"),
    [
        ({CPU: 3}, NOT_HELPFUL.format(3, 3), [], "ResourceBeyondNodes"),
        ({CPU: 3}, NOT_HELPFUL.format(3, 2), [], "InsufficientResource"),
        # Two reasons on one node: either may be the one that preemption does not change.
        ({CPU: 3, "node(s) were unschedulable": 1}, NOT_HELPFUL.format(3, 3), [], "InsufficientResource"),
        ({CPU: 2, "node(s) were unschedulable": 1}, NOT_HELPFUL.format(3, 3), [], "ResourceBeyondNodes"),
        ({CPU: 1, "Insufficient memory": 2}, NOT_HELPFUL.format(3, 3), [], "InsufficientResource"),
        ({CPU: 3}, NOT_HELPFUL.format(3, 3), [Claim("data", HERE, "Bound")], "InsufficientResource"),
        ({CPU: 3}, "", [], "InsufficientResource"),
    ],
)
def test_preemption_that_does_not_help_proves_that_nodes_offer_less(
    counts: dict[str, int], message: str, claims: list[Claim], code: str
) -> None:
    attempt = a_count(counts, scheduler_message=message)
    assert find_obstacles(attempt, build_facts(claims=claims, nodes=[]))[0].code == code


@pytest.mark.parametrize(
    ("taints", "code", "words"),
    [
        (["{node.kubernetes.io/unschedulable: }"], "NodeCordoned", None),
        (["{node.kubernetes.io/not-ready: }"], "NodeNotReady", None),
        (
            ["{node.kubernetes.io/disk-pressure: }"], "NodeConditionTaint", "{node.kubernetes.io/disk-pressure: }",
        ),
        (["{team: a}", "{zone: b}"], "TaintNotTolerated", "{team: a}, {zone: b}"),
        (
            ["{team: a}", "{node.kubernetes.io/unschedulable: }"], "TaintNotTolerated",
            "{team: a}, {node.kubernetes.io/unschedulable: }",
        ),
    ],
)  # fmt: skip
def test_taints_that_kubernetes_sets_are_obstacles_of_their_own(
    taints: list[str], code: str, words: str | None
) -> None:
    attempt = a_count({f"node(s) had untolerated taint {taint}": 1 for taint in taints})
    (obstacle,) = find_obstacles(attempt)
    assert (obstacle.code, to_english(obstacle.words["taints"]) if words else None) == (code, words)
    assert ("taints" in obstacle.clauses, "taints" in obstacle.words) == (words is not None, words is not None)


CONSTRAINTS = {
    "hygon.com/use-dcutype": "Z100",
    "nvidia.com/use-gpuuuid": "GPU-1",
    "nvidia.com/vgpu-mode": "mig",
    "nvidia.com/numa-bind": "true",
}


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        (Code.CARD_TYPE_MISMATCH, "hygon.com/use-dcutype=Z100, nvidia.com/vgpu-mode=mig"),
        (Code.MODE_NOT_FIT, "nvidia.com/vgpu-mode=mig"),
        (Code.CARD_UUID_MISMATCH, "nvidia.com/use-gpuuuid=GPU-1"),
        (Code.NUMA_NOT_FIT, "nvidia.com/numa-bind=true"),
        (Code.CARD_INSUFFICIENT_MEMORY, None),
    ],
)
def test_a_device_of_the_wrong_kind_is_shown_with_the_pods_annotations_about_it(code: Code, wanted: str | None) -> None:
    (obstacle,) = find_obstacles(an_attempt(a_refusal(**{code: 8}), constraints=CONSTRAINTS))
    assert (obstacle.words.get("wanted"), "wanted" in obstacle.clauses) == (wanted, wanted is not None)
    (obstacle,) = find_obstacles(an_attempt(a_refusal(**{code: 8})))
    assert "wanted" not in obstacle.clauses


@pytest.mark.parametrize(
    ("bare", "cause", "request_count", "clauses"),
    [
        (Code.NODE_UNREGISTERED, "no annotation", 2, ["cause"]),
        (Code.NODE_UNREGISTERED, "", 2, []),
        (Code.NODE_UNFIT_POD, "no annotation", 2, []),
        # The request says more than the cause.
        (Code.NODE_INSUFFICIENT_DEVICE, "needs 2, has 1", 2, ["asked"]),
        (Code.NODE_INSUFFICIENT_DEVICE, "needs 2, has 1", 0, ["cause"]),
    ],
)
def test_the_cause_of_a_refusal_is_a_clause(bare: Code, cause: str, request_count: int, clauses: list[str]) -> None:
    attempt = an_attempt(Refusal(bare=bare, cause=cause), requests=[a_request(count=request_count)])
    (obstacle,) = find_obstacles(attempt)
    assert list(obstacle.clauses) == clauses


@pytest.mark.parametrize(
    ("source", "reason", "is_explained"),
    [
        ("kube-scheduler-log", Code.NODE_UNFIT_POD, True),
        ("kube-scheduler-log", CPU, False),
        ("kube-events", Code.NODE_UNFIT_POD, False),
    ],
)
def test_a_code_of_the_extender_is_explained_where_kube_scheduler_counts_it(
    source: str, reason: str, is_explained: bool
) -> None:
    attempt = a_count({reason: 3}, reports=[a_report(source=source)])
    (obstacle,) = find_obstacles(attempt)
    assert ("in_extender" in obstacle.clauses) == is_explained


def a_quota(name: str, hard: dict[str, str], used: dict[str, str]) -> Quota:
    return Quota(name, HERE._replace(record=name), hard, used)


GPU_MEMORY, GPU_CORES = "limits.nvidia.com/gpumem", "limits.nvidia.com/gpucores"


@pytest.mark.parametrize(
    ("quotas", "expected"),
    [
        (None, None),
        ([], None),
        ([a_quota("a", {GPU_MEMORY: "100"}, {GPU_MEMORY: "40"})], ("a", GPU_MEMORY, 40, 100)),
        # The fullest by share, not by amount.
        (
            [
                a_quota("a", {GPU_MEMORY: "1000"}, {GPU_MEMORY: "400"}),
                a_quota("b", {GPU_CORES: "100"}, {GPU_CORES: "90"}),
            ],
            ("b", GPU_CORES, 90, 100),
        ),
        # Without a used amount nothing is used; without a limit there is no share.
        ([a_quota("a", {GPU_MEMORY: "100"}, {})], ("a", GPU_MEMORY, 0, 100)),
        ([a_quota("a", {GPU_MEMORY: "0"}, {GPU_MEMORY: "0"})], None),
        # Kubernetes counts these itself.
        ([a_quota("a", {"requests.nvidia.com/gpu": "8"}, {"requests.nvidia.com/gpu": "8"})], None),
        ([a_quota("a", {"limits.cpu": "8"}, {"limits.cpu": "8"})], None),
        ([a_quota("a", {GPU_MEMORY: "100"}, {GPU_MEMORY: "much"})], None),
    ],
)
def test_a_refusal_for_quota_names_the_fullest_quota_of_devices(
    quotas: list[Quota] | None, expected: tuple[str, str, int, int] | None
) -> None:
    attempt = an_attempt(Refusal(bare=Code.RESOURCE_QUOTA_NOT_FIT))
    (obstacle,) = find_obstacles(attempt, build_facts(quotas=quotas))
    assert ("amounts" in obstacle.clauses) == (expected is not None)
    if expected:
        name, resource, used, hard = expected
        assert (obstacle.words["resource"], obstacle.words["used"], obstacle.words["hard"]) == (resource, used, hard)
        assert [evidence.record for evidence in obstacle.evidence][1:] == [name]
        assert (obstacle.numbers[f"{resource}.used"], obstacle.numbers[f"{resource}.hard"]) == (used, hard)


def test_quotas_are_not_shown_for_other_refusals() -> None:
    quota = a_quota("a", {GPU_MEMORY: "100"}, {GPU_MEMORY: "90"})
    (obstacle,) = find_obstacles(an_attempt(NO_MEMORY), build_facts(quotas=[quota]))
    assert "amounts" not in obstacle.clauses


def test_two_devices_of_each_of_three_reasons_are_evidence() -> None:
    reasons = (
        Code.CARD_INSUFFICIENT_MEMORY, Code.CARD_INSUFFICIENT_CORE, Code.CARD_TIME_SLICING_EXHAUSTED,
        Code.CARD_TYPE_MISMATCH,
    )  # fmt: skip
    rows = [
        a_row(f"n{index}", code, uuid=f"GPU-{index}{number}", model="A100", memory_used_mib=0)
        for index, code in enumerate(reasons)
        for number in range(3)
    ]
    attempt = an_attempt(*(a_refusal(**{code: 8}) for code in reasons), ended_at=None, reports=[a_report()])
    (_, step) = answer(attempt, build_facts(*rows))
    first, *devices = step.evidence
    assert first.kind == "attempt"
    assert [evidence.words.split()[1] for evidence in devices] == [
        "GPU-00", "GPU-01", "GPU-10", "GPU-11", "GPU-20", "GPU-21",
    ]  # fmt: skip
    assert devices[0].words == f"n0 GPU-00 A100 {Code.CARD_INSUFFICIENT_MEMORY}"
    # Amounts that are not reported are left out; nothing used is an amount.
    assert devices[0].numbers == {"memory_used_mib": 0}


def test_a_pod_whose_request_was_not_read_is_not_asked_further() -> None:
    fact = LoggedFact("no request read", STARTED, pod="lab/job-0")
    attempt = a_summary([], refusals=[])
    (step,) = answer(attempt, build_facts(logged=[fact], attempt=attempt))
    assert (step.question, step.answer, step.is_end) == ("AsksForDevices", "no", True)
    assert [obstacle.code for obstacle in step.obstacles] == ["NoRequestRead"]
