"""On an unmodified HAMi cluster kube-events sees what is wrong with how nodes register, and when it is right again."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from engine.hami.annotations import HANDSHAKE, REGISTER
from ingest.readers.kube.node_checks import HamiNodeChecks
from schemas.events import NodeChecked
from schemas.json_types import Json
from tests.support.builders.kube_objects import a_device, a_node

NOW = datetime(2026, 11, 21, 3, 5, tzinfo=UTC)
FRESH = "Reported 2026-11-21 03:04:40 +0000 UTC"
# In the local time of HAMi's container, which is UTC.
OLD = "Requesting_2026-11-21 02:59:59"
REGISTERED = json.dumps([a_device("GPU-0")])


def make_node(register: str | None = REGISTERED, handshake: str | None = FRESH) -> Json:
    marks = {REGISTER: register, HANDSHAKE: handshake}
    metadata = {"name": "node1", "annotations": {key: value for key, value in marks.items() if value is not None}}
    return {"metadata": metadata, "status": {"allocatable": {"nvidia.com/gpu": "10"}}}


def list_codes(events: list[NodeChecked]) -> list[tuple[str, list[str]]]:
    return [(event.node, [problem.code for problem in event.problems]) for event in events]


@pytest.mark.parametrize(
    ("resource", "problems"),
    [
        (make_node(), None),
        (make_node(handshake=OLD), ["HandshakeTooOld"]),
        (make_node(handshake="soon"), ["HandshakeUnreadable"]),
        (make_node(register=None), ["RegistrationMissing"]),
        (make_node(register="[{]"), ["RegistrationUnusable"]),
        (make_node(register="", handshake=OLD), ["RegistrationMissing", "HandshakeTooOld", "RegistrationUnusable"]),
        # Another device plugin serves it: it has devices and no sign of HAMi.
        (make_node(register=None, handshake=None), None),
        (a_node("plain", devices=[]) | {"metadata": {"name": "plain"}}, None),
    ],
)  # fmt: skip
def test_each_problem_is_found(resource: Json, problems: list[str] | None) -> None:
    events = list(HamiNodeChecks("east").check_node(resource, NOW))
    assert list_codes(events) == ([("node1", problems)] if problems else [])
    assert all(event.cluster == "east" for event in events)


def test_problems_are_reported_when_they_change_and_once_more_when_they_are_over() -> None:
    checks = HamiNodeChecks()
    broken = make_node(register="[{]")
    assert list_codes(list(checks.check_node(broken, NOW))) == [("node1", ["RegistrationUnusable"])]
    assert list(checks.check_node(broken, NOW)) == []
    assert list_codes(list(checks.check_node(make_node(), NOW))) == [("node1", [])]
    assert list(checks.forget("node1", NOW)) == []


def test_a_handshake_grows_old_without_a_change_of_the_node() -> None:
    checks = HamiNodeChecks()
    assert list(checks.check_node(make_node(), NOW)) == []
    later = NOW + timedelta(seconds=290)
    (event,) = checks.check(later)
    assert list_codes([event]) == [("node1", ["HandshakeTooOld"])]
    (problem,) = event.problems
    assert (problem.handshake, problem.allocatable, problem.is_asked) == (FRESH, 10, False)
    assert list(checks.check(later)) == []
    assert list_codes(list(checks.forget("node1", later))) == [("node1", [])]
    assert list(HamiNodeChecks(limit=timedelta()).check_node(make_node(handshake=OLD), NOW)) == []


def test_a_node_that_loses_all_marks_has_no_problems_any_more() -> None:
    checks = HamiNodeChecks()
    list(checks.check_node(make_node(register="[{]"), NOW))
    assert list_codes(list(checks.check_node(make_node(register=None, handshake=None), NOW))) == [("node1", [])]


@pytest.mark.parametrize("resource", [{}, {"metadata": 3}, {"metadata": {"name": "n", "annotations": {REGISTER: 3}}}])
def test_any_object_is_checked_without_an_error(resource: Any) -> None:
    list(HamiNodeChecks().check_node(resource, NOW))
