"""Each kind of rule: when it fires, for what, and when it resolves. Minutes are counted from the first event."""

from pathlib import Path

from engine.summaries.named_pods import HIDDEN_POD
from pipeline.alerts.inputs import AlertInput, DeadLettered, DecisionArrival, SchedulerActivity
from pipeline.alerts.rules import load
from schemas.events import DetailDropped, FindingReported, LockHolder, PodObserved, PodRef
from tests.support.builders.alert_inputs import (
    TRAINER,
    a_bind,
    a_check,
    a_finding,
    a_message,
    a_refusal,
    a_success,
    list_shown,
    load_rules,
    run,
    to_minute,
    to_time,
)

POD = {"cluster": "default", "namespace": "ml", "pod": "trainer"}
LOCKED = "node node1 has been locked within 5m0s: node lock contention"


def build_retries(times: range, *codes: str, pod: PodRef = TRAINER) -> list[tuple[float, AlertInput]]:
    return [(time, message) for time in times for message in a_refusal(time, *codes, pod=pod)]


def test_a_pod_that_is_refused_for_the_same_reason_for_long_fires_until_it_is_bound(tmp_path: Path) -> None:
    pending = load_rules(tmp_path, "kind: pending", "for_minutes: 30")
    inputs = [*build_retries(range(0, 45, 5)), (47.1, a_success(47.1)), (47.1, a_success(47.1, "BindingSucceed"))]
    alerts = run(pending, inputs, 60)
    assert list_shown(alerts) == [("firing", 30, POD), ("resolved", 47.25, POD)]
    assert alerts[0].summary == (
        "ml/trainer has been refused for 30 minutes (6 attempts) for NumaNotFit: "
        "its history names the nodes that refuse it"
    )
    assert alerts[0].numbers == {"pending_minutes": 30, "attempts": 6}
    assert alerts[0].query["api"] == "/api/v1/clusters/default/namespaces/ml/pods/trainer/schedulerlog/history"
    # The latest one that was read by then.
    assert alerts[0].query["attempt"] == "/api/v1/clusters/default/attempts/a25"


def test_the_time_of_a_pod_starts_again_when_its_reason_changes(tmp_path: Path) -> None:
    pending = load_rules(tmp_path, "kind: pending", "for_minutes: 30")
    inputs = [*build_retries(range(0, 20, 5)), *build_retries(range(20, 60, 5), "CardCordoned")]
    assert list_shown(run(pending, inputs, 56)) == [("firing", 50, POD)]


def test_one_reason_that_every_attempt_has_in_common_is_enough(tmp_path: Path) -> None:
    pending = load_rules(tmp_path, "kind: pending", "for_minutes: 30")
    inputs = [*build_retries(range(0, 20, 5), "A", "Common"), *build_retries(range(20, 60, 5), "Common", "B")]
    alerts = run(pending, inputs, 40)
    assert list_shown(alerts) == [("firing", 30, POD)]
    assert alerts[0].summary.startswith("ml/trainer has been refused for 30 minutes (6 attempts) for Common:")


def test_half_an_attempt_at_a_tick_changes_nothing(tmp_path: Path) -> None:
    pending = load_rules(tmp_path, "kind: pending", "for_minutes: 30")
    inputs = build_retries(range(0, 35, 5), "A", "Common")
    first, second, last = a_refusal(35, "B", "Common")
    inputs += [(35, first), (36, second), (36, last)]
    assert list_shown(run(pending, inputs, 40)) == [("firing", 30, POD)]


def test_a_pod_without_an_attempt_for_long_does_not_wait(tmp_path: Path) -> None:
    pending = load_rules(tmp_path, "kind: pending", "for_minutes: 30", "forget_minutes: 20")
    assert list_shown(run(pending, build_retries(range(0, 35, 5)), 60)) == [
        ("firing", 30, POD),
        ("resolved", 50.25, POD),
    ]


def test_a_pod_that_has_ended_does_not_wait(tmp_path: Path) -> None:
    pending = load_rules(tmp_path, "kind: pending", "for_minutes: 30")
    ended = PodObserved(cluster="default", pod=TRAINER, observed_at=to_time(31), phase="Failed")
    assert list_shown(run(pending, [*build_retries(range(0, 35, 5)), (31, ended)], 34)) == [
        ("firing", 30, POD),
        ("resolved", 31.25, POD),
    ]


def test_binds_that_fail_again_and_again_are_pending_too(tmp_path: Path) -> None:
    pending = load_rules(tmp_path, "kind: pending", "for_minutes: 30")
    failed = [a_message(time, "", reason="BindingFailed") for time in range(0, 40, 5)]
    inputs = [
        (time, event) for time, bind in zip(range(0, 40, 5), failed, strict=True) for event in (a_success(time), bind)
    ]
    assert list_shown(run(pending, inputs, 34)) == [("firing", 30, POD)]


def test_only_the_reasons_and_namespaces_of_the_rule_count(tmp_path: Path) -> None:
    pending = load_rules(tmp_path, "kind: pending", "for_minutes: 30", "reasons: [CardCordoned]", "namespaces: [ml]")
    assert run(pending, build_retries(range(0, 60, 5)), 60) == []
    elsewhere = PodRef(namespace="web", name="x", uid="u")
    assert run(pending, build_retries(range(0, 60, 5), "CardCordoned", pod=elsewhere), 60) == []


def a_worker(number: int) -> PodRef:
    return PodRef(namespace="ml", name=f"train-{number:03}", uid=f"uid-{number}")


def test_the_pods_of_a_job_are_one_alert_with_their_number_and_an_example(tmp_path: Path) -> None:
    pending = load_rules(tmp_path, "kind: pending", "for_minutes: 30")
    inputs: list[tuple[float, AlertInput]] = [
        (time + number / 1_000, message._replace(workload="Job/train"))
        for time in range(0, 45, 5)
        for number in range(500)
        for message in a_refusal(time + number / 1_000, pod=a_worker(number))
    ]
    inputs += [(50 + number / 1_000, a_success(50 + number / 1_000, pod=a_worker(number))) for number in range(500)]
    alerts = run(pending, inputs, 60)
    labels = {"cluster": "default", "namespace": "ml", "workload": "Job/train"}
    assert list_shown(alerts) == [("firing", 30, labels), ("resolved", 50.5, labels)]
    assert alerts[0].numbers == {"pending_minutes": 30, "attempts": 6, "pods": 500}
    assert alerts[0].summary == (
        "500 pods of Job/train are refused in ml, train-000 for 30 minutes (6 attempts), for NumaNotFit: "
        "the attempts name the nodes that refuse"
    )
    assert (
        alerts[0]
        .query["api"]
        .startswith("/api/v1/clusters/default/schedulerlogs?namespace=ml&workload=Job%2Ftrain&status=failed&since=")
    )


def test_n5_an_alert_of_a_namespace_names_no_pod_of_another_one_that_messages_are_about(tmp_path: Path) -> None:
    pending = load_rules(tmp_path, "kind: pending", "for_minutes: 30")
    inputs: list[tuple[float, AlertInput]] = [
        (time, message) for time in range(0, 45, 5) for message in a_refusal(time, "see.team-b/keep")
    ]
    others = a_success(1, pod=PodRef(namespace="team-b", name="keep", uid="u"))
    (alert,) = run(pending, [*inputs, (1, others)], 40)
    assert "see." in alert.summary
    assert "team-b" not in alert.summary


def test_an_alert_of_a_workload_fires_until_none_of_its_pods_waits(tmp_path: Path) -> None:
    pending = load_rules(tmp_path, "kind: pending", "for_minutes: 30")
    inputs: list[tuple[float, AlertInput]] = [
        (time, message._replace(workload="Job/train"))
        for time in range(0, 50, 5)
        for number in range(2)
        if time < 40 or number
        for message in a_refusal(time, pod=a_worker(number))
    ]
    inputs += [(38, a_success(38, pod=a_worker(0))), (47, a_success(47, pod=a_worker(1)))]
    inputs.sort(key=lambda pair: pair[0])
    assert [(alert.state, alert.labels["workload"]) for alert in run(pending, inputs, 60)] == [
        ("firing", "Job/train"),
        ("resolved", "Job/train"),
    ]


def build_refusals(start: float, end: float, a_minute: int) -> list[tuple[float, AlertInput]]:
    times = [start + step / a_minute for step in range(int((end - start) * a_minute))]
    return [(time, a_message(time, "CardInsufficientMemory")) for time in times]


def test_a_reason_five_times_as_often_as_the_hour_before_fires(tmp_path: Path) -> None:
    """1 a minute, then 10: the latest ten minutes reach 5 a minute before minute 75."""
    surge = load_rules(tmp_path, "kind: surge", "factor: 5", "window_minutes: 10", "at_least: 20")
    inputs = [*build_refusals(0, 70, 1), *build_refusals(70, 90, 10)]
    alerts = run(surge, inputs, 85)
    assert [(alert.state, alert.labels) for alert in alerts] == [
        ("firing", {"cluster": "default", "reason": "CardInsufficientMemory"})
    ]
    # x minutes of 10 and 10 - x of 1: 9x + 10 is at least 50 times the rate before, itself 1.
    assert to_time(74.25) <= alerts[0].changed_at <= to_time(75)


def test_without_an_hour_before_nothing_surges(tmp_path: Path) -> None:
    surge = load_rules(tmp_path, "kind: surge", "factor: 5", "window_minutes: 10")
    assert run(surge, build_refusals(0, 60, 10), 69) == []


def test_neither_a_steady_rate_nor_a_few_refusals_are_a_surge(tmp_path: Path) -> None:
    surge = load_rules(tmp_path, "kind: surge", "at_least: 20")
    assert run(surge, build_refusals(0, 120, 5), 115) == []
    assert run(surge, [*build_refusals(0, 1, 1), *build_refusals(80, 90, 1)], 95) == []


def test_a_lock_that_every_bind_runs_into_fires_until_one_gets_through(tmp_path: Path) -> None:
    lock = load_rules(tmp_path, "kind: lock", "for_minutes: 5")
    inputs: list[tuple[float, AlertInput]] = [(time, a_bind(time, error=LOCKED)) for time in range(8)]
    inputs += [(3.5, a_bind(3.5, "node2")), (8, a_bind(8))]
    alerts = run(lock, inputs, 10)
    assert list_shown(alerts) == [
        ("firing", 5, {"cluster": "default", "node": "node1"}),
        ("resolved", 8.25, {"cluster": "default", "node": "node1"}),
    ]


def test_an_alert_about_a_lock_names_the_pod_that_holds_it(tmp_path: Path) -> None:
    lock = load_rules(tmp_path, "kind: lock", "for_minutes: 5")
    holder = LockHolder(pod="ml/stuck", locked_at=to_time(-2))
    inputs: list[tuple[float, AlertInput]] = [
        (time, a_bind(time, error=LOCKED).model_copy(update={"lock_holder": holder})) for time in range(6)
    ]
    (alert,) = run(lock, inputs, 5.5)
    assert alert.summary == (
        "5 binds to node1 have failed on its lock in the last 5 minutes: see ml/stuck, which has held it since "
        "02:58:00, and whether the node's device plugin runs"
    )


def test_a_bind_that_fails_for_another_reason_shows_that_the_lock_is_free(tmp_path: Path) -> None:
    lock = load_rules(tmp_path, "kind: lock", "for_minutes: 5")
    inputs = [(time, a_bind(time, error=LOCKED if time % 3 else "no route to host")) for time in range(20)]
    assert run(lock, inputs, 20) == []


def test_a_stale_handshake_fires_until_a_check_finds_it_right(tmp_path: Path) -> None:
    stale = load_rules(tmp_path, "kind: handshake", "codes: [HandshakeTooOld]")
    inputs = [(1.1, a_check(1.1, "HandshakeTooOld")), (900, a_check(900, "RegistrationMissing"))]
    labels = {"cluster": "default", "node": "node1", "scheduler": "hami-scheduler"}
    alerts = run(stale, inputs, 901)
    assert list_shown(alerts) == [("firing", 1.25, labels), ("resolved", 900.25, labels)]
    assert alerts[0].summary == (
        "node1: found HandshakeTooOld: see whether its device plugin runs and reaches the API server"
    )
    assert [problem.code for problem in alerts[0].problems] == ["HandshakeTooOld"]


def test_a_finding_fires_until_the_window_has_none(tmp_path: Path) -> None:
    finding = load_rules(tmp_path, "kind: finding", "findings: [Overcommitted]", "window_minutes: 60")
    labels = {"cluster": "default", "finding": "Overcommitted", "node": "node1"}
    inputs = [(0, a_finding(0)), (20, a_finding(20)), (30, a_finding(30, "MemoryChanged"))]
    assert list_shown(run(finding, inputs, 100)) == [("firing", 0.25, labels), ("resolved", 80, labels)]


def test_a_placement_that_still_waits_for_memory_does_not_fire() -> None:
    def a_counted_finding(is_waiting: int) -> FindingReported:
        return a_finding(0, "ReleasingMemoryCounted").model_copy(update={"numbers": {"is_waiting": is_waiting}})

    shipped = load()
    assert run(shipped, [(0, a_counted_finding(1))], 10) == []
    (alert,) = run(shipped, [(0, a_counted_finding(0))], 10)
    assert (alert.rule, alert.state) == ("Overcommitted", "firing")


def test_a_scheduler_that_falls_silent_while_pods_wait_fires_until_its_next_record(tmp_path: Path) -> None:
    silent = load_rules(tmp_path, "kind: silent", "for_minutes: 10")
    activity = [(time, SchedulerActivity("default", "hami-scheduler", to_time(time))) for time in (0, 2, 40)]
    labels = {"cluster": "default", "scheduler": "hami-scheduler"}
    assert list_shown(run(silent, [*activity, *build_retries(range(3))], 45)) == [
        ("firing", 12, labels),
        ("resolved", 40.25, labels),
    ]


def test_a_scheduler_that_published_is_not_alive_because_kubernetes_events_name_it(tmp_path: Path) -> None:
    silent = load_rules(tmp_path, "kind: silent", "for_minutes: 10")
    published = [(time, SchedulerActivity("default", "hami-scheduler", to_time(time))) for time in (0, 2, 40)]
    read = [
        (time, SchedulerActivity("default", "hami-scheduler", to_time(time), "kube-events"))
        for time in (1, 5, 10, 15, 20, 41)
    ]
    inputs: list[tuple[float, AlertInput]] = sorted(
        [*published, *read, *build_retries(range(3))], key=lambda pair: pair[0]
    )
    alerts = run(silent, inputs, 45)
    assert [(alert.state, to_minute(alert.changed_at)) for alert in alerts] == [("firing", 12), ("resolved", 40.25)]
    # Nor after a restart that has read nothing of it but those.
    after = [(time, item) for time, item in inputs if time >= 15]
    restarted = run(silent, after, 45, published=alerts[:1], published_until=15, start=15)
    assert [(alert.state, to_minute(alert.changed_at)) for alert in restarted] == [("resolved", 40.25)]


def test_a_scheduler_of_which_only_its_log_is_read_is_alive_while_the_log_grows(tmp_path: Path) -> None:
    silent = load_rules(tmp_path, "kind: silent", "for_minutes: 10")
    read = [
        (time, SchedulerActivity("default", "hami-scheduler", to_time(time), "hami-log")) for time in (0, 5, 10, 15)
    ]
    inputs: list[tuple[float, AlertInput]] = sorted([*read, *build_retries(range(0, 16, 5))], key=lambda pair: pair[0])
    alerts = run(silent, inputs, 30)
    assert [(alert.state, to_minute(alert.changed_at)) for alert in alerts] == [("firing", 25)]
    later: list[tuple[float, AlertInput]] = [(32, read[0][1]._replace(received_at=to_time(32)))]
    restarted = run(silent, later, 35, published=alerts, published_until=30, start=30)
    assert [alert.state for alert in restarted] == ["resolved"]


def test_a_node_that_two_sources_find_broken_is_one_alert(tmp_path: Path) -> None:
    stale = load_rules(tmp_path, "kind: handshake", "codes: [HandshakeTooOld]")
    of_cluster = a_check(1, "HandshakeTooOld").model_copy(update={"scheduler": ""})
    assert len(run(stale, [(1, of_cluster), (1, a_check(1, "HandshakeTooOld"))], 5)) == 1
    assert [alert.labels["scheduler"] for alert in run(stale, [(1, of_cluster)], 5)] == [""]


def test_a_scheduler_without_work_may_be_silent(tmp_path: Path) -> None:
    silent = load_rules(tmp_path, "kind: silent", "for_minutes: 10")
    inputs: list[tuple[float, AlertInput]] = [
        (0, SchedulerActivity("default", "hami-scheduler", to_time(0))),
        *build_retries(range(1)),
        (1, a_success(1)),
    ]
    assert run(silent, inputs, 45) == []


def test_decisions_that_arrive_late_again_and_again_fire(tmp_path: Path) -> None:
    behind = load_rules(tmp_path, "kind: behind", "seconds: 60", "for_minutes: 2")
    inputs = [(time, DecisionArrival("default", "s", to_time(time), 90 if time < 10 else 1)) for time in range(20)]
    alerts = run(behind, inputs, 20)
    assert list_shown(alerts) == [
        ("firing", 2, {"cluster": "default", "scheduler": "s"}),
        ("resolved", 10.25, {"cluster": "default", "scheduler": "s"}),
    ]
    once = [(time, DecisionArrival("default", "s", to_time(time), 90 if time == 5 else 1)) for time in range(20)]
    assert run(behind, once, 20) == []


def test_discarded_detail_and_dead_letters_fire_by_their_number(tmp_path: Path) -> None:
    dropped = load_rules(tmp_path, "kind: dropped", "window_minutes: 15", "at_least: 10")
    event = DetailDropped.model_validate(
        {
            "cluster": "default",
            "attempt_id": "a",
            "pod": TRAINER,
            "scheduler": "s",
            "started_at": to_time(0),
            "dropped_at": to_time(0),
        }
        | {"device_records": 12, "judged_devices": 900, "cause": "full"}
    )
    assert list_shown(run(dropped, [(0, event)], 20)) == [
        ("firing", 0.25, {"cluster": "default", "scheduler": "s"}),
        ("resolved", 15, {"cluster": "default", "scheduler": "s"}),
    ]
    letters = load_rules(tmp_path, "kind: dead-letters", "at_least: 3")
    inputs = [(time, DeadLettered("schedulerlog.decisions", to_time(time))) for time in (0, 1, 2)]
    alerts = run(letters, inputs, 10)
    assert list_shown(alerts) == [("firing", 2.25, {"topic": "schedulerlog.decisions"})]
    assert alerts[0].query == {"command": "schedulerlog pipeline dead-letters list"}
    assert alerts[0].cluster == "default", "no cluster is known"
    inputs = [(time, DeadLettered("schedulerlog.decisions", to_time(time), "east")) for time in (0, 1, 2)]
    (of_east, *_) = run(letters, inputs, 10)
    assert (of_east.cluster, of_east.labels["topic"]) == ("east", "schedulerlog.decisions")


def test_n5_an_alert_of_a_namespace_names_no_pod_of_another(tmp_path: Path) -> None:
    """Today a summary has codes and names of its own namespace; a text that is added later is redacted too."""
    pending = load_rules(tmp_path, "kind: pending", "for_minutes: 30")
    other = a_message(0, pod=PodRef(namespace="team-b", name="keep", uid="k"))
    refusals = build_retries(range(0, 45, 5), "keep_team-b(6f1c)")
    (alert, *_) = run(pending, [(0, other), *refusals], 40)
    assert "team-b" not in alert.summary
    assert f"{HIDDEN_POD}(6f1c)" in alert.summary
