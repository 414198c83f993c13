"""Contradictions within an attempt, derived by hand."""

from datetime import timedelta
from typing import Any

from engine.summaries.attempt_audit import audit_attempt
from engine.summaries.fold import summarize
from schemas.codec.records import encode
from schemas.events import (
    AttemptConcluded,
    AttemptSummarized,
    BindOutcome,
    DetailDropped,
    FindingReported,
    PickedDevice,
)
from tests.support.builders.attempts import ENDED, a_picked_device, an_attempt, build_common
from tests.support.builders.events import STARTED, a_summary

REFUSING = {"node1": [["NumaNotFit", "CardCordoned", "CardCordoned"]], "node2": [["CardCordoned"]]}
FITTING = {"node1": [["picked", "fits"], ["CardCordoned", "picked"]], "node2": [["NumaNotFit"] * 2, ["fits"]]}


def list_findings(summary: AttemptSummarized) -> list[tuple[str, str, str]]:
    return [(finding.finding, finding.node, finding.device) for finding in audit_attempt(summary)]


def test_a_summary_counts_nodes_and_devices_by_verdict_and_container() -> None:
    balance = summarize(an_attempt(FITTING, chosen="node1", unregistered=["node3"])).balance
    assert balance is not None
    assert (balance.judged_nodes, balance.nodes) == (3, {"picked": 1, "refused": 1, "unregistered": 1})
    assert balance.devices == [{"NumaNotFit": 2, "fits": 1, "picked": 1}, {"CardCordoned": 1, "picked": 1}]
    assert (balance.judged_devices, balance.missing) == (6, "")


def test_what_adds_up_is_no_finding() -> None:
    assert audit_attempt(summarize(an_attempt(REFUSING))) == []


def test_device_rows_that_are_missing_are_found_with_both_numbers() -> None:
    events = [event for event in an_attempt(REFUSING, nodes_a_record=1) if getattr(event, "part", 0) == 0]
    (finding,) = audit_attempt(summarize(events))
    assert (finding.finding, finding.node) == ("Imbalance", "")
    assert finding.numbers == {
        "judged_nodes": 2, "published_nodes": 1, "judged_devices": 4, "published_devices": 3, "dropped_devices": 0,
    }  # fmt: skip
    assert finding.evidence == [
        "1 of 2 node records are missing (parts 1); 1 of 2 device records are missing (parts 1)"
    ]


def test_an_end_that_counts_other_devices_than_the_rows_is_found() -> None:
    *records, end = an_attempt(REFUSING)
    assert isinstance(end, AttemptConcluded)
    (finding,) = audit_attempt(summarize([*records, end.model_copy(update={"judged_devices": 5})]))
    assert (finding.numbers["judged_devices"], finding.numbers["published_devices"]) == (5, 4)


def build_picked_device(**fields: Any) -> PickedDevice:
    plain = {
        "container": 0, "uuid": "GPU-1", "memory_mib": 2_000, "cores_percent": 30,
        "memory_total_mib": 10_000, "memory_used_mib": 8_000, "cores_total_percent": 100, "cores_used_percent": 70,
        "slots_total": 4, "slots_used": 3,
    }  # fmt: skip
    return PickedDevice.model_validate(plain | fields)


def build_placed_attempt(*devices: PickedDevice, **fields: Any) -> AttemptSummarized:
    return a_summary(picked=list(devices), chosen="node2", status="pending", ended_at=STARTED, **fields)


def test_a_device_that_is_filled_to_the_last_is_right() -> None:
    assert audit_attempt(build_placed_attempt(build_picked_device())) == []


def test_a_device_over_its_memory_cores_or_slots_is_found_with_its_numbers() -> None:
    (memory,) = audit_attempt(build_placed_attempt(build_picked_device(memory_mib=2_001)))
    assert memory.numbers == {"memory_total_mib": 10_000, "memory_used_mib": 8_000, "memory_taken_mib": 2_001}
    assert (memory.finding, memory.node, memory.device) == ("Overcommitted", "node2", "GPU-1")
    (cores,) = audit_attempt(build_placed_attempt(build_picked_device(cores_used_percent=71)))
    assert cores.numbers == {"cores_total_percent": 100, "cores_used_percent": 71, "cores_taken_percent": 30}
    (slots,) = audit_attempt(build_placed_attempt(build_picked_device(slots_used=4)))
    assert slots.numbers == {"slots_total": 4, "slots_used": 4, "slots_taken": 1}


def test_a_placement_that_waits_for_others_to_leave_takes_nothing_yet() -> None:
    over = build_picked_device(memory_mib=2_001)
    assert audit_attempt(build_placed_attempt(over, nominated="node2")) == []
    bind = BindOutcome(node="node2", bound=True, ended_at=STARTED + timedelta(seconds=1))
    assert list_findings(build_placed_attempt(over, nominated="node2", bind=bind)) == [
        ("Overcommitted", "node2", "GPU-1")
    ]
    failed = bind.model_copy(update={"bound": False, "error": "timeout"})
    assert list_findings(build_placed_attempt(over, nominated="node2", bind=failed)) == []
    assert list_findings(build_placed_attempt(over, nominated="node1")) == [("Overcommitted", "node2", "GPU-1")], (
        "waited for another node"
    )


def test_two_containers_on_one_device_count_together() -> None:
    summary = build_placed_attempt(
        build_picked_device(memory_mib=1_000), build_picked_device(memory_mib=1_001, slots_used=2, slots_total=5)
    )
    assert audit_attempt(summary)[0].numbers["memory_taken_mib"] == 2_001


def test_what_the_source_does_not_say_is_no_finding() -> None:
    unknown = build_picked_device(memory_mib=None, memory_total_mib=None, cores_used_percent=None, slots_total=None)
    assert audit_attempt(build_placed_attempt(unknown)) == []


def test_a_bind_that_the_filter_did_not_decide_is_found() -> None:
    bind = BindOutcome(node="node1", bound=True, ended_at=STARTED + timedelta(seconds=1))
    assert list_findings(build_placed_attempt(bind=bind)) == [("BoundElsewhere", "node1", "")]
    assert list_findings(a_summary(ended_at=STARTED, bind=bind)) == [("BoundWithoutChoice", "node1", "")]
    assert list_findings(a_summary(ended_at=STARTED, bind=bind, fit_nodes=1)) == [], "its name was not written"
    assert list_findings(build_placed_attempt(bind=bind.model_copy(update={"node": "node2"}))) == []
    assert list_findings(build_placed_attempt(bind=bind.model_copy(update={"bound": False}))) == []


def test_what_was_taken_of_a_device_is_what_was_requested() -> None:
    events = an_attempt({"node1": [["picked", "fits"]]}, chosen="node1")
    (device,) = summarize(events).picked
    assert (device.uuid, device.model) == ("GPU-node1-0", "NVIDIA A100-SXM4-80GB")
    assert (device.memory_mib, device.memory_total_mib, device.memory_used_mib) == (20480, 81920, 1024)


def test_a_finding_has_the_same_id_however_often_it_is_published() -> None:
    events = an_attempt(REFUSING)[1:]
    first, second = audit_attempt(summarize(events)), audit_attempt(summarize(reversed(events)))
    assert all(isinstance(finding, FindingReported) for finding in first)
    assert [finding.id for finding in first] == [finding.id for finding in second] != []


def test_devices_of_an_unknown_container_and_huge_numbers_make_a_finding_that_can_be_written() -> None:
    picked = [a_picked_device("GPU-1", 2**40, memory_mib=2**63 - 1, memory_used_mib=2**62) for _ in range(3)]
    events = an_attempt({"node1": [["picked"]]}, chosen="node1")
    (finding,) = audit_attempt(summarize([*events[:-1], events[-1].model_copy(update={"picked": picked})]))
    assert encode(finding).value
    assert finding.numbers["memory_taken_mib"] == 2**63 - 1
    assert finding.evidence == [
        "node1 gave GPU-1 to ml/trainer (container 1099511627776, container 1099511627776, container 1099511627776)"
    ]


def test_more_given_up_rows_than_64_bits_hold_make_a_summary_that_can_be_written() -> None:
    dropped = [
        DetailDropped(
            **build_common(),
            dropped_at=ENDED + timedelta(seconds=second),
            device_records=1,
            judged_devices=2**63 - 1,
            cause="the spool is full",
        )
        for second in range(3)
    ]
    summary = summarize([*an_attempt(REFUSING)[1:], *dropped])
    assert encode(summary).value
