"""Obstacles that the lines of a log around a verdict explain: which facts count, and which are about something else."""

from datetime import timedelta
from typing import Any

import pytest

from engine.diagnosis.evidence import Evidence
from engine.diagnosis.facts import DiagnosisFacts, PodOnCluster
from engine.diagnosis.logged_facts import LoggedFact, LoggedKind
from engine.diagnosis.logged_steps import explain_by_log, find_admission_obstacle, find_pod_facts, find_unread_request
from engine.diagnosis.outcome import FoundObstacle
from engine.hami.reason_codes import ReasonCode as Code
from schemas.answers.diagnosis import InBothLanguages
from schemas.events import AttemptSummarized, BindOutcome
from tests.support.builders.events import STARTED, a_report, a_request, a_summary

ENDED = STARTED + timedelta(minutes=10)


def a_fact(kind: LoggedKind, seconds: float = -5, **fields: Any) -> LoggedFact:
    """A fact of a line this long after the start of the attempt."""
    return LoggedFact(kind, STARTED + timedelta(seconds=seconds), **fields)


def build_facts(*logged: LoggedFact, attempt: AttemptSummarized | None = None, **more: Any) -> DiagnosisFacts:
    plain: dict[str, Any] = {"log_ended_at": ENDED} | more
    ordered = sorted(logged, key=lambda fact: fact.time)
    return DiagnosisFacts("default", "llm", "deepseek-a", ENDED, attempt, logged=ordered, **plain)


def explain(
    code: str, *logged: LoggedFact, nodes: tuple[str, ...] = ("n1", "n2"), **fields: Any
) -> list[FoundObstacle]:
    """Explain an obstacle on these nodes."""
    attempt = a_summary(["n1", "n2", "n3"], **{"ended_at": STARTED} | fields)
    obstacle = FoundObstacle(code, {"refused": len(nodes)}, {"nodes": len(nodes)}, nodes, len(nodes))
    return explain_by_log([obstacle], build_facts(*logged, attempt=attempt), attempt)


def list_codes(obstacles: list[FoundObstacle]) -> list[tuple[str, list[str]]]:
    return [(obstacle.code, list(obstacle.nodes)) for obstacle in obstacles]


UNREGISTERED = Code.NODE_UNREGISTERED
LEFT = (UNREGISTERED, ["n1", "n2"])


@pytest.mark.parametrize(
    ("logged", "expected"),
    [
        ([], [LEFT]),
        ([a_fact("devices dropped", node="n1"), a_fact("devices dropped", node="n2")],
         [("DevicesDropped", ["n1", "n2"])]),
        # A node without a line keeps the obstacle.
        ([a_fact("devices dropped", node="n1")], [("DevicesDropped", ["n1"]), LEFT]),
        ([a_fact("devices dropped", node="n3")], [LEFT]),
        # Dropped at the moment of the attempt counts, dropped after it does not.
        ([a_fact("devices dropped", 0, node="n1"), a_fact("devices dropped", node="n2")],
         [("DevicesDropped", ["n1", "n2"])]),
        ([a_fact("devices dropped", 0.001, node="n1"), a_fact("devices dropped", node="n2")],
         [("DevicesDropped", ["n2"]), LEFT]),
        # Devices that were added again before the attempt are there.
        ([a_fact("devices dropped", -9, node="n1"), a_fact("devices added", -5, node="n1")], [LEFT]),
        ([a_fact("devices added", -9, node="n1"), a_fact("devices dropped", -5, node="n1")],
         [("DevicesDropped", ["n1"]), LEFT]),
        # A registration that the scheduler had no reason to read explains a node, too.
        ([a_fact("registration skipped", node="n1"), a_fact("registration skipped", node="n2")],
         [("HandshakeKeepsOut", ["n1", "n2"])]),
        ([a_fact("devices dropped", node="n1"), a_fact("registration skipped", node="n2")],
         [("DevicesDropped", ["n1"]), ("HandshakeKeepsOut", ["n2"])]),
        ([a_fact("registration skipped", node="n1")], [("HandshakeKeepsOut", ["n1"]), LEFT]),
        ([a_fact("registration skipped", 0, node="n1"), a_fact("registration skipped", 1, node="n2")],
         [("HandshakeKeepsOut", ["n1"]), LEFT]),
        ([a_fact("registration skipped", node="n3")], [LEFT]),
    ],
)  # fmt: skip
def test_nodes_without_devices_are_explained_by_the_lines_before_the_attempt(
    logged: list[LoggedFact], expected: list[tuple[str, list[str]]]
) -> None:
    assert list_codes(explain(UNREGISTERED, *logged)) == expected


@pytest.mark.parametrize(("vendor", "is_explained"), [("NVIDIA", True), ("", True), ("Ascend910B3", False)])
def test_only_devices_of_the_vendor_that_the_pod_asks_for_explain_it(vendor: str, is_explained: bool) -> None:
    requests = [a_request(vendor="NVIDIA"), a_request(vendor="Ascend910B3", count=0)]
    facts = [a_fact("devices dropped", node=node, vendor=vendor) for node in ("n1", "n2")]
    explained = explain(UNREGISTERED, *facts, requests=requests)
    assert list_codes(explained) == [("DevicesDropped", ["n1", "n2"]) if is_explained else LEFT]
    # Without requests any vendor may be meant.
    none = [a_request(count=0)]
    assert list_codes(explain(UNREGISTERED, *facts, requests=none)) == [("DevicesDropped", ["n1", "n2"])]


def test_the_line_that_names_the_cause_counts_and_the_time_when_devices_came_back() -> None:
    (obstacle,) = explain(
        UNREGISTERED,
        a_fact("devices dropped", -9, node="n1", words="zero devices", vendor="NVIDIA"),
        a_fact("devices dropped", -8, node="n1"),
        a_fact("devices dropped", -7, node="n2", words="unhealthy", vendor="Ascend"),
        a_fact("devices added", 60, node="n2"),
        a_fact("devices added", 120, node="n2"),
        requests=[a_request(count=0)],
    )
    assert (obstacle.words["vendors"], obstacle.words["count"]) == ("Ascend, NVIDIA", 2)
    assert obstacle.words["dropped"] == "03:06:14 UTC"
    assert (obstacle.words["added"], obstacle.clauses) == ("03:07:23 UTC", ["tried", "added"])
    assert (
        obstacle.words["why"]
        != explain(UNREGISTERED, *(a_fact("devices dropped", node=node, words="unhealthy") for node in ("n1", "n2")))[
            0
        ].words["why"]
    )


@pytest.mark.parametrize(("level", "code"), [(3, Code.FILTERING_FAILED), (4, "NoneRegistered"), (5, "NoneRegistered")])
def test_an_attempt_without_a_line_about_a_node_had_no_registered_one_where_each_has_a_line(
    level: int, code: str
) -> None:
    reports = [a_report(source="hami-log", levels=[0, level])]
    (obstacle,) = explain(Code.FILTERING_FAILED, nodes=(), reports=reports, offered_nodes=3)
    assert obstacle.code == code
    if code == "NoneRegistered":
        assert (obstacle.node_count, obstacle.clauses) == (3, ["offered"])
        assert explain(Code.FILTERING_FAILED, nodes=(), reports=reports, offered_nodes=0)[0].clauses == []
    other = [a_report(source="kube-events", levels=[5])]
    assert explain(Code.FILTERING_FAILED, nodes=(), reports=other)[0].code == Code.FILTERING_FAILED
    # Of nodes without a name, each that had lost its devices counts.
    dropped = explain(Code.FILTERING_FAILED, a_fact("devices dropped", node="n3"), nodes=(), reports=reports)
    assert list_codes(dropped) == [("DevicesDropped", ["n3"])]


@pytest.mark.parametrize(
    ("fact", "code"),
    [
        (a_fact("node reserved", node="n1"), "NodeReservedForHamiCore"),
        (a_fact("mode not offered", node="n2"), "HamiCoreNotOffered"),
        (a_fact("mode not offered", pod="llm/deepseek-a"), "HamiCoreNotOffered"),
        (a_fact("mode not offered", node="n3"), Code.MODE_NOT_FIT),
        (a_fact("mode not offered", pod="llm/other"), Code.MODE_NOT_FIT),
        (a_fact("devices dropped", node="n1"), Code.MODE_NOT_FIT),
    ],
)
def test_the_mode_that_was_missing_is_that_of_the_node_or_of_the_pod(fact: LoggedFact, code: str) -> None:
    (obstacle,) = explain(Code.MODE_NOT_FIT, fact)
    assert obstacle.code == code
    if code != Code.MODE_NOT_FIT:
        assert obstacle.words["node"] == (fact.node or "n1")


def a_holding(pod: str, memory: int, node: str = "n1", device: str = "GPU-1", seconds: float = -5) -> LoggedFact:
    return a_fact("device held", seconds, node=node, pod=pod, device=device, numbers={"memory_mib": memory})


@pytest.mark.parametrize(
    ("logged", "devices", "memory", "first"),
    [
        ([a_holding("a/x", 100)], 1, 100, "a/x"),
        ([a_holding("a/x", 100), a_holding("a/y", 300)], 2, 400, "a/y"),
        ([a_holding("b/x", 100), a_holding("a/y", 100)], 2, 200, "a/y"),
        ([a_holding("a/x", 100), a_holding("a/x", 50, "n2", "GPU-2")], 2, 150, "a/x"),
        # A device that the log names twice is held once.
        ([a_holding("a/x", 100), a_holding("a/x", 100, seconds=-4)], 1, 100, "a/x"),
        # Not those of other nodes, of the pod itself, or that were given back.
        ([a_holding("a/x", 100, "n3")], 0, 0, ""),
        ([a_holding("llm/deepseek-a", 100)], 0, 0, ""),
        ([a_holding("a/x", 100, device="")], 0, 0, ""),
        ([a_holding("a/x", 100), a_fact("devices released", -4, pod="a/x")], 0, 0, ""),
        ([a_holding("a/x", 100, seconds=-3), a_fact("devices released", -4, pod="a/x")], 1, 100, "a/x"),
        ([a_holding("a/x", 100), a_fact("devices released", -4, pod="a/y")], 1, 100, "a/x"),
    ],
)
def test_pods_that_hold_devices_of_the_refused_nodes_are_named_the_largest_first(
    logged: list[LoggedFact], devices: int, memory: int, first: str
) -> None:
    (obstacle,) = explain(Code.CARD_INSUFFICIENT_MEMORY, *logged)
    assert obstacle.numbers.get("held_devices", 0) == devices
    assert obstacle.numbers.get("held_memory_mib", 0) == memory
    assert ("holders" in obstacle.clauses) is bool(first)
    if first:
        holders = obstacle.words["holders"]
        assert isinstance(holders, InBothLanguages)
        assert holders.en.startswith(first)


@pytest.mark.parametrize(
    ("code", "is_held"),
    [
        (Code.CARD_INSUFFICIENT_MEMORY, True), (Code.CARD_INSUFFICIENT_CORE, True),
        (Code.CARD_TIME_SLICING_EXHAUSTED, True), (Code.EXCLUSIVE_DEVICE_ALLOCATE_CONFLICT, True),
        (Code.CARD_COMPUTE_UNITS_EXHAUSTED, True), (Code.CARD_TYPE_MISMATCH, False), (Code.NUMA_NOT_FIT, False),
    ],
)  # fmt: skip
def test_holders_matter_for_reasons_that_pass_when_they_end(code: str, is_held: bool) -> None:
    assert ("holders" in explain(code, a_holding("a/x", 100))[0].clauses) is is_held


@pytest.mark.parametrize(("count", "more"), [(3, ""), (4, " (+1)"), (5, " (+2)")])
def test_three_holders_are_named_and_the_others_counted(count: int, more: str) -> None:
    (obstacle,) = explain(Code.CARD_INSUFFICIENT_CORE, *(a_holding(f"a/{number}", 100) for number in range(count)))
    holders = obstacle.words["holders"]
    assert isinstance(holders, InBothLanguages)
    assert (holders.en.count("; ") + 1, holders.en.partition(" (+")[2]) == (3, more.removeprefix(" (+"))


def a_quota(words: str, hard: int, pod: str = "llm/deepseek-a", seconds: float = -5) -> LoggedFact:
    return a_fact("quota exceeded", seconds, pod=pod, words=words, numbers={"hard": hard})


@pytest.mark.parametrize(
    ("logged", "hard", "clauses"),
    [
        ([a_quota("memory", 80)], 80, ["logged_memory"]),
        ([a_quota("cores", 50)], 50, ["logged_cores"]),
        # The latest of the pod's own.
        ([a_quota("memory", 80, seconds=-9), a_quota("cores", 50)], 50, ["logged_cores"]),
        ([a_quota("memory", 80), a_quota("cores", 50, "llm/other")], 80, ["logged_memory"]),
        ([a_quota("memory", 80, "llm/other")], None, []),
    ],
)
def test_a_quota_of_devices_has_the_amounts_of_the_pods_latest_line(
    logged: list[LoggedFact], hard: int | None, clauses: list[str]
) -> None:
    (obstacle,) = explain(Code.RESOURCE_QUOTA_NOT_FIT, *logged)
    assert (obstacle.words.get("quota_hard"), obstacle.numbers.get("quota_hard")) == (hard, hard)
    assert list(obstacle.clauses) == clauses


def test_facts_that_are_of_no_log_explain_nothing() -> None:
    obstacle = FoundObstacle(Code.CARD_INSUFFICIENT_MEMORY, nodes=["n1"], node_count=1)
    attempt = a_summary()
    facts = build_facts(a_holding("a/x", 100), attempt=attempt, log_ended_at=None)
    assert explain_by_log([obstacle], facts, attempt) == [obstacle]


@pytest.mark.parametrize(
    ("pod", "is_its"), [("llm/deepseek-a", True), ("deepseek-a", True), ("ml/deepseek-a", False), ("llm/", False)]
)
def test_a_fact_is_about_the_pod_by_its_name_with_or_without_a_namespace(pod: str, is_its: bool) -> None:
    facts = build_facts(a_fact("pod evicted", pod=pod), a_fact("lock taken", pod=pod))
    assert len(find_pod_facts(facts, "pod evicted")) == is_its


UNSEEN: dict[str, Any] = {"scheduler": "", "ended_at": None}


@pytest.mark.parametrize(
    ("nodes", "fields", "is_denied"),
    [
        ([], {}, True),
        # A scheduler has seen the pod since.
        (["n1"], {}, False),
        ([], {"ended_at": STARTED}, False),
        ([], {"scheduler": "hami-scheduler"}, False),
    ],
)
def test_a_denial_explains_a_pod_that_no_scheduler_has_seen(
    nodes: list[str], fields: dict[str, Any], is_denied: bool
) -> None:
    denials = [a_fact("admission denied", seconds, pod="llm/deepseek-a", words=f"at {seconds}") for seconds in (-9, -5)]
    obstacle = find_admission_obstacle(build_facts(*denials, attempt=a_summary(nodes, **UNSEEN | fields)))
    assert (obstacle.words["words"] if obstacle else None) == ("at -5" if is_denied else None)
    other = a_fact("admission denied", pod="llm/other")
    assert find_admission_obstacle(build_facts(other, attempt=a_summary(nodes, **UNSEEN | fields))) is None
    assert find_admission_obstacle(build_facts(*denials)) is None


def a_bind(bound: bool) -> BindOutcome:
    return BindOutcome(node="n1", bound=bound, ended_at=STARTED)


@pytest.mark.parametrize(
    ("nodes", "fields", "placed"),
    [
        ([], {}, ""),
        ([], {"bind": a_bind(True)}, "n1"),
        ([], {"bind": a_bind(False)}, ""),
        (["n1"], {}, None),
        ([], {"error": "timeout"}, None),
    ],
)
def test_a_pod_in_which_no_request_was_read_passes_to_every_node(
    nodes: list[str], fields: dict[str, Any], placed: str | None
) -> None:
    attempt = a_summary(nodes, **fields)
    passed = a_fact("no request read", pod="llm/deepseek-a")
    obstacle = find_unread_request(build_facts(passed, attempt=attempt))
    assert (obstacle.words["node"] if obstacle else None) == placed
    if obstacle:
        assert (list(obstacle.nodes), obstacle.clauses) == ([placed] if placed else [], [])
        rejected = [
            a_fact("request rejected", seconds, pod="llm/deepseek-a", words=f"at {seconds}") for seconds in (-9, -8)
        ]
        obstacle = find_unread_request(build_facts(*rejected, passed, attempt=attempt))
        assert obstacle
        assert (obstacle.words["words"], obstacle.clauses, len(obstacle.evidence)) == ("at -8", ["rejected"], 3)
    assert find_unread_request(build_facts(attempt=attempt)) is None


def test_the_vendors_of_a_pod_without_requests_in_its_attempt_are_those_of_its_object() -> None:
    attempt = a_summary(["n1"], requests=[], refused_by=[-1], ended_at=STARTED)
    pod = PodOnCluster(Evidence("pod", "p"), requests=[a_request(vendor="NVIDIA")])
    facts = build_facts(a_fact("devices dropped", node="n1", vendor="Ascend"), attempt=attempt, pod=pod)
    obstacle = FoundObstacle(UNREGISTERED, nodes=["n1"], node_count=1)
    assert explain_by_log([obstacle], facts, attempt) == [obstacle]
