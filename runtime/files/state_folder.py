"""Folder for files that outlive the process, unless a setting names another folder."""

import os
from collections.abc import Mapping
from pathlib import Path

from runtime.errors import SettingError


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
