"""Files that outlive the process: their folder, and how they are opened and replaced."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Final, Literal

from runtime.errors import SettingError

_FLAGS: Final = {"wb": os.O_TRUNC, "ab": os.O_APPEND}


def open_private(path: Path, mode: Literal["wb", "ab"]) -> IO[bytes]:
    """Open the file and create it with mode 0600. Raises ``OSError``, also if the name is a symbolic link."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | _FLAGS[mode], 0o600)
    return os.fdopen(handle, mode)


def replace_private(path: Path, content: bytes) -> None:
    """Replace the file at once, with mode 0600: who dies while writing leaves the file of before.

    Raises ``OSError``.
    """
    # rename() is atomic only within one file system, so the new file is written next to the old one.
    beside = path.with_name(path.name + ".new")
    with open_private(beside, "wb") as file:
        file.write(content)
        file.flush()
        # Without it a crash of the machine may leave an empty file under the final name.
        os.fsync(file.fileno())
    beside.replace(path)


def locate_state_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Return our folder in the user's state: ``$XDG_STATE_HOME/schedulerlog``, by default below ``~/.local/state``.

    Raises ``SettingError`` for a user without a home.
    """
    # The standard: a relative path is to be ignored.
    root = Path(environment.get("XDG_STATE_HOME", ""))
    try:
        return (root if root.is_absolute() else Path.home() / ".local" / "state") / "schedulerlog"
    except RuntimeError:
        raise SettingError("this user has no home folder: set XDG_STATE_HOME, or name the folder") from None
