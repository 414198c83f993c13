"""``--save FILE``: what was read of a cluster, as an archive that ``explain`` reads, with names replaced."""

import io
import tarfile
from pathlib import Path
from typing import Final

import orjson

from cli.direct.pod_case import LiveCase
from engine.cases.anonymous_objects import replace_names
from ingest.cases.read_case import SAVED_CASE
from schemas.codec.records import format_rfc3339
from schemas.json_types import Json

_MEMBER: Final = "case/objects.json"


def save_case(live: LiveCase, file: Path) -> int:
    """Write the case into a new file, and return the number of objects in it. Raises ``OSError``."""
    attempts = [live.log.attempts.to_object()] if live.log and live.log.attempts else []
    objects = [*replace_names([*live.case.objects.iterate_objects(), *attempts]), _describe_reading(live)]
    content = orjson.dumps({"apiVersion": "v1", "kind": "List", "items": objects}, option=orjson.OPT_INDENT_2)
    member = tarfile.TarInfo(_MEMBER)
    member.size, member.mode = len(content), 0o600
    with file.open("xb") as output, tarfile.open(fileobj=output, mode="w:gz") as archive:
        archive.addfile(member, io.BytesIO(content))
    return len(objects) - 1


def _describe_reading(live: LiveCase) -> Json:
    """Describe when the cluster was read, and what could not be read of it."""
    kind, _, group = SAVED_CASE.partition(".")
    read_at = live.case.read_at
    metadata = {"name": "case", **({"creationTimestamp": format_rfc3339(read_at)} if read_at else {})}
    return {"apiVersion": f"{group}/v1", "kind": kind, "metadata": metadata, "unread": sorted(live.problems)}
