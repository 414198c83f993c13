"""A file system of a few MiB, which a test fills up. Root alone can mount one, and not in every container."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path


@cache
def can_mount() -> bool:
    with tempfile.TemporaryDirectory() as folder:
        if os.geteuid() or _mount(Path(folder), 1):
            return False
        subprocess.run(["umount", folder], check=True)
        return True


@contextmanager
def mounted(folder: Path, mebibytes: int) -> Iterator[Path]:
    """The folder, which is made, on a disk of its own within this context."""
    folder.mkdir()
    if _mount(folder, mebibytes):
        raise OSError(f"nothing can be mounted at {folder}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)
        folder.rmdir()


def _mount(folder: Path, mebibytes: int) -> int:
    command = ["mount", "-t", "tmpfs", "-o", f"size={mebibytes}m", "tmpfs", str(folder)]
    return subprocess.run(command, stderr=subprocess.DEVNULL).returncode


@contextmanager
def filled(folder: Path) -> Iterator[None]:
    """All that is free on the disk is taken within this context."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass
    try:
        yield
    finally:
        ballast.unlink()
