"""The scheduler's version and flags: HAMi prints each flag in a line of its own when it starts."""

import re
from datetime import datetime
from typing import Final

from ingest.lines import klog
from ingest.readers.hami.memory import LoggedSettings
from schemas.events import SchedulerObserved, compute_settings_digest

IMPLEMENTATION: Final = "HAMi"
MAX_FLAGS: Final = 500
MAX_VALUE: Final = 1_000

_FLAG: Final = re.compile(rb'FLAG: --([A-Za-z0-9][\w.-]{0,100})="(.{0,4000})"', re.DOTALL)
_VERSION: Final = re.compile(rb"Version: (\S{1,100})")
_SECRET: Final = re.compile(r"passw|token|secret|credential", re.IGNORECASE)


def add_flag(settings: LoggedSettings, text: bytes, now: datetime) -> bool:
    """Add the flag of a line; False where it has none."""
    match = _FLAG.search(text)
    if not match:
        return False
    _begin(settings, now)
    name = match[1].decode()
    if len(settings.flags) < MAX_FLAGS and not _SECRET.search(name):
        settings.flags[name] = klog.unquote(match[2])[:MAX_VALUE]
    return True


def set_version(settings: LoggedSettings, text: bytes, now: datetime) -> bool:
    match = _VERSION.search(text)
    if not match:
        return False
    _begin(settings, now)
    settings.version = match[1].decode(errors="replace")
    return True


def _begin(settings: LoggedSettings, now: datetime) -> None:
    if settings.is_open:
        return
    # The scheduler has started again, perhaps with other settings.
    settings.flags, settings.version, settings.observed_at, settings.is_open = {}, "", now, True


def take_settings(settings: LoggedSettings, cluster: str, scheduler: str) -> SchedulerObserved | None:
    """Take the event about the settings that were read since the last call; None if there are none."""
    if not settings.is_open or settings.observed_at is None:
        return None
    settings.is_open = False
    settings.digest = compute_settings_digest(IMPLEMENTATION, settings.version, settings.flags)
    return SchedulerObserved(
        cluster=cluster,
        scheduler=scheduler,
        observed_at=settings.observed_at,
        implementation=IMPLEMENTATION,
        version=settings.version,
        settings=dict(settings.flags),
        settings_digest=settings.digest,
    )
