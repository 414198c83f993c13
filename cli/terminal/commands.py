"""The commands of this package, each imported when it is called."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from runtime.cli.lazy_commands import LazyCommand

QUESTIONS: Final[Mapping[str, LazyCommand]] = MappingProxyType(
    {
        "why": LazyCommand("Explain why a pod or workload waits, or why a pod is where it is.", "cli.terminal.why:why"),
        "list": LazyCommand("List pods that wait, or search attempts.", "cli.terminal.lists:list_pods"),
        "history": LazyCommand(
            "Show what schedulers decided about a pod, attempt by attempt.", "cli.terminal.history:history"
        ),
        "compare": LazyCommand("Compare the latest attempts of two pods.", "cli.terminal.comparison:compare"),
        "replay": LazyCommand(
            "Decide an attempt again as it was recorded, or a range of time under a change.",
            "cli.terminal.replay:replay",
        ),
        "recent": LazyCommand("List what happened in the last minutes.", "cli.terminal.recent:recent"),
        "nodes": LazyCommand("List the nodes with what is free of their devices.", "cli.terminal.nodes:nodes"),
        "node": LazyCommand("Show a node's devices and who holds them, now or at a time.", "cli.terminal.nodes:node"),
        "simulate": LazyCommand("Simulate where a pod from a file would go.", "cli.terminal.simulation:simulate"),
        "fits": LazyCommand("Count the pods of a shape that start now.", "cli.terminal.capacity:fits"),
        "drain": LazyCommand("Plan where the pods of a node would go.", "cli.terminal.plans:drain"),
        "defragment": LazyCommand(
            "Plan the fewest moves of pods so that a pod starts.", "cli.terminal.plans:defragment"
        ),
        "buy": LazyCommand("Plan nodes to add for the pods that wait.", "cli.terminal.plans:buy"),
        "trends": LazyCommand(
            "Count attempts over time, by obstacle, namespace, pool, …", "cli.terminal.trends:trends"
        ),
        "report": LazyCommand(
            "Report the failures of a week, and what to do about them.", "cli.terminal.report:report"
        ),
        "alerts": LazyCommand("List the alerts that fire.", "cli.terminal.alerts:alerts"),
        "watch": LazyCommand(
            "Print a line for each decision about waiting pods, as it happens.", "cli.terminal.watching:watch"
        ),
        "explain": LazyCommand(
            "Explain pods from a scheduler's log file; needs no server.", "cli.terminal.log_files:explain"
        ),
    }
)
