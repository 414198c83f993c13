"""The manifest of a pod that was tried asks for what it asked for: each vendor's example, decided again."""

from pathlib import Path
from typing import Any, Final

import pytest

from engine.fit import manifests
from engine.fit.events.attempt import Identity
from engine.fit.judge.decision import SchedulingPolicy
from engine.fit.manifests import Manifest
from engine.fit.simulate import build_columns, simulate_on
from engine.summaries.fold import summarize
from page.pod_manifest import write_pod_manifest
from schemas.events import AttemptSummarized, Request
from tests.support.builders.events import STARTED, a_request, a_summary
from tests.support.builders.vendor_examples import MIXED, NAMES, VENDORS, read_node, read_pod

PODS: Final = sorted(Path("examples/pods").glob("*.yaml"))


def simulate(pod: dict[str, Any], node: dict[str, Any]) -> AttemptSummarized:
    columns = build_columns(Manifest(nodes={"n": node}), VENDORS)
    identity = Identity("default", "hami-scheduler")
    return summarize(simulate_on(columns, columns.node_names, pod, identity, SchedulingPolicy(), STARTED))


def read(text: str) -> dict[str, Any]:
    (pod,) = manifests.parse(text.encode(), Path("pod.yaml")).pods.values()
    return pod


def write_manifest(attempt: AttemptSummarized) -> str:
    return write_pod_manifest(attempt.pod.namespace, attempt.pod.name, attempt, VENDORS)


@pytest.mark.parametrize("name", NAMES)
def test_the_pod_of_each_vendor_asks_for_the_same_and_goes_to_the_same_node(name: str) -> None:
    node, pod = read_node(name), read_pod(name)
    pod["metadata"].setdefault("namespace", "default")
    attempt = simulate(pod, node)
    again = simulate(read(write_manifest(attempt)), node)
    assert (again.requests, again.chosen) == (attempt.requests, attempt.chosen)


@pytest.mark.parametrize("path", PODS, ids=lambda path: path.stem)
def test_annotations_that_constrain_devices_are_kept(path: Path) -> None:
    attempt = simulate(manifests.read_pod(path), read_node(MIXED))
    again = simulate(read(write_manifest(attempt)), read_node(MIXED))
    assert again.requests == attempt.requests
    assert (attempt.constraints or {}).items() <= (again.constraints or {}).items()


def test_slices_of_an_enflame_device_are_not_memory() -> None:
    request = Request(container="main", vendor="Enflame", count=1, memory_mib=3)
    limits = read(write_manifest(a_summary(requests=[request])))["spec"]["containers"][0]["resources"]["limits"]
    assert limits == {"enflame.com/drs-gcu": 3}


def test_a_vendor_that_is_not_configured_is_left_out_and_this_is_in_the_text() -> None:
    text = write_manifest(a_summary(requests=[a_request(vendor="unknown")]))
    assert "left out" in text
    assert read(text)["spec"]["containers"] == [{"name": a_request().container}]


def test_a_name_with_a_line_break_is_read_back_as_it_was() -> None:
    name = "a\n- name: other\u202e"
    assert (
        read(write_manifest(a_summary(requests=[a_request(container=name)])))["spec"]["containers"][0]["name"] == name
    )
