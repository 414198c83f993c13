"""Errors of this package, named for what the caller can do about them.

EmbeddedError
├── LockError             the lock file is damaged: restore it from the repository
├── DownloadError         a jar cannot be downloaded: check the network or name another repository
├── BuildError            the control plane cannot be built: read the log lines in the message
├── UnusableSettingError  an environment variable has a value that cannot be used: correct it
├── NotRunningError       an operation on a server or folder that has nothing running
└── ServerError           a server died or never got ready: read the log lines in the message
    └── PortTakenError    another process listens there: free the port, or start with other ports
"""

from pathlib import Path


class EmbeddedError(Exception):
    """Base of all errors of this package; the message names cause, place and next step."""


class LockError(EmbeddedError):
    """A line of the lock file cannot be read."""


class DownloadError(EmbeddedError):
    """A jar could not be downloaded, or its bytes are not those of the lock file."""


class BuildError(EmbeddedError):
    """A step of a build failed; carries the last lines of its log."""

    def __init__(self, what: str, log: Path, last_lines: list[str]) -> None:
        super().__init__(_with_log(what, log, last_lines))
        self.log = log
        self.last_lines = last_lines


class UnusableSettingError(EmbeddedError):
    """A setting has a value that cannot be used."""


class NotRunningError(EmbeddedError):
    """The server that this needs is not running."""


class ServerError(EmbeddedError):
    """A server died or did not become ready; carries the last lines of its log."""

    def __init__(self, what: str, log: Path, last_lines: list[str]) -> None:
        super().__init__(_with_log(what, log, last_lines))
        self.log = log
        self.last_lines = last_lines


class PortTakenError(ServerError):
    """Another process got the port before the server did."""


def _with_log(what: str, log: Path, last_lines: list[str]) -> str:
    tail = "\n".join(f"    {line}" for line in last_lines) or "    (the log is empty)"
    return f"{what}\n  Last lines of {log}:\n{tail}"
