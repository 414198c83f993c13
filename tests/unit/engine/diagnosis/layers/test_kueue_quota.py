"""Quota that a Workload of Kueue waits for: amounts of its ClusterQueue, who holds or borrows them, and its place.

The fields are those of Kueue's API v1beta2 (`resourceGroups`, `flavorsReservation`, `borrowingLimit`, `lendingLimit`,
`reclaimWithinCohort`, `admissionScope`); each expected number is worked out by hand from the amounts of its row.
"""

from typing import Any

import pytest

from engine.diagnosis.layers.kueue_quota import describe_place, explain_shortage, find_head, is_preempted
from engine.diagnosis.layers.kueue_workloads import Workload
from engine.diagnosis.outcome import FoundObstacle
from engine.snapshot.case_objects import collect_objects
from schemas.json_types import Json
from tests.support.builders.kueue_objects import an_object
from tests.support.builders.layer_objects import to_english

GPU = "nvidia.com/gpu"
UNUSED = f"couldn't assign flavors to pod set main: insufficient unused quota for {GPU} in flavor big, 6 more needed"
AT_LIMIT = f"couldn't assign flavors to pod set main: borrowing limit for {GPU} in flavor big exceeded"


def a_condition(kind: str, status: str = "True", **more: str) -> Json:
    return {"type": kind, "status": status, "reason": "R", "message": "", **more}


RESERVED = a_condition("QuotaReserved")


def a_workload(name: str = "mine", *conditions: Json, holds: tuple[Any, ...] = (), **more: Any) -> Json:
    """A Workload; ``holds``: amount of each of its sets of pods; ``more``: ``namespace``, ``annotations``, and spec."""
    assigned = [{"name": f"set-{number}", "resourceUsage": {GPU: amount}} for number, amount in enumerate(holds)]
    namespace = more.pop("namespace", "lab")
    workload = an_object(
        "Workload", name, namespace, spec={"queueName": more.pop("queue", "night"), "priority": 5, **more},
        status={"conditions": list(conditions), "admission": {"podSetAssignments": assigned}},
    )  # fmt: skip
    workload["metadata"] |= {"uid": f"uid-{name}", "creationTimestamp": more.pop("created", "2026-11-24T08:00:00Z")}
    workload["metadata"]["ownerReferences"] = [{"kind": "Job", "name": name}]
    return workload


def a_queue(name: str = "batch", amounts: Json | None = None, used: Json | None = None, **more: Any) -> Json:
    """A ClusterQueue; ``amounts``, ``used``: of the GPUs of flavor big; ``more``: ``pending``, and fields of its spec.

    Another flavor and another resource have amounts too, which are never the ones asked for.
    """
    status: Json = {"pendingWorkloads": more.pop("pending", 0)}
    if used is not None:
        decoys = [{"name": "cpu", "total": "3", "borrowed": "3"}, {"name": GPU, **used}]
        small = [{"name": GPU, "total": "1", "borrowed": "1"}]
        status["flavorsReservation"] = [{"name": "small", "resources": small}, {"name": "big", "resources": decoys}]
    listed = [{"name": "cpu", "nominalQuota": "99"}, {"name": GPU, **(amounts or {})}]
    small_group = {"flavors": [{"name": "small", "resources": [{"name": GPU, "nominalQuota": "2"}]}]}
    groups = [small_group, {"flavors": [{"name": "big", "resources": listed}]}]
    return an_object("ClusterQueue", name, "", spec={"resourceGroups": groups, **more}, status=status)


def build(entry: Json, *objects: Json) -> Workload:
    local_queues = [an_object("LocalQueue", "night", namespace, spec={"clusterQueue": "batch"}) for namespace in
                    ("lab", "other")]  # fmt: skip
    day = an_object("LocalQueue", "day", spec={"clusterQueue": "urgent"})
    collected = collect_objects([entry, *local_queues, day, *objects])
    queue = next((item for item in objects if item["metadata"]["name"] == "batch"), None)
    return Workload(entry, local_queues[0], queue, collected)


def explain(*objects: Json, entry: Json | None = None, message: str = UNUSED) -> FoundObstacle:
    return explain_shortage(build(entry or a_workload(), *objects), message, ())


def get_words(obstacle: FoundObstacle) -> dict[str, str | int]:
    return {name: to_english(word) for name, word in obstacle.words.items()}


@pytest.mark.parametrize(
    ("amounts", "used", "cohort", "clauses", "numbers"),
    [
        (None, None, "", ["needed"], {"needed": 6}),
        ({"nominalQuota": "24"}, None, "", ["needed"], {"needed": 6, "nominal": 24}),
        (
            {"nominalQuota": "24"}, {"total": "20"}, "",
            ["needed", "amounts", "too_few"], {"needed": 6, "nominal": 24, "used": 20},
        ),
        # Nothing is left: no rest that could be too few.
        ({"nominalQuota": "24"}, {"total": "24"}, "", ["needed", "amounts"], {"needed": 6, "nominal": 24, "used": 24}),
        (
            {"nominalQuota": "24"}, {"total": "20"}, "all",
            ["needed", "amounts", "lent"], {"needed": 6, "nominal": 24, "used": 20},
        ),
        (
            {"nominalQuota": "24", "borrowingLimit": "8"}, {"total": "30", "borrowed": "6"}, "all",
            ["needed", "amounts", "borrowed", "limit"], {"needed": 6, "nominal": 24, "used": 30},
        ),
        # A limit of borrowing means nothing without a cohort, and 0 is nothing borrowed.
        (
            {"nominalQuota": "24", "borrowingLimit": "8"}, {"total": "24", "borrowed": "0"}, "",
            ["needed", "amounts"], {"needed": 6, "nominal": 24, "used": 24},
        ),
        (
            {"nominalQuota": "0"}, {"total": "4", "borrowed": "4"}, "all",
            ["needed", "without_own"], {"needed": 6, "nominal": 0, "used": 4},
        ),
        (
            {"nominalQuota": "0"}, {"total": "0"}, "",
            ["needed", "amounts"], {"needed": 6, "nominal": 0, "used": 0},
        ),
        # Amounts with units are written and not counted.
        ({"nominalQuota": "24Gi"}, {"total": "20Gi"}, "", ["needed", "amounts"], {"needed": 6}),
    ],
)  # fmt: skip
def test_the_amounts_of_the_queue_decide_which_clauses_describe_it(
    amounts: Json | None, used: Json | None, cohort: str, clauses: list[str], numbers: dict[str, int]
) -> None:
    obstacle = explain(a_queue(amounts=amounts, used=used, cohortName=cohort))
    assert (obstacle.code, list(obstacle.clauses), obstacle.numbers) == ("KueueWaitsForQuota", clauses, numbers)


def test_a_cohort_of_older_releases_is_one_too() -> None:
    queue = a_queue(amounts={"nominalQuota": "24"}, used={"total": "20"}, cohort="all")
    assert list(explain(queue).clauses) == ["needed", "amounts", "lent"]


def test_reservations_count_before_what_admitted_workloads_use() -> None:
    queue = a_queue(amounts={"nominalQuota": "24"}, used={"total": "20"})
    queue["status"]["flavorsUsage"] = [{"name": "big", "resources": [{"name": GPU, "total": "16"}]}]
    assert explain(queue).numbers["used"] == 20
    del queue["status"]["flavorsReservation"]
    assert explain(queue).numbers["used"] == 16


def test_a_queue_at_its_limit_of_borrowing_has_no_number_that_lacks() -> None:
    obstacle = explain(message=AT_LIMIT)
    assert (list(obstacle.clauses), obstacle.numbers) == (["limited"], {})


def test_further_resources_that_lack_are_listed_with_other_flavors() -> None:
    message = UNUSED + ", insufficient unused quota for cpu in flavor big, 2 more needed"
    phrase = explain(message=AT_LIMIT).words["others"]
    obstacle = explain_shortage(build(a_workload()), message, ())
    assert (get_words(obstacle)["others"], to_english(phrase)) == ("2 of cpu in big", "")
    assert list(obstacle.clauses) == ["needed", "others"]
    limited = explain(message=f"{UNUSED}, borrowing limit for cpu in flavor big exceeded")
    assert get_words(limited)["others"] == "cpu in big, whose borrowing limit is reached"


def test_a_preemption_under_way_is_named() -> None:
    assert list(explain(message=f"{UNUSED}. Pending the preemption of 2 workload(s)").clauses)[-1] == "preempting"
    assert list(explain(message="Waiting for quota").clauses) == []


@pytest.mark.parametrize(
    ("holders", "text"),
    [
        ([a_workload("a", RESERVED, holds=("8",))], "Job/a (8)"),
        # Several sets of pods add up where their amounts are whole numbers.
        ([a_workload("a", RESERVED, holds=("8", "4"))], "Job/a (12)"),
        ([a_workload("a", RESERVED, holds=("8", "1500m"))], None),
        ([a_workload("a", RESERVED, holds=("1500m",))], "Job/a (1500m)"),
        ([a_workload("a", RESERVED, holds=("0",)), a_workload("b", RESERVED, holds=(2,))], "Job/b (2)"),
        ([a_workload("a", RESERVED, holds=("8",)), a_workload("b", RESERVED, holds=("1",))], "Job/a (8), Job/b (1)"),
        # Those of other namespaces are counted and not named.
        (
            [a_workload("a", RESERVED, holds=("8",)), a_workload("b", RESERVED, holds=("1",), namespace="other")],
            "Job/a (8), 1 workload of other namespaces",
        ),
        ([a_workload("a", RESERVED, holds=("8",), queue="day")], None),
        ([a_workload("a", holds=("8",))], None),
        ([a_workload("a", RESERVED, a_condition("Finished"), holds=("8",))], None),
        ([a_workload("a", RESERVED)], None),
    ],
)
def test_workloads_with_quota_of_the_same_queue_hold_the_resource(holders: list[Json], text: str | None) -> None:
    obstacle = explain(*holders)
    assert get_words(obstacle).get("holders") == text
    assert ("holders" in obstacle.clauses) is (text is not None)


LENDER: Json = {"amounts": {"nominalQuota": "24"}, "used": {"total": "20"}, "cohortName": "all"}
BORROWER: Json = {"amounts": {"nominalQuota": "8"}, "used": {"total": "12", "borrowed": "4"}, "cohortName": "all"}


@pytest.mark.parametrize(
    ("queue", "other", "clauses"),
    [
        (LENDER, BORROWER, ["borrowers", "not_reclaimed"]),
        (LENDER | {"preemption": {"reclaimWithinCohort": "Never"}}, BORROWER, ["borrowers", "not_reclaimed"]),
        (LENDER | {"preemption": {"reclaimWithinCohort": "Any"}}, BORROWER, ["borrowers"]),
        (LENDER, BORROWER | {"cohortName": "others"}, ["lent"]),
        (LENDER, BORROWER | {"used": {"total": "8", "borrowed": "0"}}, ["lent"]),
        (LENDER | {"cohortName": ""}, BORROWER | {"cohortName": ""}, ["too_few"]),
        # A queue that uses all of its own has lent nothing that another could have borrowed.
        (LENDER | {"used": {"total": "24"}}, BORROWER, []),
        # One that has no quota of its own has nothing to take back.
        (LENDER | {"amounts": {"nominalQuota": "0"}, "used": {"total": "0"}}, BORROWER, ["borrowers"]),
        (
            LENDER | {"amounts": {"nominalQuota": "0"}, "used": {"total": "0"}},
            BORROWER | {"cohortName": "others"}, [],
        ),
    ],
)  # fmt: skip
def test_queues_of_the_cohort_borrow_what_the_queue_does_not_use(queue: Json, other: Json, clauses: list[str]) -> None:
    obstacle = explain(a_queue(**queue), a_queue("urgent", **other))
    assert [name for name in obstacle.clauses if name in ("borrowers", "not_reclaimed", "lent", "too_few")] == clauses
    assert get_words(obstacle).get("borrowers") == ("urgent (4)" if "borrowers" in clauses else None)
    if "too_few" in clauses:
        assert obstacle.words["free"] == "4"


@pytest.mark.parametrize(
    ("amounts", "used", "cohort", "text"),
    [
        # 16 of its own, 4 in use, and at most 2 to lend: 10 are free and kept.
        ({"nominalQuota": "16", "lendingLimit": "2"}, {"total": "4"}, "all", "urgent (10, lendingLimit 2)"),
        ({"nominalQuota": "16", "lendingLimit": "0"}, None, "all", "urgent (16, lendingLimit 0)"),
        ({"nominalQuota": "16", "lendingLimit": "2"}, {"total": "14"}, "all", None),
        ({"nominalQuota": "16", "lendingLimit": "2"}, {"total": "15"}, "all", None),
        ({"nominalQuota": "16"}, {"total": "4"}, "all", None),
        ({"nominalQuota": "16", "lendingLimit": "2"}, {"total": "1500m"}, "all", None),
        ({"nominalQuota": "16", "lendingLimit": "2"}, {"total": "4"}, "others", None),
    ],
)
def test_queues_of_the_cohort_may_keep_free_quota_for_themselves(
    amounts: Json, used: Json | None, cohort: str, text: str | None
) -> None:
    full: Json = {"amounts": {"nominalQuota": "24", "lendingLimit": "1"}, "used": {"total": "2"}, "cohortName": "all"}
    obstacle = explain(a_queue(**full), a_queue("urgent", amounts, used, cohortName=cohort))
    assert get_words(obstacle).get("lenders") == text
    assert ("lenders" in obstacle.clauses) is (text is not None)


def test_queues_without_a_cohort_lend_nothing() -> None:
    alone = a_queue("urgent", {"nominalQuota": "16", "lendingLimit": "2"}, {"total": "4"}, cohortName="")
    assert "lenders" not in explain(a_queue(cohortName=""), alone).clauses


PREEMPTED = a_condition("Preempted", reason="InCohortReclamation", lastTransitionTime="2026-11-24T08:20:00Z",
                        message="Preempted to accommodate a workload (UID: uid-winner, JobUID: j) due to reclamation; "
                        "preemptor path: /root/urgent; preemptee path: /root/batch")  # fmt: skip


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ([PREEMPTED], True),
        ([a_condition("QuotaReserved", "False"), PREEMPTED], True),
        ([RESERVED, PREEMPTED], False),
        ([PREEMPTED | {"status": "False"}], False),
        ([], False),
    ],
)
def test_a_workload_is_preempted_until_it_has_quota_again(conditions: list[Json], expected: bool) -> None:
    entry = a_workload("mine", *conditions)
    assert is_preempted(build(entry)) is expected
    obstacle = explain(entry=entry)
    assert obstacle.code == ("KueuePreempted" if expected else "KueueWaitsForQuota")
    assert ("shortage" in obstacle.clauses) is expected


@pytest.mark.parametrize(
    ("others", "message", "winner"),
    [
        (
            [a_workload("winner", queue="day")],
            str(PREEMPTED["message"]),
            "Job/winner in ClusterQueue urgent",
        ),
        # The namespace of the pod hides those of others; the queue is named in the message.
        ([a_workload("winner", namespace="other")], str(PREEMPTED["message"]), "a workload of ClusterQueue urgent"),
        ([a_workload("loser")], str(PREEMPTED["message"]), "a workload of ClusterQueue urgent"),
        ([a_workload("winner")], "Preempted", "another workload"),
    ],
)
def test_the_workload_that_took_the_quota_is_named_in_its_own_namespace_only(
    others: list[Json], message: str, winner: str
) -> None:
    words = get_words(explain(*others, entry=a_workload("mine", PREEMPTED | {"message": message})))
    assert words["winner"] == winner
    assert (words["at"], words["rule"]) == ("08:20:00 UTC", "its queue took back quota that it had lent to the cohort")


def test_a_rule_without_a_phrase_is_written_as_kueue_names_it() -> None:
    unknown = {**PREEMPTED, "reason": "InAnotherPlanet", "lastTransitionTime": ""}
    words = get_words(explain(entry=a_workload("mine", unknown)))
    assert (words["at"], words["rule"]) == ("?", "InAnotherPlanet")


MINE = a_workload("mine", priority=5)
FIRST = a_workload("first", priority=9)
LAST = a_workload("last", priority=1)


@pytest.mark.parametrize(
    ("pending", "others", "spec", "clauses", "words"),
    [
        (0, [], {}, [], {"pending": 0}),
        (1, [], {}, ["pending"], {"pending": 1}),
        (2, [FIRST], {}, ["place", "before"], {"pending": 2, "place": 2, "before": "Job/first"}),
        (2, [LAST], {}, ["place"], {"pending": 2, "place": 1, "before": ""}),
        (3, [LAST, FIRST], {}, ["place", "before"], {"pending": 3, "place": 2, "before": "Job/first"}),
        (
            2, [FIRST], {"queueingStrategy": "BestEffortFIFO"},
            ["place", "before", "loose"], {"pending": 2, "place": 2, "before": "Job/first"},
        ),
        (2, [FIRST], {"queueingStrategy": "StrictFIFO"}, ["place", "before"],
         {"pending": 2, "place": 2, "before": "Job/first"}),
        (2, [LAST], {"queueingStrategy": "BestEffortFIFO"}, ["place"], {"pending": 2, "place": 1, "before": ""}),
        # Kueue counts more than were read: the place is open.
        (3, [FIRST], {}, ["pending"], {"pending": 3}),
        # Those that hold quota or are deactivated do not wait.
        (2, [FIRST, a_workload("on", RESERVED, priority=9), a_workload("off", active=False, priority=9)], {},
         ["place", "before"], {"pending": 2, "place": 2, "before": "Job/first"}),
        (2, [FIRST], {"admissionScope": {"admissionMode": "UsageBasedAdmissionFairSharing"}}, ["pending", "unordered"],
         {"pending": 2, "rule": "UsageBasedAdmissionFairSharing"}),
        (1, [], {"admissionScope": {"admissionMode": "UsageBasedAdmissionFairSharing"}}, ["pending"],
         {"pending": 1, "rule": "UsageBasedAdmissionFairSharing"}),
    ],
)  # fmt: skip
def test_the_place_in_the_queue_is_given_where_every_waiting_workload_was_read(
    pending: int, others: list[Json], spec: Json, clauses: list[str], words: dict[str, Any]
) -> None:
    words_of_place, chosen = describe_place(build(MINE, a_queue(pending=pending, **spec), *others))
    assert chosen == clauses
    assert {name: to_english(word) for name, word in words_of_place.items()} == words


def test_a_boost_of_any_waiting_workload_leaves_the_order_open() -> None:
    boosted = a_workload("first", priority=9)
    boosted["metadata"]["annotations"] = {"kueue.x-k8s.io/priority-boost": "3"}
    workload = build(MINE, a_queue(pending=2), boosted)
    assert describe_place(workload)[1] == ["pending", "unordered"]
    assert find_head(workload) is None


def test_the_head_is_another_workload_whose_turn_is_earlier() -> None:
    head = find_head(build(MINE, a_queue(), FIRST, LAST))
    assert head is not None
    assert head.name == "first"
    assert find_head(build(MINE, a_queue(), LAST)) is None
    assert find_head(build(a_workload("mine", active=False), a_queue())) is None
