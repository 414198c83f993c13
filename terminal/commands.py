"""The commands of this package, each imported when it is called."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from process.command_line.lazy_commands import LazyCommand

QUESTIONS: Final[Mapping[str, LazyCommand]] = MappingProxyType(
    {
        "why": LazyCommand("Why a pod waits, or why it is where it is.", "terminal.why:why"),
        "list": LazyCommand("The pods that wait, or attempts that are searched for.", "terminal.lists:list_pods"),
        "history": LazyCommand("What schedulers decided about a pod, attempt by attempt.", "terminal.history:history"),
        "node": LazyCommand("A node's devices and who holds them, now or at a time.", "terminal.nodes:node"),
        "simulate": LazyCommand("Where a pod of a file would go.", "terminal.simulation:simulate"),
        "trends": LazyCommand("Counts over time, by reason, namespace, pool, …", "terminal.trends:trends"),
        "report": LazyCommand("The failures of a week, and what to do about them.", "terminal.report:report"),
        "watch": LazyCommand("A line for each decision about waiting pods, as it happens.", "terminal.watching:watch"),
        "explain": LazyCommand("The same of a scheduler's log, without any server.", "terminal.log_files:explain"),
    }
)
