"""Files that a process writes for itself: readable only by its user, and never through a link of somebody else."""

import os
from pathlib import Path
from typing import IO, Final, Literal

_FLAGS: Final = {"wb": os.O_TRUNC, "ab": os.O_APPEND}


def open_private(path: Path, mode: Literal["wb", "ab"]) -> IO[bytes]:
    """Open the file and create it with mode 0600. Raises ``OSError``, also if the name is a symbolic link."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | _FLAGS[mode], 0o600)
    return os.fdopen(handle, mode)
