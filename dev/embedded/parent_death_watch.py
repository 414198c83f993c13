"""Runs a command that dies when its parent dies, even by SIGKILL.

Usage: ``python parent_death_watch.py DESCRIPTOR COMMAND...``. DESCRIPTOR is the read end of a pipe whose only write end
the parent holds; the kernel closes it when the parent ends, for whatever reason. This process forks a watcher that
waits for that and then kills the command. The process itself becomes the command (exec), so that the process that the
parent started *is* the server: same process id, same exit status.

Why not ``PR_SET_PDEATHSIG``: it fires when the starting *thread* ends, so a server started from a thread pool would die
with the pool; it exists on Linux only; and setting it needs code between fork and exec in a process with threads.

It imports the standard library only, because it is run as a file with ``python -I -S``, which takes about 20 ms.
"""

import contextlib
import os
import select
import signal
import sys


def watch(parent: int, command_end: int, command: int) -> None:
    """Kill the process ``command`` when the pipe ``parent`` ends; return when the command has ended by itself.

    Only the command holds the write end of the pipe ``command_end``. While that is open the process id is still the
    command's, so no other process that was given the same id later can be killed.
    """
    readable, _, _ = select.select([parent, command_end], [], [])
    if command_end not in readable:
        with contextlib.suppress(ProcessLookupError):
            os.kill(command, signal.SIGKILL)


def main(arguments: list[str]) -> None:
    parent, command = int(arguments[0]), arguments[1:]
    read_end, write_end = os.pipe()
    if os.fork() == 0:
        # The watch would otherwise keep open the very pipe whose end it waits for.
        os.close(write_end)
        # A Ctrl-C of the terminal reaches the foreground group: the watch must outlive it.
        os.setsid()
        watch(parent, read_end, os.getppid())
        os._exit(0)
    # Python closes descriptors on exec; this one has to last as long as the command.
    os.set_inheritable(write_end, True)
    # The process becomes the command, so that its id is the one that the starter knows.
    os.execv(command[0], command)  # noqa: S606 - becoming the server is the point


if __name__ == "__main__":
    main(sys.argv[1:])
