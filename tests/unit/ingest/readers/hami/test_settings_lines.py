"""HAMi's version and flags, from the lines that it prints at its start."""

from schemas.events import AttemptConcluded, Event, SchedulerObserved
from tests.support.builders.hami_lines import a_line, read, write_failure, write_start

FLAGS = [
    a_line('FLAG: --http_bind="0.0.0.0:80"', seconds=0.0),
    a_line('FLAG: --node-scheduler-policy="binpack"', seconds=0.001),
    a_line('FLAG: --node-label-selector="[]"', seconds=0.002),
    a_line('FLAG: --registry-token="abc"', seconds=0.003),
]


def list_observed(events: list[Event]) -> list[SchedulerObserved]:
    return [event for event in events if isinstance(event, SchedulerObserved)]


def list_digests(events: list[Event]) -> list[str]:
    return [event.settings_digest for event in events if isinstance(event, AttemptConcluded)]


def test_the_flags_of_a_start_are_one_observation_without_secrets() -> None:
    [event] = list_observed(read(*FLAGS, write_start(seconds=1), write_failure(1, seconds=2)))
    assert (event.scheduler, event.implementation) == ("hami-scheduler", "HAMi")
    assert event.settings == {
        "http_bind": "0.0.0.0:80",
        "node-scheduler-policy": "binpack",
        "node-label-selector": "[]",
    }
    assert event.observed_at.second == 0


def test_attempts_name_the_settings_in_force() -> None:
    before = [write_start("old", seconds=0), write_failure(1, "ml/old", seconds=0.1)]
    again = [
        a_line('FLAG: --node-scheduler-policy="spread"', seconds=100),
        write_start(seconds=101),
        write_failure(1, seconds=102),
    ]
    events = read(*before, *FLAGS, write_start(seconds=1), write_failure(1, seconds=2), *again)
    first, second = list_observed(events)
    assert second.settings == {"node-scheduler-policy": "spread"}
    assert first.settings_digest != second.settings_digest
    assert list_digests(events) == ["", first.settings_digest, second.settings_digest]


def test_a_version_belongs_to_the_flags_of_its_start() -> None:
    version = a_line("HAMi Scheduler Version: v2.8.0", seconds=0.004)
    [event] = list_observed(read(*FLAGS, version))
    assert event.version == "v2.8.0"
    [without] = list_observed(read(*FLAGS))
    assert (without.version, without.settings) == ("", event.settings)
    assert without.settings_digest != event.settings_digest
