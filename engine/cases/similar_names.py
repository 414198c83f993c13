"""Names that are most similar to one that does not exist, also in other namespaces. Pure."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any, Final

from engine.snapshot.kinds import flatten
from runtime.kubernetes.object_fields import get_text

MAX_SIMILAR: Final = 5
_CUTOFF: Final = 0.5


def list_similar_names(objects: Iterable[Any], namespace: str, name: str) -> list[str]:
    """List the objects of the same name in other namespaces, then those with similar names in this one, then others.

    ``objects`` may be lists, as an API server gives them.
    """
    keys = (
        (get_text(entry, "metadata", "namespace"), get_text(entry, "metadata", "name")) for entry in flatten(objects)
    )
    return rank_similar_names(keys, namespace, name)


def rank_similar_names(pairs: Iterable[tuple[str, str]], namespace: str, name: str) -> list[str]:
    """Rank names, each with its namespace: equal ones elsewhere first, then similar ones here, then others."""
    keys = dict.fromkeys(pairs)
    same = [key for key in keys if key[1] == name and key[0] != namespace]
    near = _match(name, [key for key in keys if key[0] == namespace])
    far = _match(name, [key for key in keys if key[0] != namespace and key[1] != name])
    return [f"{space}/{entry}" for space, entry in dict.fromkeys([*same[:MAX_SIMILAR], *near, *far])][:MAX_SIMILAR]


def _match(name: str, keys: list[tuple[str, str]]) -> list[tuple[str, str]]:
    matches = get_close_matches(name, dict.fromkeys(entry for _, entry in keys), MAX_SIMILAR, _CUTOFF)
    return [key for entry in matches for key in keys if key[1] == entry]
