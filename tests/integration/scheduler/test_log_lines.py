"""`--v` of a running scheduler: HAMi's lines on stderr, as readers of HAMi's logs expect them."""

import json
import re
from pathlib import Path

import pytest

from tests.support.builders.kube_objects import a_pod
from tests.support.harness.scheduler_process import NODE_NAMES, SchedulerProcess, a_refused_pod

LINE = re.compile(r'^[IE]\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ \w+\.go:\d+\] (?:"([^"]+)"|node )')


@pytest.mark.parametrize(
    ("flag", "expected"),
    [
        ("--v=0", {"Starting schedule filter process", "Event occurred"}),
        ("-v=4", {"NodeFitPod", "NodeUnfitPod"}),
        ("--v=5", {"NodeFitPod", "NodeUnfitPod", "NodeInsufficientDevice", "find fit device"}),
    ],
)
def test_the_lines_of_a_level_stand_on_stderr_when_it_ends(tmp_path: Path, flag: str, expected: set[str]) -> None:
    with SchedulerProcess(tmp_path, "--no-publish", flag) as scheduler:
        placed = a_pod("placed", namespace="lines")
        scheduler.bind(placed, scheduler.filter(placed)["NodeNames"][0])
        scheduler.filter(a_refused_pod("refused", "lines"))
        assert scheduler.sum_metric("schedulerlog_scheduler_klog_dropped_calls_total") == 0
        assert scheduler.stop() == 0
    lines = [line for line in scheduler.log.read_text().splitlines() if LINE.match(line)]
    value = {match[1] for line in lines if (match := LINE.match(line))}
    assert expected <= value
    assert ("NodeUnfitPod" in value) == ("NodeUnfitPod" in expected)
    assert ("find fit device" in value) == ("find fit device" in expected)
    if "NodeUnfitPod" in expected:
        written = {
            node for line in lines for node in re.findall(r'"NodeUnfitPod" pod="lines/refused" node="(\w+)"', line)
        }
        assert written == set(NODE_NAMES)


def test_without_the_flag_there_are_none(tmp_path: Path) -> None:
    with SchedulerProcess(tmp_path, "--no-publish") as scheduler:
        scheduler.filter(a_refused_pod("refused", "lines"))
        scheduler.stop()
    assert not [line for line in scheduler.log.read_text().splitlines() if LINE.match(line)]


def test_lines_of_json_name_the_attempt_and_the_pod_that_they_are_about(tmp_path: Path) -> None:
    with SchedulerProcess(tmp_path, "--no-publish", "--log-format", "json", "--log-level", "debug") as scheduler:
        placed = a_pod("placed", namespace="json")
        scheduler.bind(placed, scheduler.filter(placed)["NodeNames"][0])
        scheduler.filter(a_refused_pod("refused", "json"))
        assert scheduler.stop() == 0
    lines = [json.loads(line) for line in scheduler.log.read_text().splitlines()]
    mine = [line for line in lines if "pod" in line]
    assert [line["pod"] for line in mine] == ["json/placed", "json/placed", "json/refused"]
    assert [line["message"].partition(" ")[0] for line in mine] == ["filter", "bind", "filter"]
    # The attempt that was filtered is the one that is bound; its id is 32 hexadecimal digits.
    assert mine[0]["attempt"] == mine[1]["attempt"] != mine[2]["attempt"]
    assert all(re.fullmatch("[0-9a-f]{32}", line["attempt"]) and line["cluster"] == "default" for line in mine)
