"""H8: events are read of the reporters alone that the configuration names."""

import re
from pathlib import Path

import pytest
import yaml

from ingest.readers.kube import KubeEvents
from ingest.reading.options import WatchSettings
from ingest.reading.protocol import report_counts
from ingest.reading.trusted_reporters import DEFAULT_REPORTERS, MAX_LEFT_OUT, TrustedReporters, parse_reporter_patterns
from schemas.events import AttemptConcluded, PodObserved
from schemas.json_types import Json
from tests.support.builders.api_server_objects import a_pod, an_event, an_old_event, list_attempts, read

POLICY = Path(__file__).parents[5] / "deploy/kustomize/components/event-reporters/policy.yaml"
REFUSAL = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."


def test_h8_an_event_of_an_unnamed_reporter_is_no_attempt_and_is_counted() -> None:
    reader = KubeEvents()
    forged = an_event("FailedScheduling", REFUSAL, scheduler="innocent-app")
    assert read(("event", forged), reader=reader) == []
    assert reader.counts.lines == {"event": 0, "noise": 0, "unknown": 0, "untrusted": 1}
    assert list(reader.reporters.left_out) == ["innocent-app"]
    assert "1 more were left out" in report_counts(reader.counts)


def test_h8_a_forged_event_does_not_silence_the_condition_of_the_pod() -> None:
    forged = an_event("FailedScheduling", "all is well", scheduler="innocent-app")
    (attempt,) = list_attempts(read(("event", forged), ("pod", a_pod(condition=REFUSAL))))
    assert attempt.scheduler_message == REFUSAL


@pytest.mark.parametrize(
    "named",
    [
        {"reportingController": "gpu-scheduler"},
        {"reportingComponent": "gpu-scheduler"},
        {"deprecatedSource": {"component": "gpu-scheduler"}},
        {"source": {"component": "gpu-scheduler"}},
    ],
)
def test_h8_a_reporter_is_named_in_every_form_of_events(named: Json) -> None:
    event = an_event("FailedScheduling", REFUSAL)
    del event["reportingController"]
    for patterns, count in (("gpu-*,kubelet", 1), ("other-*", 0)):
        reader = KubeEvents(reporters=TrustedReporters(parse_reporter_patterns(patterns)))
        events = read(("event", event | named), reader=reader)
        assert len([outcome for outcome in events if isinstance(outcome, AttemptConcluded)]) == count


def test_h8_kais_binder_is_believed_by_its_own_name_not_by_that_of_its_scheduler() -> None:
    bound = an_event("Bound", "Pod bound successfully to node node1", scheduler="innocent-app")
    assert read(("event", bound)) == []


def test_h8_problems_of_pods_and_owners_are_those_of_named_reporters() -> None:
    refused = an_event("FailedCreate", "no quota", kind="Job", scheduler="job-controller")
    assert len(read(("event", refused))) == 1
    assert read(("event", refused | {"reportingController": "innocent-app"})) == []


def test_h8_an_event_says_nothing_about_a_pod_of_another_namespace() -> None:
    evicted = an_event("Evict", "Pod other/victim was preempted by x", kind="PodGroup", scheduler="kai-scheduler")
    assert read(("event", evicted)) == []
    own_event = evicted | {"note": "Pod ml/victim was preempted by x"}
    (observed,) = (event for event in read(("event", own_event)) if isinstance(event, PodObserved))
    assert str(observed.pod) == "ml/victim"


def test_the_default_has_the_schedulers_that_the_reader_knows() -> None:
    trusted = TrustedReporters()
    # Karpenter's words on a pod are no attempt of a scheduler.
    names = [name for name in DEFAULT_REPORTERS if "*" not in name and name != "karpenter"]
    events = [an_event("FailedScheduling", REFUSAL, scheduler=name) for name in names]
    assert [len(list_attempts(read(("event", event)))) for event in events] == [1] * len(events)
    assert read(("event", an_old_event("FilteringFailed", "x")))
    assert trusted.check("pytorchjob-controller")
    assert not trusted.check("")


def test_the_policy_of_the_deployment_guards_the_default() -> None:
    (policy, _) = yaml.safe_load_all(POLICY.read_text())
    guarded = next(variable for variable in policy["spec"]["variables"] if variable["name"] == "guarded")["expression"]
    assert re.findall(r"'([a-z-]+)'", guarded) == [name for name in DEFAULT_REPORTERS if "*" not in name]
    assert "name.endsWith('job-controller')" in policy["spec"]["validations"][0]["expression"]


def test_names_of_those_that_are_left_out_are_bounded() -> None:
    trusted = TrustedReporters()
    for position in range(3 * MAX_LEFT_OUT):
        assert not trusted.check(f"{position}-{'x' * 1000}")
    assert len(trusted.left_out) == MAX_LEFT_OUT
    assert max(map(len, trusted.left_out)) == 128


def test_no_reporter_at_all_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="names no reporter"):
        parse_reporter_patterns(" , ")
    assert WatchSettings.model_fields["event_reporters"].default == DEFAULT_REPORTERS
