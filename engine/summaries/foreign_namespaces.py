"""Pods of foreign namespaces in an answer, by the set of these namespaces. Pure.

``named_pods`` recognises a reference by its form, for texts about one pod. Here the namespaces are known, so any path
with one of them is a reference, whatever surrounds it and whatever field it is in. JSON, CSV, HTML and YAML write these
names alike, so the bytes of a complete answer are searched, and a field that is added later is searched too.

The pipeline searches the texts that it sends to a namespace, as events and alerts: ``KnownNamespaces.hide_others``.
"""

import re
from collections.abc import Container, Iterable, Iterator
from typing import Final

from engine.summaries.named_pods import HIDDEN_POD, IDIOMS

MAX_NAMESPACES: Final = 60_000
"""Maximum number of namespaces, some megabytes of names."""

_SLASH: Final = re.compile(rb"/[a-z0-9]")
_NAME_BYTES: Final = 63
_ESCAPE_BYTES: Final = len("u000a")
_MAX_BACKSLASHES: Final = 100
_LETTERS: Final = b"abcdefghijklmnopqrstuvwxyz0123456789-"
_TO_LETTERS: Final = bytes(byte if byte in _LETTERS else ord(" ") for byte in range(256))
"""Translation table that leaves only the letters of namespaces."""
_PATH: Final = re.compile(rb"(?:/[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?)+")
_LOGGED: Final = re.compile(rb"[a-z0-9][a-z0-9.-]*_(?P<namespace>[a-z0-9][a-z0-9-]*)\(")
"""Pod as kubelets name it: NAME_NAMESPACE(UID)."""
_HIDDEN: Final = HIDDEN_POD.encode()
_PATH_WORDS: Final = frozenset(
    (
        "api", "apis", "attempts", "clusters", "count", "embed", "namespaces", "nodes", "pods", "registry", "ui",
        "workloads", "v1", "v1alpha1", "v1alpha2", "v1alpha3", "v1beta1", "v1beta2", "v1beta3", "v2", "v2alpha1",
        "v2alpha2", "v2beta1", "v2beta2",
    )
)  # fmt: skip
_DOMAINS: Final = frozenset(
    (
        "ai", "app", "aws", "cloud", "cn", "co", "com", "dev", "edu", "gov", "io", "internal", "local", "net", "org",
        "sh", "tech",
    )
)  # fmt: skip
"""Last labels of domains, which stand behind a full stop: nvidia.com/gpu."""


def hide_namespaces(answer: bytes, foreign: Container[str]) -> bytes:
    """Replace each reference to a pod of a foreign namespace by ``HIDDEN_POD``; return the same bytes if there is none.

    A namespace that is named like a word of a path, or behind a full stop like a domain's end, is not recognised: its
    owner could otherwise hide every path from all others.
    """
    parts, end = list[bytes](), 0
    for start, stop in sorted((*_find_paths(answer, foreign), *_find_logged(answer, foreign))):
        if start >= end:
            parts += [answer[end:start], _HIDDEN]
            end = stop
    return b"".join((*parts, answer[end:])) if parts else answer


def _find_paths(answer: bytes, foreign: Container[str]) -> Iterator[tuple[int, int]]:
    # By their slashes, of which answers have few: a search for names would try every letter.
    letters = answer.translate(_TO_LETTERS)
    for slash in _SLASH.finditer(answer):
        position = slash.start()
        first = max(0, position - _NAME_BYTES - _ESCAPE_BYTES)
        start = _skip_escape(answer, max(letters.rfind(b" ", first, position) + 1, first))
        name = letters[start:position].decode()
        is_domain = name in _DOMAINS and answer[max(0, start - 1) : start] == b"."
        if name not in foreign or name in _PATH_WORDS or is_domain or (path := _PATH.match(answer, position)) is None:
            continue
        reference = answer[start : path.end()].decode()
        # A count of devices: 3/8.
        if reference not in IDIOMS and not reference.replace("/", "", 1).isdigit():
            yield start, path.end()


def _skip_escape(answer: bytes, start: int) -> int:
    """Skip the letters for which JSON writes a control character: they stand right before the name."""
    before = answer[max(0, start - _MAX_BACKSLASHES) : start]
    if (len(before) - len(before.rstrip(b"\\"))) % 2 == 0:
        return start
    return start + (_ESCAPE_BYTES if answer[start : start + 1] == b"u" else 1)


def _find_logged(answer: bytes, foreign: Container[str]) -> Iterator[tuple[int, int]]:
    matches = (match for match in _LOGGED.finditer(answer) if match["namespace"].decode() in foreign)
    return ((match.start(), match.end("namespace")) for match in matches)


class KnownNamespaces:
    """Namespaces with a record, by name. They are never removed: texts name a namespace long after its end."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    @property
    def revision(self) -> int:
        """Number that changes with every new namespace."""
        return len(self.names)

    def add(self, names: Iterable[str]) -> None:
        if len(self.names) < MAX_NAMESPACES:
            self.names.update(filter(None, names))

    def hide_others(self, text: str, namespace: str) -> str:
        """Replace the pods of the other known namespaces in a text that leaves for a namespace."""
        if "/" not in text and "_" not in text:
            return text
        others = _OtherNames(self.names, namespace)
        return hide_namespaces(text.encode("utf-8", "surrogatepass"), others).decode("utf-8", "surrogatepass")


class _OtherNames:
    """Container of all names but one, without a copy of the names."""

    def __init__(self, names: Container[str], reader: str) -> None:
        self._names, self._reader = names, reader

    def __contains__(self, name: object) -> bool:
        return name != self._reader and name in self._names
