"""Texts that people give in the place of a log or objects, and what to give instead. Pure."""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

_OBJECTS: Final = "`kubectl get pods,nodes,events -A -o yaml > objects.yaml`"


class _ForeignText(NamedTuple):
    """A kind of text, recognised by its first lines."""

    pattern: re.Pattern[bytes]
    advice: str


_FOREIGN_TEXTS: Final = (
    _ForeignText(re.compile(rb"\APK\x03\x04"), "It is a zip archive: unpack it and name the folder"),
    _ForeignText(
        re.compile(rb"\A(?:\x89PNG|\xff\xd8\xff|GIF8|RIFF....WEBP)", re.DOTALL),
        "It is a picture: copy the text itself into a file",
    ),
    _ForeignText(re.compile(rb"\A%PDF-"), "It is a PDF: copy the text itself into a file"),
    _ForeignText(re.compile(rb"\A\s*<(?:!DOCTYPE html|html)\b", re.IGNORECASE), "It is a web page: save the raw text"),
    _ForeignText(
        re.compile(rb"^(?:NAMESPACE +)?NAME +READY +STATUS +RESTARTS", re.MULTILINE),
        f"It is the table of `kubectl get pods`, which has no reasons: give the objects, {_OBJECTS}",
    ),
    _ForeignText(
        re.compile(rb"^NAME +STATUS +ROLES +AGE", re.MULTILINE),
        f"It is the table of `kubectl get nodes`, which has no amounts: give the objects, {_OBJECTS}",
    ),
    _ForeignText(
        re.compile(rb"NVIDIA-SMI|\bnpu-smi\b"),
        f"It shows what devices use, and schedulers count what pods have requested: give the objects, {_OBJECTS}",
    ),
)
_SCHEDULERS_LOG: Final = "Is it the log of the container vgpu-scheduler-extender, or of KAI's scheduler?"


def write_advice(lines: Iterable[bytes]) -> str:
    """Write what to give in the place of a text without a scheduler's line, by its first lines."""
    head = b"\n".join(lines)
    advice = (f"{text.advice}." for text in _FOREIGN_TEXTS if text.pattern.search(head))
    return next(advice, _SCHEDULERS_LOG)
