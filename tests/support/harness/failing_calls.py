"""System calls of the spool and the journal of binds that fail: the k-th of a run, or several from there on.

``scheduler.publish.spool.files`` makes all of them, and every function of ``os`` and ``fcntl`` that it calls is
replaced: a call that is added to it fails like the others.
"""

import errno
import fcntl
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest

from scheduler.publish.spool import files, frames

TO_THE_END: Final = 10**9
_PURE: Final = {"strerror"}
_MOVES_BYTES: Final = {"pread", "pwritev", "pwrite", "write"}
_pwrite: Final = os.pwrite

Failure = Callable[[str, Callable[..., Any], Any, Any], Any]
"""Function of a call's name, the call, and its arguments: what happens instead."""


def _build_raising(error: Callable[[], BaseException]) -> Failure:
    def fail(name: str, call: Callable[..., Any], words: Any, named: Any) -> Any:
        # Where Linux reports that a descriptor could not be closed, it is closed.
        if name == "close":
            call(*words, **named)
        raise error()

    return fail


def _do_and_report_as_failed(name: str, call: Callable[..., Any], words: Any, named: Any) -> Any:
    # What it has opened nobody would close.
    if name not in ("open", "dup"):
        call(*words, **named)
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def _cut_short(name: str, call: Callable[..., Any], words: Any, named: Any) -> Any:
    """Move half of the bytes, which is no error."""
    if name not in _MOVES_BYTES:
        return call(*words, **named)
    file, what, *offset = words
    if name == "pread":
        return call(file, (what + 1) // 2, *offset)
    content = b"".join(what) if name == "pwritev" else what
    return (_pwrite if offset else call)(file, content[: (len(content) + 1) // 2], *offset)


def _build_error(number: int) -> Failure:
    return _build_raising(lambda: OSError(number, os.strerror(number)))


FAILURES: Final[dict[str, Failure]] = {
    **{
        errno.errorcode[number]: _build_error(number)
        for number in (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO, errno.ENOSPC)
    },
    "MemoryError": _build_raising(MemoryError),
    "done, reported as failed": _do_and_report_as_failed,
    "cut short": _cut_short,
}
"""By name."""


class Faults:
    """Fails the calls from ``first`` on, ``count`` of them."""

    def __init__(self, failure: str, first: int = TO_THE_END, count: int = 0) -> None:
        self._failure, self._first, self._count = FAILURES[failure], first, count
        self._has_memory = failure != "MemoryError"
        self.seen = Counter[str]()
        """The calls by name, failed or not."""

    def wrap(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def fail(*words: Any, **named: Any) -> Any:
            self.seen[name] += 1
            if self._first <= self.seen.total() < self._first + self._count:
                return self._failure(name, call, words, named)
            return call(*words, **named)

        return fail

    @contextmanager
    def injected(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            for module in (os, fcntl):
                patch.setattr(files, module.__name__, _FailingModule(module, self))
            if not self._has_memory:
                # What takes memory without a system call.
                for name in ("encode_frames", "scan"):
                    patch.setattr(frames, name, self.wrap(name, getattr(frames, name)))
            yield


def without_syncs(patch: pytest.MonkeyPatch) -> None:
    """Leave syncs out, which take a hundredth of a second each: no test outlives its machine."""
    for name in ("fsync", "fdatasync"):
        patch.setattr(os, name, lambda _: None)


class _FailingModule:
    def __init__(self, module: Any, faults: Faults) -> None:
        self._module, self._faults = module, faults

    def __getattr__(self, name: str) -> Any:
        original = getattr(self._module, name)
        # Calls alone are in lower case, and exceptions are in neither module.
        return self._faults.wrap(name, original) if callable(original) and name not in _PURE else original
