"""Run a command that dies when whoever started it dies, even by SIGKILL: ``python leash.py DESCRIPTOR COMMAND...``.

DESCRIPTOR is the read end of a pipe whose only write end the starter holds; the kernel closes it when the starter is
gone, however it went. This process forks a watcher that waits for that and then kills the command, and itself becomes
the command (exec), so that the process that was started *is* the server: same process id, same exit status.

Why not ``PR_SET_PDEATHSIG``: it fires when the starting *thread* ends, so a server started from a thread pool would die
with the pool; it is Linux only; and setting it needs code between fork and exec in a process with threads.

Standard library only, nothing of ours: it is run as a file with ``python -I -S``, which takes about 20 ms.
"""

import contextlib
import os
import select
import signal
import sys


def watch(starter: int, command_end: int, command: int) -> None:
    """Kill ``command`` when the starter's pipe ends; return when the command has ended by itself.

    ``command_end`` is a pipe whose write end only the command holds, so a process id that the system has given to
    somebody else in the meantime is never killed.
    """
    readable, _, _ = select.select([starter, command_end], [], [])
    if command_end not in readable:
        with contextlib.suppress(ProcessLookupError):
            os.kill(command, signal.SIGKILL)


def main(arguments: list[str]) -> None:
    starter, command = int(arguments[0]), arguments[1:]
    read_end, write_end = os.pipe()
    if os.fork() == 0:
        os.close(write_end)
        os.setsid()
        watch(starter, read_end, os.getppid())
        os._exit(0)
    os.set_inheritable(write_end, True)
    os.execv(command[0], command)  # noqa: S606 - becoming the server is the point


if __name__ == "__main__":
    main(sys.argv[1:])
