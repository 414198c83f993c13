"""A cluster file is taken as kubectl writes it; a mistake in it is named with file, line and what to write instead."""

from pathlib import Path

import hypothesis.strategies as st
import pytest
import yaml
from hypothesis import given, settings

from engine.fit.manifests import Manifest, ManifestError, parse, read, read_pod
from tests.support.stress import count_examples

FILE = Path("cluster.yaml")


def parse_text(text: str) -> Manifest:
    return parse(text.encode(), FILE)


def get_mistake(text: str | bytes) -> str:
    with pytest.raises(ManifestError) as refused:
        parse(text if isinstance(text, bytes) else text.encode(), FILE)
    return str(refused.value)


def test_documents_and_lists_may_be_mixed() -> None:
    manifest = parse_text(
        """
apiVersion: v1
kind: Node
metadata: {name: node1}
---
apiVersion: v1
kind: List
items:
- {kind: Node, metadata: {name: node2}}
- {kind: Pod, metadata: {name: pod1, namespace: ml, uid: u1}}
- {kind: PodList, items: [{kind: Pod, metadata: {name: pod2}}]}
---
# nothing here
---
kind: ResourceQuota
metadata: {name: q, namespace: ml}
spec: {hard: {limits.nvidia.com/gpu: 4}}
---
{kind: Service, metadata: {name: s}}
"""
    )
    assert set(manifest.nodes) == {"node1", "node2"}
    assert set(manifest.pods) == {("ml", "pod1"), ("default", "pod2")}
    assert set(manifest.quotas) == {("ml", "q")}
    assert manifest.ignored == {"Service": 1}


def test_a_pod_without_uid_gets_the_same_one_each_time() -> None:
    text = "{kind: Pod, metadata: {name: p}}"
    first, again = (parse_text(text).pods["default", "p"]["metadata"]["uid"] for _ in range(2))
    assert first == again != ""


def test_a_date_in_an_annotation_remains_text() -> None:
    text = "{kind: Node, metadata: {name: n, annotations: {since: 2026-11-21T03:00:00Z, day: 2026-11-21}}}"
    assert parse_text(text).nodes["n"]["metadata"]["annotations"] == {
        "since": "2026-11-21T03:00:00Z",
        "day": "2026-11-21",
    }


def test_a_broken_hami_annotation_is_no_mistake_of_the_file() -> None:
    text = "{kind: Node, metadata: {name: n, annotations: {hami.io/node-nvidia-register: 'nonsense'}}}"
    assert "n" in parse_text(text).nodes


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("kind: Node\nmetadata:\n\tname: x", 3, "is not YAML"),
        ("kind: [Node", 1, "is not YAML"),
        ("- kind: Node", 1, "is a list, write a Kubernetes object"),
        ("just words", 1, "is the text 'just words', write a Kubernetes object"),
        ("kind: Node\nmetadata: {name: a}\n---\nmetadata: {name: b}", 4, "has no kind"),
        ("kind: Node\nmetadata:\n  labels: {}", 3, "the Node has no metadata.name"),
        ("kind: Node\nmetadata:\n  name: 7", 3, 'name is the number 7, write a string: "7"'),
        ("kind: Node\nmetadata: [name]", 2, "metadata is a list, write a mapping"),
        (
            "kind: Pod\nmetadata:\n  name: p\n  annotations:\n    a: x\n    b: true",
            6,
            "b is the boolean true, write a string",
        ),
        ("kind: Pod\nmetadata:\n  name: p\n  labels:\n    a:\n", 5, "metadata.labels: a is empty, write a string"),
        ("kind: Node\nmetadata: {name: a}\n---\nkind: Node\nmetadata: {name: a}", 4, "first in line 1"),
        ("kind: Node\nmetadata:\n  name: a\n  name: b", 4, "name is defined here again, first in line 3"),
        ("kind: Pod\nmetadata: {name: p}\nspec:\n  containers: main", 4, "containers is the text 'main', write a list"),
        ("kind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n  - image: x", 5, "the container has no name"),
        (
            "kind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n  - name: c\n    resources:\n      limits: {a: [1]}",
            7,
            "limits: a is a list, write a quantity",
        ),
        ("kind: Pod\nmetadata: {name: p}\nstatus: {phase: 3}", 3, "phase is the number 3"),
        ("kind: List\nitems: {a: b}", 2, "items is a mapping, write a list"),
        ("kind: Node\nmetadata: {1: x}", 2, "the key 1 is not a string"),
        ("kind: Node\nmetadata: !!python/object:os.system {}", 2, "is not YAML"),
    ],
)
def test_a_mistake_is_named_with_its_line_and_the_way_out(text: str, line: int, words: str) -> None:
    content = get_mistake(text)
    assert content.startswith(f"cluster.yaml:{line}: ")
    assert words in content


@pytest.mark.parametrize("text", [b"kind: Node\nmetadata: {name: \xff}", b"kind: Node\nmetadata: {name: \x00}"])
def test_bytes_that_are_no_text_are_named_with_their_line(text: bytes) -> None:
    assert get_mistake(text).startswith("cluster.yaml:2: ")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="No such file"):
        read(tmp_path / "nothing.yaml")


def test_a_pod_file_describes_one_pod(tmp_path: Path) -> None:
    path = tmp_path / "pod.yaml"
    path.write_text("{kind: Node, metadata: {name: n}}")
    with pytest.raises(ManifestError, match="describes 0 pods, write exactly one"):
        read_pod(path)


def find_mistake(text: bytes) -> str:
    """Return what is wrong with the text; empty where nothing is."""
    try:
        parse(text, FILE)
    except ManifestError as error:
        return str(error)
    return ""


@settings(max_examples=count_examples(30))
@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_no_bytes_fail_otherwise_than_with_a_named_mistake(text: bytes) -> None:
    assert find_mistake(text).startswith("cluster.yaml:") or parse(text, FILE)


FIELDS = st.sampled_from(
    [
        "kind",
        "metadata",
        "name",
        "namespace",
        "annotations",
        "spec",
        "containers",
        "resources",
        "limits",
        "status",
        "items",
    ]
)
VALUES: st.SearchStrategy[object] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELDS | st.text(max_size=4), inner, max_size=4),
    max_leaves=20,
)


@settings(max_examples=count_examples(30))
@given(st.dictionaries(FIELDS, VALUES, max_size=5), st.sampled_from(["Node", "Pod", "List", "ResourceQuota"]))
def test_no_object_fails_otherwise_than_with_a_named_mistake(fields: dict[str, object], kind: str) -> None:
    text = yaml.safe_dump({**fields, "kind": kind}).encode()
    assert find_mistake(text).startswith("cluster.yaml:") or parse(text, FILE)
