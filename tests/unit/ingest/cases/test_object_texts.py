"""Texts of objects as people copy them, and texts that only look like objects."""

import pytest

from ingest.cases.object_texts import has_objects, parse_objects
from ingest.errors import MistakeError

POD = b'{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}'


@pytest.mark.parametrize(
    "text",
    [
        POD,
        b"\xef\xbb\xbf" + POD,
        b"[" + POD + b"]",
        POD + b"\n" + POD,
        POD + b"\n---\n" + POD + b"\n---\n",
        b'{"apiVersion": "v1", "items": [' + POD + b'], "kind": "List"}',
        b"apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n",
        b"# a comment\n\n---\napiVersion: v1\nkind: Pod\n",
        b"kind: Pod\r\napiVersion: v1\r\n",
        b"- apiVersion: v1\n  kind: Pod\n",
        b"```yaml\napiVersion: v1\nkind: Pod\n```\n",
        b"\n```\napiVersion: v1\nkind: Pod\n```\n\nand\n\n```json\n" + POD + b"\n```\nWhy?\n",
        b"```\r\n" + POD + b"\r\n```\r\n",
    ],
)
def test_objects_are_recognised_and_parsed(text: bytes) -> None:
    assert has_objects(text)
    assert parse_objects("file", text)[0]["kind"] in ("Pod", "List")


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"I1126 10:00:00.000000       1 score.go:100] kind: Pod\n",
        b'{"log":"kind: Pod\\n","stream":"stderr","time":"2026-11-26T10:00:00Z"}\n',
        b'{"line":"x","timestamp":"1","fields":{}}\n{"line":"y"}\n',
        b"# Deploy\n\nText.\n\n```yaml\nkind: Pod\n```\n",
        b"# Proposal\n\n- [Background](#background)\n\n```yaml\nkind: Pod\n```\n",
    ],
)
def test_logs_and_documents_are_no_objects(text: bytes) -> None:
    assert not has_objects(text)


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (b"kind: Pod\nmetadata: {\n", "file:3: is not YAML"),
        (b'{"kind": "Pod",', "file: is not JSON"),
        (b"kind: 3\n", "file: no document is a Kubernetes object"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_place(text: bytes, cause: str) -> None:
    with pytest.raises(MistakeError, match=cause):
        parse_objects("file", text)


def test_half_of_a_surrogate_pair_is_what_go_reads() -> None:
    """Expected: what Go's ``json.Unmarshal`` makes of it."""
    [parsed] = parse_objects("file", POD.replace(b'"p"', rb'"a\ud800b\udc00\ud83d\ude00"'))
    assert parsed["metadata"]["name"] == "a\ufffdb\ufffd\U0001f600"


@pytest.mark.parametrize("value", [b"NaN", b"1e999", b"9" * 6000, b"[" * 3000 + b"]" * 3000, b"[" * 100_000])
def test_json_that_kubernetes_does_not_read_is_a_mistake(value: bytes) -> None:
    with pytest.raises(MistakeError, match="file: is not JSON: "):
        parse_objects("file", POD[:-1] + b', "x": ' + value + b"}")


def test_a_number_beyond_64_bits_is_a_float_also_in_several_objects() -> None:
    parsed = parse_objects("file", (POD[:-1] + b', "x": 1' + b"0" * 30 + b"}\n") * 2)
    assert [entry["x"] for entry in parsed] == [1e30, 1e30]
