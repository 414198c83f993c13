"""``schedulerlog scheduler serve`` answers kube-scheduler; ``schedulerlog scheduler simulate`` answers a person."""

from runtime.cli.lazy_commands import LazyCommand, create_lazy_application

COMMANDS = {
    "serve": LazyCommand("Answer kube-scheduler's calls, until SIGTERM.", "scheduler.serve_command:app"),
    "simulate": LazyCommand(
        "Print the schedulerlog that a pod would get on a cluster.", "scheduler.simulate_command:simulate"
    ),
}

app = create_lazy_application(
    "A kube-scheduler extender that decides as HAMi does and publishes every verdict.", COMMANDS
)

if __name__ == "__main__":
    app()
