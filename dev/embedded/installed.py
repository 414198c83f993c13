"""The servers as they are installed: their jars downloaded and verified, and Java's command line for each."""

import os
import shutil
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from dev.embedded.download import get_repository, install, locate_cache
from dev.embedded.jvm import Jvm, JvmSettings
from dev.embedded.lock import KINDS, Jar, ServerKind, list_jars, read_lock
from dev.embedded.progress import Progress


def install_jvms(
    settings: JvmSettings, progress: Progress | None = None, kinds: Sequence[ServerKind] = KINDS
) -> dict[ServerKind, Jvm]:
    """Install the jars of each server, verified, and return its Java virtual machine; raises DownloadError,
    LockError."""
    lock, cache = read_lock(), locate_cache(os.environ)
    install(list_jars(lock, kinds), cache, get_repository(os.environ), progress)
    heap = settings.opensearch_heap
    heaps: dict[ServerKind, str] = {"kafka": settings.kafka_heap, "opensearch": heap, "secured-opensearch": heap}
    aot = cache.with_name("aot")
    return {kind: Jvm(heaps[kind], settings.flags, _build_class_path(lock[kind], cache), aot) for kind in kinds}


def _build_class_path(locked: Sequence[Jar], cache: Path) -> tuple[Path, ...]:
    """Build the class path of the jars, and of the zips' jars that are not among them: a plugin repeats some of its
    server's."""
    files = [cache / jar.path for jar in locked]
    jars = [file for file in files if file.suffix == ".jar"]
    names = {file.name for file in jars}
    plugins = [_unpack(file, cache.with_name("plugins")) for file in files if file.suffix == ".zip"]
    return (*jars, *(jar for folder in plugins for jar in sorted(folder.glob("*.jar")) if jar.name not in names))


def _unpack(plugin: Path, folder: Path) -> Path:
    """Unpack a plugin and return the folder of its jars. It gets its name when it is complete, also if two processes
    unpack it at once."""
    target = folder / plugin.stem
    if target.is_dir():
        return target
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix=".part-", dir=folder))
    with zipfile.ZipFile(plugin) as archive:
        # The jars are on its top level; below it are files for people.
        jars = [name for name in archive.namelist() if name.endswith(".jar") and "/" not in name]
        archive.extractall(unfinished, jars)
    try:
        unfinished.rename(target)
    except OSError:  # another process was faster
        shutil.rmtree(unfinished)
    return target
