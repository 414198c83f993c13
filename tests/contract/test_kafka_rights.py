"""Users of Kafka in deploy/: the table of docs/security.md, the groups of the code and the AsyncAPI document."""

import re
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from pipeline.settings import INDEX_GROUP, PLACEMENTS_GROUP, WorkerSettings, derive_events_group
from pipeline.trends.process import GROUP as TRENDS_GROUP
from runtime.settings.names import ALERTS_GROUP
from tests.support.secured_kafka.rights import Right, read_deployed_rights

RIGHTS: Final = read_deployed_rights()
PAGE: Final = Path("docs/security.md").read_text()
(TABLE,) = re.findall(r"^\| process \| `Read` on topics .*\n\|[-|]+\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
ROWS: Final = {
    cells[0].strip("`"): cells[1:]
    for cells in ([cell.strip() for cell in line.strip("|").split("|")] for line in TABLE.splitlines())
}
ASYNCAPI: Final[dict[str, Any]] = yaml.load(Path("schemas/generated/asyncapi.yaml").read_text(), yaml.CSafeLoader)
TOPIC, GROUP = "schedulerlog.", "schedulerlog-"


def parse_cell(cell: str, operation: str, kind: str) -> set[Right]:
    """Parse the rights of one cell; a name after the word ``group`` is that of a group."""
    rights = set()
    for word, name, more in re.findall(r"(group )?`([^`…]+)(…?)`", cell):
        of_group = word or kind == "group"
        full = (GROUP if of_group else TOPIC) + name
        rights.add(Right("group" if of_group else "topic", full, operation, "prefix" if more else "literal"))
    return rights


def parse_row(cells: list[str]) -> set[Right]:
    reads, writes, sees, groups = cells
    parsed = parse_cell(reads, "Read", "topic") | parse_cell(writes, "Write", "topic")
    return parsed | parse_cell(sees, "Describe", "topic") | parse_cell(groups, "Read", "group")


def test_the_page_has_a_row_for_each_user() -> None:
    assert [f"{GROUP}{process}" for process in ROWS] == list(RIGHTS)


@pytest.mark.parametrize("process", list(ROWS))
def test_a_row_of_the_page_is_what_the_user_has(process: str) -> None:
    assert parse_row(ROWS[process]) == RIGHTS[f"{GROUP}{process}"]


def list_groups(process: str) -> set[str]:
    return {right.name for right in RIGHTS[f"{GROUP}{process}"] if (right.kind, right.operation) == ("group", "Read")}


def test_groups_are_those_in_which_the_processes_read() -> None:
    assert list_groups("worker") == {WorkerSettings.model_fields["consumer_group"].default, TRENDS_GROUP}
    assert list_groups("index") == {INDEX_GROUP}
    assert list_groups("placements") == {PLACEMENTS_GROUP, f"{PLACEMENTS_GROUP}-lease"}
    assert list_groups("alerts") == {ALERTS_GROUP, f"{ALERTS_GROUP}-lease"}
    (events,) = list_groups("events")
    assert derive_events_group("paris") == f"{events}paris"


@pytest.mark.parametrize("process", ["kube-events", "hami-log", "kai-log"])
def test_a_lease_of_a_manifest_is_in_a_group_of_its_user(process: str) -> None:
    manifests = "".join(path.read_text() for path in Path("deploy/kustomize/components", process).glob("*.yaml"))
    (lease,) = re.findall(r"--lease=(\S+)\$\(CLUSTER_NAME\)", manifests)
    assert list_groups(process) == {lease}


@pytest.mark.parametrize(("action", "operation"), [("send", "Write"), ("receive", "Read")])
def test_what_the_asyncapi_document_has_done_a_user_may_do(action: str, operation: str) -> None:
    channels = [item["channel"]["$ref"] for item in ASYNCAPI["operations"].values() if item["action"] == action]
    topics = {ASYNCAPI["channels"][reference.rpartition("/")[2]]["address"] for reference in channels}
    permitted = {
        right.name
        for rights in RIGHTS.values()
        for right in rights
        if (right.kind, right.operation) == ("topic", operation)
    }
    # Lines of logs are shipped by programs that are not ours.
    assert topics - {"schedulerlog.raw-logs"} <= permitted
    assert len(topics) > 5
