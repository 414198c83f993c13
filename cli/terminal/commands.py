"""The commands of this package, each imported when it is called."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from runtime.cli.lazy_commands import LazyCommand

QUESTIONS: Final[Mapping[str, LazyCommand]] = MappingProxyType(
    {
        "why": LazyCommand("Why a pod waits, or why it is where it is.", "cli.terminal.why:why"),
        "list": LazyCommand("The pods that wait, or attempts that are searched for.", "cli.terminal.lists:list_pods"),
        "history": LazyCommand(
            "What schedulers decided about a pod, attempt by attempt.", "cli.terminal.history:history"
        ),
        "node": LazyCommand("A node's devices and who holds them, now or at a time.", "cli.terminal.nodes:node"),
        "simulate": LazyCommand("Where a pod of a file would go.", "cli.terminal.simulation:simulate"),
        "trends": LazyCommand("Counts over time, by reason, namespace, pool, …", "cli.terminal.trends:trends"),
        "report": LazyCommand("The failures of a week, and what to do about them.", "cli.terminal.report:report"),
        "watch": LazyCommand(
            "A line for each decision about waiting pods, as it happens.", "cli.terminal.watching:watch"
        ),
        "explain": LazyCommand("The same of a scheduler's log, without any server.", "cli.terminal.log_files:explain"),
    }
)
