"""Objects in YAML or JSON that stand between the sentences of a pasted text, and its lines without marks."""

import re
from collections.abc import Sequence
from itertools import groupby
from textwrap import dedent
from typing import Final

from ingest.cases.object_texts import has_objects, parse_objects
from ingest.cases.pasted_fragments import build_from_status
from ingest.cases.unnamed_pods import DEFAULT_NAME
from ingest.errors import MistakeError
from schemas.json_types import Json

FENCE: Final = re.compile(r"^\s*(?:```|~~~)")
PROMPT: Final = re.compile(
    r"^\s*(?:\S+@\S+[#$%>]|\[[^\]]+\][#$]|[\w.~/-]*[#$%])?\s*(?:k|kubectl|oc|microk8s kubectl)\s"
)
DESCRIBES: Final = re.compile(
    r"\b(?:describe|get)\s+(?:po|pods?)[ /]+(?:(?:-n|--namespace)[ =]\S+ +)?"
    r"(?!(?:of|for|in|on|and|to|from|with|shows?|says?|gives?|output|which|that|the|is|it|command|events?|appears?|reports?|prints?|has)\b(?!-))"
    r"(?P<name>[a-z0-9][\w.-]*)"
)
"""Command that prints one pod."""
_OBJECT_START: Final = re.compile(r"(?:- )?(?:apiVersion|kind): |(?:status|conditions|state):\s*$|[{\[]\s*$|\[\{\"")
_FIRST_FIELD: Final = re.compile(r"(?P<field>apiVersion|kind): ")
_LINK: Final = re.compile(r"\[([\w./-]+)\]\(https?://\1\)")
_LONG_WORD: Final = re.compile(r"([\w+/=.-]{512})[\w+/=.-]+")
"""Longer than a namespace with a name (317): base64, on which expressions would take time with the square of it."""
_QUOTE: Final = re.compile(r"^(?:> ?)+")
_BOX: Final = re.compile(r"^\s*\u2502 ?|\s*\u2502\s*$")
"""Frame of a terminal's window."""
_COMMENT: Final = re.compile(r"^# ?")
_ELISION: Final = re.compile(r"^\s*(?:- )?(?:\.{3,}|\u2026+)\s*$")
"""Line in the place of fields that the author left out."""
_PARTS: Final = ("metadata", "spec", "status")
_PROSE: Final = re.compile(r"(?![a-z][\w.-]*:(?:\s|$)|[\s{}\[\]\"#-]|$)")
"""Line at the margin that YAML or JSON of an object does not have."""


def clean_lines(content: str) -> list[str]:
    """Take the marks of Markdown, mail and terminals off the lines of a text."""
    content = _LONG_WORD.sub(r"\1", _strip_links(content.replace("\r\n", "\n").replace("\t", "    ")))
    lines = dedent("\n".join(_BOX.sub("", _QUOTE.sub("", line)) for line in content.split("\n"))).split("\n")
    return _strip_comment_marks(lines)


def _strip_links(text: str) -> str:
    """Strip the links that editors of Markdown make of names with a dot: `[nvidia.com/gpu](http://nvidia.com/gpu)`."""
    return _LINK.sub(r"\1", text)


def _strip_comment_marks(lines: Sequence[str]) -> list[str]:
    """Take the marks of comments off objects that stand behind them, where the text has no other object."""
    if any(_FIRST_FIELD.match(line) for line in lines):
        return list(lines)
    bare: list[str] = []
    for is_comment, run in groupby(lines, key=lambda line: line.startswith("#")):
        block = list(run)
        object_lines = [_COMMENT.sub("", line) for line in block] if is_comment else []
        bare += object_lines if _has_heads(object_lines) else block
    return bare


def _has_heads(block: Sequence[str]) -> bool:
    heads = {match["field"] for line in block if (match := _FIRST_FIELD.match(line))}
    return len(heads) == len(("apiVersion", "kind"))


def take_objects(lines: list[str]) -> list[Json]:
    """Take the objects that stand between fences, or behind the author's sentences; their lines become empty."""
    objects: list[Json] = []
    start = 0
    for position in range(len(lines) + 1):
        if position < len(lines) and not (FENCE.match(lines[position]) or PROMPT.match(lines[position])):
            continue
        written = ("" if _ELISION.match(line) else line for line in lines[start:position])
        block = dedent("\n".join(written)).split("\n")
        first = next((index for index, line in enumerate(block) if _OBJECT_START.match(line)), None)
        end = next((index for index in range(first or 0, len(block)) if _PROSE.match(block[index])), len(block))
        described = DESCRIBES.search(lines[start - 1]) if start else None
        name = described["name"] if described else DEFAULT_NAME
        parsed = _parse_objects(block[first:end], name) if first is not None else []
        if parsed and first is not None:
            objects += parsed
            lines[start + first : start + end] = [""] * (end - first)
        start = position + 1
    return objects


def _drop_wrong_types(entry: Json) -> Json:
    """Return the object with metadata, and without a spec or status of a wrong type, which counts as absent."""
    plain = {name: value for name, value in entry.items() if name not in _PARTS or isinstance(value, dict)}
    return {"metadata": {}, **plain}


def _parse_objects(lines: Sequence[str], name: str) -> list[Json]:
    """Parse lines of YAML or JSON; nothing where prose stands around an object, or a copy was cut.

    ``name``: that of the pod of which only the status stands there.
    """
    from runtime.files.yaml_lines import YamlError, parse_documents

    data = "\n".join(lines).encode()
    try:
        if has_objects(data):
            return [_drop_wrong_types(entry) for entry in parse_objects("the text", data)]
        documents = [document for _, document in parse_documents(data)]
    except (MistakeError, YamlError):
        return []
    return [built for document in documents if (built := build_from_status(document, name))]
