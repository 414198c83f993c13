"""Objects in YAML or JSON that stand between the sentences of a pasted text."""

import re
from collections.abc import Sequence
from typing import Any, Final

from engine.snapshot import kinds
from ingest.cases.object_texts import has_objects, parse_objects
from ingest.cases.unnamed_pods import DEFAULT_NAME
from ingest.errors import MistakeError
from schemas.json_types import Json

FENCE: Final = re.compile(r"^\s*(?:```|~~~)")
PROMPT: Final = re.compile(
    r"^\s*(?:\S+@\S+[#$%>]|\[[^\]]+\][#$]|[\w.~/-]*[#$%])?\s*(?:k|kubectl|oc|microk8s kubectl)\s"
)
_OBJECT_START: Final = re.compile(r"(?:- )?(?:apiVersion|kind): |status:\s*$|[{\[]\s*$")


def take_objects(lines: list[str]) -> list[Json]:
    """Take the objects that stand between fences, or behind the author's sentences; their lines become empty."""
    objects: list[Json] = []
    start = 0
    for position in range(len(lines) + 1):
        if position < len(lines) and not (FENCE.match(lines[position]) or PROMPT.match(lines[position])):
            continue
        first = next((index for index in range(start, position) if _OBJECT_START.match(lines[index])), None)
        parsed = _parse_objects(lines[first:position]) if first is not None else []
        if parsed and first is not None:
            objects += parsed
            lines[first:position] = [""] * (position - first)
        start = position + 1
    return objects


def _parse_objects(lines: Sequence[str]) -> list[Json]:
    """Parse lines of YAML or JSON; nothing where prose stands around an object, or a copy was cut."""
    from runtime.files.yaml_lines import YamlError, parse_documents

    data = "\n".join(lines).encode()
    try:
        if has_objects(data):
            return list(parse_objects("the text", data))
        documents = [document for _, document in parse_documents(data)]
    except (MistakeError, YamlError):
        return []
    return [built for document in documents if (built := _build_from_status(document))]


def _build_from_status(document: Any) -> Json | None:
    """Build the pod of which only the status was pasted."""
    status = document.get("status") if isinstance(document, dict) else None
    if not isinstance(status, dict) or not isinstance(status.get("phase"), str):
        return None
    metadata = {"namespace": "default", "name": DEFAULT_NAME}
    return {"apiVersion": "v1", "kind": kinds.POD, "metadata": metadata, "spec": {}, "status": status}
