"""Names of kinds, and lists of lists of objects."""

from typing import Any

import pytest

from engine.snapshot.kinds import SnapshotError, flatten, identify

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}


@pytest.mark.parametrize(
    ("version", "kind", "name"),
    [
        ("v1", "Pod", "Pod"),
        ("", "Pod", "Pod"),
        ("storage.k8s.io/v1", "CSINode", "CSINode.storage.k8s.io"),
        # Volcano read the kinds of its predecessor kube-batch under this group.
        ("scheduling.incubator.k8s.io/v1alpha1", "PodGroup", "PodGroup.scheduling.volcano.sh"),
    ],
)
def test_a_kind_has_the_name_of_its_group(version: str, kind: str, name: str) -> None:
    assert identify(version, kind) == name


@pytest.mark.parametrize(
    ("value", "objects"),
    [
        (POD, [POD]),
        ({"kind": "List", "items": [POD, "x"]}, [POD, "x"]),
        ({"apiVersion": "v1", "kind": "PodList", "items": [{"metadata": {"name": "p"}}, POD]}, [POD, POD]),
        ({"apiVersion": "v1", "kind": "PodList", "items": [3]}, [3]),
        ({"kind": "PodList", "items": {}}, [{"kind": "PodList", "items": {}}]),
        ({"kind": "Lists", "items": [POD]}, [{"kind": "Lists", "items": [POD]}]),
        ({"kind": 3, "items": [POD]}, [{"kind": 3, "items": [POD]}]),
        ({"kind": "List", "items": [{"metadata": {"name": "p"}}]}, [{"metadata": {"name": "p"}}]),
    ],
)
def test_a_list_stands_for_its_items(value: Any, objects: list[Any]) -> None:
    assert list(flatten([value, POD])) == [*objects, POD]


def build_nested(depth: int) -> Any:
    return {"kind": "List", "items": [build_nested(depth - 1)]} if depth else POD


def test_lists_beyond_eight_levels_are_refused() -> None:
    assert list(flatten([build_nested(8)])) == [POD]
    with pytest.raises(SnapshotError, match="nested more than eight levels deep"):
        list(flatten([build_nested(9)]))


def test_an_input_beyond_the_limit_is_refused_with_the_next_step() -> None:
    assert list(flatten([POD] * 1200, limit=1200)) == [POD] * 1200
    with pytest.raises(SnapshotError, match=r"more than 1,200 objects\. Read fewer namespaces or kinds"):
        list(flatten([POD] * 1201, limit=1200))
