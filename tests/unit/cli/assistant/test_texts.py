"""The texts of answers of the API."""

from cli.assistant.texts import (
    describe_attempts,
    describe_changes_for_many,
    describe_diagnosis,
    describe_drain,
    describe_moves,
    describe_node,
    describe_pending,
    describe_purchase,
    describe_suggestions,
)


def test_a_change_for_many_pods_has_who_acts_and_what_is_not_known() -> None:
    change = {
        "sentence": {"en": "Uncordon the devices of m-one: then 2 of the 4 pods fit."},
        "who_acts": "administrator",
    }
    answer = {"waiting": 4, "judged": 4, "fit": 0, "items": [change], "not_known": [{"en": "The quota."}]}
    assert describe_changes_for_many(answer).splitlines() == [
        "4 pods wait; tried: 4, of which 0 would fit as it is.",
        "- Uncordon the devices of m-one: then 2 of the 4 pods fit. By an administrator.",
        "Not known:",
        "- The quota.",
    ]


def test_a_lock_is_named_of_a_pod_that_fits_as_it_is() -> None:
    lock = {
        "sentence": {"en": "Remove the lock that the bind of llm/a left: then it can be bound to n1."},
        "who_acts": "administrator",
    }
    assert describe_suggestions({"state": "fits", "items": [lock]}).splitlines() == [
        "The pod fits the cluster as it is. Its bind was stopped:",
        "- Remove the lock that the bind of llm/a left: then it can be bound to n1. By an administrator.",
    ]
    assert describe_suggestions({"state": "fits", "items": []}) == "The pod fits the cluster as it is."


def test_a_cordoned_node_has_no_free_device() -> None:
    amounts = {"memory_held_mib": 0, "memory_total_mib": 8, "cores_held_percent": 0, "cores_total_percent": 100}
    device = {"uuid": "GPU-1", "model": "A100", "slots_held": 0, "held_by": [], "healthy": True, "cordoned": True}
    answer = {"node": "n1", "at": "14:00", "cordoned": True, "free_devices": 0, "devices": [device | amounts]}
    assert describe_node(answer).splitlines() == [
        "n1 at 14:00: cordoned, 0 of 1 device free.",
        "- GPU-1 A100: memory 0/8 MiB, cores 0/100 %, 0 slots taken, held by no pod, cordoned",
    ]


def test_each_change_says_once_where_the_pod_would_go() -> None:
    change = {"sentence": {"en": "Lower nvidia.com/gpu of main from 5 to 4: then it fits on n9."}, "who_acts": "you"}
    answer = {"state": "refused", "items": [change], "excluded_by": ["count"], "not_known": []}
    assert describe_suggestions(answer).count("n9") == 1


def test_a_diagnosis_names_what_together_excludes_every_node() -> None:
    obstacle = {"code": "X", "who_acts": ["you"], "likely_cause": {"en": "C."}, "remedy": {"en": "R."}}
    answer = {"state": "refused", "obstacle": obstacle, "other_obstacles": [], "background": {"en": "B."}}
    answer |= {"headline": {"en": "S."}}
    together = "Only together these keep it from every node, and without any one of them it would fit somewhere: "
    lines = describe_diagnosis(answer | {"excluded_by": ["use", "memory"]}).splitlines()
    assert lines[:2] == ["S. (state: refused, reason: X)", "B."]
    assert lines[-1] == f"{together}what other pods hold and the memory it asks for."
    assert "every node" not in describe_diagnosis(answer | {"excluded_by": None})
    start = {"sentence": {"en": "No forecast of its start: 12 of 20."}}
    assert (
        describe_diagnosis(answer | {"excluded_by": None, "start": start}).splitlines()[-1] == start["sentence"]["en"]
    )


def test_one_of_a_kind_is_in_the_singular_and_an_end_has_the_words_of_page_and_terminal() -> None:
    item = {"pods": 1, "workloads": 1, "first_judged_at": "T", "gpu_hours": 0.06, "obstacle": None}
    assert describe_pending({"pods": 1, "total": 1, "items": [item]}).splitlines() == [
        "1 pod waits, for 1 obstacle.",
        "- 1 pod of 1 workload since T, 0.06 GPU-hours: not known",
    ]
    attempt = {"started_at": "T", "namespace": "llm", "name": "a", "status": "failed", "chosen": None, "summary": "S"}
    assert describe_attempts({"total": 1, "items": [attempt]}).splitlines() == ["1 attempt.", "- T llm/a: refused. S"]


def test_plans_have_the_sentence_each_pod_and_the_commands() -> None:
    moved = {"namespace": "web", "name": "a", "devices": 1, "node": "n2", "state": "moves", "reason": None}
    waiting = {
        "namespace": "db",
        "name": "b",
        "devices": 2,
        "node": None,
        "state": "waits",
        "reason": {"en": "No room."},
    }
    plan = {
        "sentence": {"en": "It moves 1 pod."},
        "pods": [moved, waiting],
        "has_budgets": False,
        "commands": ["kubectl x"],
    }
    assert describe_drain(plan).splitlines() == [
        "It moves 1 pod.",
        "- web/a (1 device) goes to n2",
        "- db/b (2 devices) would wait: No room.",
        "Disruption budgets are not known.",
        "To carry it out, read and run:",
        "- kubectl x",
    ]
    moves = plan | {"nodes": [{"moves": [moved]}], "obstacle": None, "has_budgets": True}
    assert describe_moves(moves).splitlines()[1:] == [
        "- web/a (1 device) goes to n2",
        "To carry it out, read and run:",
        "- kubectl x",
    ]
    purchase = {
        "sentence": {"en": "2 nodes like n1 let 2 of 3 waiting pods start."},
        "to_add": [{"nodes": 2, "like": "n1", "models": ["A10"], "pods": 2}],
        "not_helped": [{"names": ["ml/c"], "reason": None}],
    }
    assert describe_purchase(purchase).splitlines()[1:] == [
        "- 2 nodes like n1 (A10): 2 pods start",
        "- No added node helps ml/c: the reason is not known.",
    ]
