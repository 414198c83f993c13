"""Texts of Kubernetes objects: output of ``kubectl get -o yaml`` or ``-o json``, manifests, files of must-gather."""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

import orjson

from ingest.errors import MistakeError
from schemas.json_types import Json

HEAD_BYTES: Final = 64 * 1024
"""Number of first bytes that tell whether a text holds objects."""
_BOM: Final = b"\xef\xbb\xbf"
_YAML: Final = re.compile(rb"^(?:- )?(?:apiVersion|kind):[ \t]*[\"']?[A-Za-z]", re.MULTILINE)
"""Fields that stand at the margin of every object in YAML. No line of a log begins with them."""
_YAML_START: Final = re.compile(rb"\A(?:[ \t]*(?:#[^\n]*)?\r?\n)*(?:---|%YAML|- |[A-Za-z][\w.-]*:(?:[ \t\r\n]|\Z))")
"""The first line of YAML that is no comment."""
_FENCED: Final = re.compile(rb"^```[^\n]*\n(.*?)(?:^```[ \t]*\r?$|\Z)", re.MULTILINE | re.DOTALL)
_JSON: Final = re.compile(rb"\A\s*[\[{]")
_BETWEEN: Final = re.compile(r"\s*(?:---\s*)*")
_JSON_KIND: Final = re.compile(rb'"(?:apiVersion|kind)"\s*:\s*"')
_JSON_EVENT: Final = re.compile(rb'"(?:involvedObject|regarding)"\s*:\s*\{')
"""Field of an event, also inside of what an exporter or a store of logs puts around it."""
_WRAPPED_AT: Final = ("timestamp", "@timestamp", "time")
"""Fields in which programs write the time of a line."""
_MAX_DEPTH: Final = 4
"""Levels of such wrappings."""
_JSON_FIELD: Final = re.compile(rb'\A\s*\[?\s*\{\s*(?:"(?:apiVersion|items|kind|metadata)")')
"""First field of an object as kubectl writes it; JSON lines of logs begin with others."""


def has_objects(head: bytes) -> bool:
    """Tell from its first bytes whether a text holds Kubernetes objects."""
    head = _strip_fences(head.removeprefix(_BOM))
    if _JSON.match(head):
        is_listed = _JSON_FIELD.match(head) and _JSON_KIND.search(head)
        return bool(is_listed or _JSON_EVENT.search(head)) or _is_one_object(head)
    # A fence at the margin is that of a document, such as a proposal that shows objects between logs.
    return bool(_YAML_START.match(head) and _YAML.search(head) and not _FENCED.search(head))


def _strip_fences(text: bytes) -> bytes:
    """Return the blocks of a text that begins with a fence of Markdown, as pasted into an issue; else the text.

    Where one of the blocks holds no object, such as events, it is left as it is.
    """
    blocks = [block[1] for block in _FENCED.finditer(text)] if text.lstrip().startswith(b"```") else []
    has_others = len(blocks) > 1 and not all(_YAML.search(block) or _JSON.match(block) for block in blocks)
    return text if has_others or not blocks else b"---\n".join(blocks)


def _is_one_object(text: bytes) -> bool:
    try:
        document = orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return isinstance(document, dict) and isinstance(document.get("kind"), str)


def parse_objects(name: str, text: bytes) -> list[Json]:
    """Parse the objects of a text. Raises ``MistakeError`` with the place of what can't be read."""
    # Imported late: what reads a log alone would wait for it.
    from runtime.files.yaml_lines import YamlError

    text = _strip_fences(text.removeprefix(_BOM))
    try:
        values = list(_parse_json(text) if _JSON.match(text) else _parse_yaml(text))
    except YamlError as error:
        raise MistakeError(f"{name}:{error.line}: {error.problem}") from None
    except ValueError as error:
        raise MistakeError(f"{name}: is not JSON: {error}") from None
    objects = [entry for value in values for entry in _list_objects(value)]
    if not objects:
        raise MistakeError(f"{name}: no document is a Kubernetes object (apiVersion, kind, metadata)")
    return objects


def _list_objects(value: Any) -> list[Json]:
    """List the object, or the event that a program wrapped."""
    if isinstance(value, dict) and isinstance(value.get("kind"), str):
        return [value]
    event = _unwrap_event(value)
    return [event] if event else []


def _unwrap_event(value: Any, written_at: str = "", depth: int = _MAX_DEPTH) -> Json | None:
    """Unwrap an event that stands in a line of a log or of an exporter, with its kind; None for anything else.

    ``written_at``: the time of what wraps it, for an event without one.
    """
    if not isinstance(value, dict) or not depth:
        return None
    written_at = next((value[name] for name in _WRAPPED_AT if isinstance(value.get(name), str)), written_at)
    involved = value.get("involvedObject", value.get("regarding"))
    words = value.get("message", value.get("note"))
    if isinstance(involved, dict) and involved.get("name") and isinstance(words, str) and value.get("reason"):
        event = {"apiVersion": "v1", "kind": "Event"} | value | {"involvedObject": involved, "message": words}
        is_dated = any(value.get(name) for name in ("lastTimestamp", "eventTime", "firstTimestamp"))
        return event if is_dated or not written_at else event | {"lastTimestamp": written_at}
    inner = (_unwrap_event(entry, written_at, depth - 1) for entry in value.values())
    return next((event for event in inner if event), None)


def _parse_json(text: bytes) -> Iterator[Any]:
    """Parse one document, or several that follow each other."""
    try:
        document = orjson.loads(text)
    except orjson.JSONDecodeError:
        yield from _parse_several(text.decode("utf-8", "replace"))
        return
    yield from document if isinstance(document, list) else [document]


def _parse_several(text: str) -> Iterator[Any]:
    decoder, position = json.JSONDecoder(parse_int=_parse_int), 0
    while position < len(text):
        try:
            document, position = decoder.raw_decode(text, position)
        except RecursionError:
            raise ValueError("it is nested too deeply") from None
        yield orjson.loads(_replace_halves(json.dumps(document, ensure_ascii=False, allow_nan=False)))
        # JSON is YAML too, whose mark may stand between the documents.
        if between := _BETWEEN.match(text, position):
            position = between.end()


def _parse_int(digits: str) -> int | float:
    """Parse a number, a float beyond 64 bits as orjson does; Python's time grows with the square of the digits."""
    return int(digits) if len(digits) < 64 else float(digits)


def _replace_halves(text: str) -> str:
    """Replace halves of surrogate pairs, which UTF-8 has no bytes for, by U+FFFD, as Go's ``encoding/json`` does."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _parse_yaml(text: bytes) -> Iterator[Any]:
    from runtime.files.yaml_lines import parse_documents

    for _, document in parse_documents(text):
        yield from document if isinstance(document, list) else [document]
