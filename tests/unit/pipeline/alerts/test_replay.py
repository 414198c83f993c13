"""Alerts of the same records: always the same, whenever they are read and wherever the process was killed."""

import random
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.alerts.inputs import AlertInput, SchedulerActivity
from pipeline.alerts.rules import Rule, RuleError, load
from pipeline.alerts.timeline import Timeline
from schemas.events import AlertChanged, Event, PodMessage, PodRef
from tests.support.builders.alert_inputs import (
    a_bind,
    a_check,
    a_finding,
    a_refusal,
    a_success,
    load_rules,
    run,
    to_time,
)
from tests.support.builders.yaml_texts import write_doubling
from tests.support.stress import count_examples

DAY = 24 * 60
LOCKED = "node node1 has been locked within 5m0s: node lock contention"


def a_busy_day(seed: int, minutes: int) -> list[tuple[float, AlertInput]]:
    rng = random.Random(seed)
    pods = [PodRef(namespace="ml", name=f"pod-{number}", uid=f"u{number}") for number in range(6)]
    inputs: list[tuple[float, AlertInput]] = []
    for step in range(minutes * 2):
        time, pod = step / 2 + rng.random() / 4, rng.choice(pods)
        kind = rng.random()
        if kind < 0.75:
            codes = rng.choice((["NumaNotFit"], ["NumaNotFit", "CardCordoned"], ["CardCordoned"]))
            inputs += [(time, message) for message in a_refusal(time, *codes, pod=pod)]
        elif kind < 0.8:
            inputs += [(time, a_success(time, reason, pod)) for reason in ("FilteringSucceed", "BindingSucceed")]
        elif kind < 0.9:
            inputs.append(
                (time, a_bind(time, "node1", rng.choice(("", "x: node lock contention", "x: node lock contention"))))
            )
        elif kind < 0.92:
            inputs.append((time, a_check(time, *rng.choice(((), ("HandshakeTooOld",))))))
        elif kind < 0.93:
            inputs.append((time, a_finding(time)))
        elif (step // 120) % 3:
            inputs.append((time, SchedulerActivity("default", "hami-scheduler", to_time(time))))
    return inputs


def list_changes(alerts: Sequence[AlertChanged]) -> list[tuple[str, datetime]]:
    return [(alert.id, alert.changed_at) for alert in alerts]


@settings(max_examples=count_examples(2))
@given(st.integers(0, 10_000))
def test_a_process_that_was_killed_at_any_time_continues_as_if_it_had_not_been(seed: int) -> None:
    shipped, inputs, minutes = load(), a_busy_day(seed, 270), 270
    all_alerts = run(shipped, inputs, minutes)
    rng = random.Random(seed)
    # It published up to `killed` but committed an earlier time; it reads again as far back as the rules need.
    committed = 110 + rng.random() * 130
    killed = committed + rng.random() * 20
    published = [alert for alert in all_alerts if alert.changed_at <= to_time(killed)]
    back = [(time, item) for time, item in inputs if time >= committed - 110]
    after = run(shipped, back, minutes, published=published, published_until=committed, start=committed - 110)
    assert list_changes([*published, *after]) == list_changes(all_alerts)


def move_to_cluster(item: AlertInput, cluster: str) -> AlertInput:
    if isinstance(item, Event):
        return item.model_copy(update={"cluster": cluster})
    assert isinstance(item, SchedulerActivity | PodMessage)
    return item._replace(cluster=cluster)


@settings(max_examples=count_examples(2))
@given(st.integers(0, 10_000))
def test_two_clusters_with_equal_names_have_the_alerts_that_each_has_alone(seed: int) -> None:
    shipped, minutes = load(), 200
    east = [(time, move_to_cluster(item, "east")) for time, item in a_busy_day(seed, minutes)]
    west = [(time, move_to_cluster(item, "west")) for time, item in a_busy_day(seed + 1, minutes)]
    alone = [*run(shipped, east, minutes), *run(shipped, west, minutes)]
    both = run(shipped, [*east, *west], minutes)
    assert sorted(both, key=lambda alert: (alert.changed_at, alert.id)) == sorted(
        alone, key=lambda alert: (alert.changed_at, alert.id)
    )
    assert {alert.cluster for alert in alone} == {"east", "west"}


def test_records_of_two_partitions_are_put_in_order_however_they_are_read() -> None:
    timeline = Timeline(to_time(0))
    for number, time in enumerate((0.1, 0.5, 0.9)):
        timeline.put(to_time(time), ("a", 1, number), [SchedulerActivity("default", "late", to_time(time))])
    for number, time in enumerate((0.1, 0.4)):
        timeline.put(to_time(time), ("a", 0, number), [SchedulerActivity("default", "early", to_time(time))])
    order = [
        (item if isinstance(item, datetime) else item.scheduler)  # type: ignore[union-attr]
        for item in timeline.advance(to_time(0.6))
    ]
    assert order == ["early", "late", to_time(0.25), "early", to_time(0.5), "late"]
    assert list(timeline.advance(to_time(0.6))) == []


def test_what_fires_for_days_is_published_again_once_a_day_with_its_id() -> None:
    inputs: list[tuple[float, AlertInput]] = [(1, a_check(1, "HandshakeTooOld"))]
    alerts = run(load(), inputs, 3 * DAY)
    assert len(alerts) == 3
    assert len({alert.id for alert in alerts}) == 1


def test_an_alert_of_a_removed_rule_resolves() -> None:
    (fired,) = run(load(), [(1, a_check(1, "HandshakeTooOld"))], 2)
    none: list[Rule] = []
    assert [alert.state for alert in run(none, [], 5, published=[fired], published_until=2)] == ["resolved"]


def test_an_alert_is_restored_from_its_fields_whatever_its_summary_says() -> None:
    """A check is published once, when its result changes: after a restart only the alert itself still has it."""
    (rule,) = [rule for rule in load() if rule.name == "HandshakeStale"]
    (fired,) = run([rule], [(1, a_check(1, "HandshakeTooOld"))], 2)
    translated = fired.model_copy(update={"summary": "Text einer späteren Fassung: ohne Bedeutung"})
    condition = rule.create_condition()
    condition.restore(translated)
    (restored,) = condition.list_firing(to_time(DAY))
    assert (restored.labels, restored.problems) == (fired.labels, fired.problems)
    assert (restored.summary.en, restored.summary.zh) == (fired.summary, fired.summary_zh)


def test_a_rule_of_another_kind_under_the_same_name_restores_nothing(tmp_path: Path) -> None:
    (fired,) = run(load_rules(tmp_path, "kind: lock"), [(time, a_bind(time, error=LOCKED)) for time in range(7)], 6)
    for kind in ("kind: handshake\n    codes: [HandshakeTooOld]", "kind: silent"):
        alerts = run(load_rules(tmp_path, kind), [], 10, published=[fired], published_until=6)
        assert [alert.state for alert in alerts] == ["resolved"]


def test_an_alert_about_a_node_continues_when_its_check_is_too_long_ago_to_be_read() -> None:
    (fired,) = run(load(), [(1, a_check(1, "HandshakeTooOld"))], 2)
    assert run(load(), [], DAY, published=[fired], published_until=DAY - 60, start=DAY - 60) == []


WRONG = {
    "rules:\n  - name: A\n    kind: pending\n    for_minutes: -1\n": ":4: rules.0.for_minutes: Input should be greater",
    "rules:\n  - name: A\n    kind: pending\n    minutes: 1\n": ":4: rules.0.minutes: Extra inputs are not permitted",
    "rules:\n  - name: A\n    kind: nothing\n": ":2: rules.0: Input tag 'nothing'",
    "rules:\n  - kind: lock\n": ":2: rules.0.name: Field required",
    "rules:\n  - {name: A, kind: lock}\n  - {name: A, kind: lock}\n": ":1: two rules are called A",
    "rules: [\n": ":2: not valid YAML",
    "": ":1: ",
    "- a\n": ":1: ",
    "rules:\n  - name: A\n    kind: handshake\n    codes: 5\n": ":4: rules.0.codes: Input should be a valid frozenset",
    "a: &a [*a]\n": "",
    "\x00": "",
}


@pytest.mark.parametrize("text", WRONG)
def test_a_mistake_in_a_file_of_rules_is_reported_with_file_and_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(RuleError) as error:
        load(path)
    assert str(error.value).startswith(f"{path}{WRONG[text]}")


def test_l9_aliases_that_double_are_refused_before_they_are_values(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_bytes(write_doubling(40, "<<"))
    with pytest.raises(RuleError, match=r"mine\.yaml:1: .*its aliases make \d+ values"):
        load(path)


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(RuleError, match="can't be read"):
        load(tmp_path / "none.yaml")
