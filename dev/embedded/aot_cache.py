"""Java's ahead-of-time cache (JEP 483, 514): a server starts with its classes loaded and linked, in half the CPU.

``train`` runs each server once, from its start to its end: then Java writes the cache. ``Jvm`` uses it where it is
there (docs/embedded.md says what it saves). Java itself compares it with the jars, and starts without it where they
differ.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from dev.embedded.backends import running
from dev.embedded.jvm import Jvm
from dev.embedded.lock import ServerKind
from dev.embedded.locking import file_lock
from dev.embedded.progress import Progress

# Java ends when the cache is written: 10 s on an idle machine, several times as long beside a build.
_WRITING_SECONDS: Final = 180.0


def train(jvms: Mapping[ServerKind, Jvm], progress: Progress) -> list[ServerKind]:
    """Write the caches that are missing, and say of which servers. Raises ServerError where one does not start."""
    if not _list_missing(jvms):
        return []
    with file_lock(next(iter(jvms.values())).aot_cache.with_name("lock")):
        missing = _list_missing(jvms)
        for kind in missing:
            progress.note(f"writing Java's ahead-of-time cache for {kind}: once, for half a minute")
            _train(kind, jvms[kind])
        return missing


def _list_missing(jvms: Mapping[ServerKind, Jvm]) -> list[ServerKind]:
    return [kind for kind, jvm in jvms.items() if not jvm.aot_cache.exists()]


def _train(kind: ServerKind, jvm: Jvm) -> None:
    unfinished = jvm.aot_cache.with_suffix(".part")
    training = replace(jvm, flags=(*jvm.flags, f"-XX:AOTCacheOutput={unfinished}"))
    with running({kind: training}, (kind,)) as servers:
        for server in servers.servers:
            server.stop(_WRITING_SECONDS)
    # Where Java wrote none, servers start as they do without.
    if unfinished.exists():
        unfinished.replace(jvm.aot_cache)
