"""``python -m demo``: start everything, play the scenarios, show the answers, stay up until Ctrl-C."""

import shutil
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

import embedded
from demo import scenarios, show
from demo.cluster_file import ClusterFile
from demo.kube_scheduler import KubeScheduler
from demo.processes import Processes, ServiceError, free_port
from demo.reader import Reader, schedulerlog_path

FOLDER = Path(".run/demo")


@contextmanager
def everything(console: Console) -> Iterator[tuple[scenarios.Stage, Processes, dict[str, str]]]:
    """Kafka, OpenSearch and the three services, as processes of their own; all of them end with this context."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    cluster = ClusterFile(scenarios.EXAMPLES / "cluster.yaml", FOLDER / "cluster.yaml")
    console.print("Starting Kafka and OpenSearch ...")
    with embedded.backends(FOLDER / "backends") as backends:
        environment = {
            "SCHEDULERLOG_KAFKA_BOOTSTRAP_SERVERS": backends.bootstrap_servers,
            "SCHEDULERLOG_OPENSEARCH_URL": backends.opensearch_url,
        }
        with Processes(FOLDER / "logs", environment) as processes:
            console.print("Starting the scheduler, a pipeline worker and the API ...")
            ports = {name: str(free_port()) for name in ("scheduler", "worker", "api")}
            urls = {name: f"http://127.0.0.1:{port}" for name, port in ports.items()}
            processes.run("provision", "pipeline", "provision")
            start_scheduler(processes, cluster, ports["scheduler"])
            processes.start("worker", "pipeline", "worker", "--metrics-port", ports["worker"])
            processes.start("api", "api", "serve", "--port", ports["api"])
            for name, url in urls.items():
                processes.wait_ready(name, f"{url}/readyz")
            reader = Reader(urls["api"], backends.bootstrap_servers)
            kube_scheduler = KubeScheduler(urls["scheduler"])
            stage = scenarios.Stage(kube_scheduler, cluster, reader, urls["scheduler"] + "/metrics")
            addresses = {"kafka": backends.bootstrap_servers, "opensearch": backends.opensearch_url}
            yield stage, processes, urls | addresses


def start_scheduler(processes: Processes, cluster: ClusterFile, port: str) -> None:
    spool = str(FOLDER / "spool")
    processes.start("scheduler", "scheduler", "serve", "--cluster", str(cluster.path), "--port", port, "--spool", spool)


def play(console: Console, stage: scenarios.Stage) -> bool:
    """Show every answer; True when all were the expected ones."""
    right = True
    for answer in scenarios.play(stage):
        show.show_answer(console, answer)
        right &= answer.is_right
    console.rule("[bold]Event messages[/]: what kubectl describe would show")
    for answer in scenarios.messages(stage):
        show.show_messages(console, answer)
        right &= answer.is_right
    answer = scenarios.search(stage)
    show.show_answer(console, answer)
    return right & answer.is_right


def invite(console: Console, urls: dict[str, str]) -> None:
    pod = "default/gpu-pod-default"
    console.rule("[bold]Everything stays up until Ctrl-C[/]")
    console.print(f"scheduler   {urls['scheduler']}\nAPI         {urls['api']}\nKafka       {urls['kafka']}")
    console.print(f"OpenSearch  {urls['opensearch']}\n")
    console.print("Try:")
    for path in (schedulerlog_path(pod), schedulerlog_path("llm/finetune") + "/history"):
        console.print(f"  curl {urls['api']}{path}", soft_wrap=True, highlight=False)
    console.print(
        f"  curl '{urls['api']}/api/v1/schedulerlogs?status=failed&since=1h'", soft_wrap=True, highlight=False
    )
    console.print(f"Edit {FOLDER / 'cluster.yaml'}: the scheduler follows it. Logs are in {FOLDER / 'logs'}.")


def main(once: Annotated[bool, typer.Option("--once", help="Check the answers, then end.")] = False) -> None:
    """Run the five scenarios of examples/ end to end and compare the answers with docs/demo.md."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    console = Console()
    try:
        with everything(console) as (stage, processes, urls):
            right = play(console, stage)
            if not once:
                invite(console, urls)
                while True:
                    processes.check()
                    time.sleep(1)
    except KeyboardInterrupt:
        console.print("Stopped.")
        raise SystemExit(0) from None
    except (ServiceError, TimeoutError) as error:
        console.print(f"[bold red]{error}[/]", highlight=False)
        raise SystemExit(1) from None
    console.print("[bold green]Every answer is the expected one.[/]" if right else "[bold red]Some answers differ.[/]")
    raise SystemExit(0 if right else 1)


if __name__ == "__main__":
    typer.run(main)
