"""``python -m scheduler serve`` answers kube-scheduler; ``python -m scheduler simulate`` answers a person."""

import asyncio
import logging
import os
from pathlib import Path
from typing import Annotated

import typer

from kube.errors import KubeConfigError
from kube.resources import Key
from process.cli import application, one_line_for
from scheduler import device_config, settings
from scheduler.bind.binder import LockPolicy
from scheduler.cluster import manifests
from scheduler.cluster.kubernetes.connect import LEASE_NAME, ApiServerOptions, lease_namespace
from scheduler.cluster.manifests import ManifestError
from scheduler.device_config import DeviceConfigError
from scheduler.judge.decision import SchedulingPolicy
from scheduler.node_check_task import CheckPolicy
from scheduler.publish.spool.spool import SpoolLimits, now_utc
from scheduler.serve import serve as run
from scheduler.settings import KAFKA_VARIABLE, SettingError, Settings
from scheduler.simulate import schedulerlog
from scheduler.simulate import simulate as simulated

NODE_POLICIES = ("binpack", "spread")

app = application("A kube-scheduler extender that decides as HAMi does and publishes every verdict.")
MISTAKES = (SettingError, ManifestError, KubeConfigError, DeviceConfigError)

Cluster = Annotated[Path, typer.Option(help="Nodes and pods as Kubernetes objects in YAML; followed while it runs.")]
DeviceConfig = Annotated[
    Path,
    typer.Option(
        "--device-config-file",
        help="The table of vendors: HAMi's file, or its ConfigMap, in YAML.",
        show_default="scheduler/device-config.yaml",
    ),
]
Name = Annotated[str, typer.Option(help="This scheduler's name, as in the pods' spec.schedulerName.")]
NodePolicy = Annotated[str, typer.Option(help="Which node is best: binpack (fullest) or spread (emptiest).")]
DevicePolicy = Annotated[str, typer.Option(help="Which card is tried first: spread, binpack, mutex, topology-aware, …")]

Verbosity = Annotated[
    str | None,
    typer.Option(
        "--v",
        "-v",
        metavar="0|2|4|5",
        help="Print HAMi's log lines: 0 events, 2 scores too, 4 every node, 5 every device. Without it none.",
    ),
]
WholeNodes = Annotated[
    str,
    typer.Option(
        help="Filter calls with whole nodes (nodeCacheCapable: false). place: as any other. "
        "simulate: on empty cards, without a trace, as HAMi does."
    ),
]
CertFile = Annotated[
    Path | None,
    typer.Option(
        "--cert-file", "--cert_file", help="The certificate for HTTPS, in PEM form; followed when it changes."
    ),
]
KeyFile = Annotated[Path | None, typer.Option("--key-file", "--key_file", help="Its private key.")]


@app.command()
def serve(
    cluster: Annotated[
        Path | None, typer.Option(help="Nodes and pods as Kubernetes objects in YAML; followed while it runs.")
    ] = None,
    kubeconfig: Annotated[
        Path | None, typer.Option(help="The API server to follow; default: that of the pod we run in.")
    ] = None,
    context: Annotated[str | None, typer.Option(help="Of the kubeconfig; default: its current one.")] = None,
    kube_qps: Annotated[float, typer.Option(help="Requests a second to the API server; 0: no limit.", min=0)] = 0,
    kube_burst: Annotated[int, typer.Option(help="With --kube-qps: so many at once after a pause.", min=1)] = 10,
    kube_timeout: Annotated[str, typer.Option(help="What one request to the API server may take.")] = "10s",
    node_label_selector: Annotated[str, typer.Option(help="Use only nodes with these labels: k=v[,k=v…].")] = "",
    leader_elect: Annotated[bool, typer.Option(help="Answer only while a Lease is ours; where several run.")] = True,
    leader_elect_with_kube_scheduler: Annotated[
        bool,
        typer.Option(
            "--leader-elect-with-kube-scheduler",
            help="The Lease is that of kube-scheduler in our own pod ($POD_NAME): lead while it does.",
        ),
    ] = False,
    leader_elect_lease_duration: Annotated[str, typer.Option(help="Unrenewed, others take the Lease.")] = "15s",
    leader_elect_renew_deadline: Annotated[str, typer.Option(help="Unrenewed, we stop answering.")] = "10s",
    leader_elect_retry_period: Annotated[str, typer.Option(help="Between two tries to take or renew it.")] = "2s",
    leader_elect_resource_name: Annotated[str, typer.Option(help="The Lease's name.")] = LEASE_NAME,
    leader_elect_resource_namespace: Annotated[
        str | None, typer.Option(help="Its namespace; default: $POD_NAMESPACE, the pod's own, or kube-system.")
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port to listen on; 0 takes a free one.", min=0, max=65535)] = 8080,
    name: Name = "hami-scheduler",
    spool: Annotated[Path, typer.Option(help="The folder for decisions that Kafka does not have yet.")] = Path(
        ".run/spool"
    ),
    spool_max_bytes: Annotated[int, typer.Option(help="The most that folder may take.")] = 4 * 1024**3,
    spool_sync: Annotated[
        str, typer.Option(help="always: an answer waits for the disk. interval: the disk follows twice a second.")
    ] = "always",
    kafka: Annotated[str | None, typer.Option(help=f"HOST:PORT[,HOST:PORT…]; default: ${KAFKA_VARIABLE}.")] = None,
    publish: Annotated[bool, typer.Option(help="Send decisions to Kafka, or leave them in the spool.")] = True,
    node_policy: NodePolicy = "binpack",
    device_policy: DevicePolicy = "spread",
    device_config_file: DeviceConfig = device_config.SHIPPED,
    node_lock_timeout: Annotated[str, typer.Option(help="An older node lock is taken over.")] = "5m",
    max_body_bytes: Annotated[int, typer.Option(help="Longer requests are refused (413).")] = 32 * 1024**2,
    whole_nodes: WholeNodes = "place",
    force_overwrite_default_scheduler: Annotated[
        bool, typer.Option(help="The webhook takes over pods with devices that name the default scheduler.")
    ] = True,
    handshake_timeout: Annotated[
        str, typer.Option(help="An older hami.io/node-handshake becomes a node event and a metric; 0s: none does.")
    ] = "300s",
    v: Verbosity = None,
    profiling: Annotated[bool, typer.Option(help="Serve CPU and memory profiles under /debug/pprof/.")] = False,
    profiling_address: Annotated[
        str, typer.Option(help="Where: profiles show the program's insides to whoever can reach it.")
    ] = "127.0.0.1:6060",
    cert_file: CertFile = None,
    key_file: KeyFile = None,
    insecure_http: Annotated[bool, typer.Option("--insecure-http", help="Plain HTTP in place of HTTPS.")] = False,
) -> None:
    """Answer POST /filter, POST /bind and POST /webhook; GET /healthz, /readyz and /metrics too."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    # The producer's own complaints about a broker that is away would fill the log; `publish` says it once.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    with one_line_for(*MISTAKES):
        chosen = Settings(
            cluster=settings.cluster(
                cluster,
                ApiServerOptions(
                    kubeconfig,
                    context,
                    kube_qps,
                    kube_burst,
                    settings.duration("--kube-timeout", kube_timeout).total_seconds(),
                    node_label_selector,
                    Key(leader_elect_resource_namespace or lease_namespace(), leader_elect_resource_name)
                    if leader_elect
                    else None,
                    settings.lease_terms(
                        settings.duration("--leader-elect-lease-duration", leader_elect_lease_duration),
                        settings.duration("--leader-elect-renew-deadline", leader_elect_renew_deadline),
                        settings.duration("--leader-elect-retry-period", leader_elect_retry_period),
                    ),
                    leader_elect_with_kube_scheduler,
                ),
            ),
            name=name,
            host=host,
            port=port,
            spool=spool,
            kafka=settings.bootstrap_servers(kafka or os.environ.get(KAFKA_VARIABLE), publishes=publish),
            policy=_policy(node_policy, device_policy),
            vendors=device_config.read(device_config_file),
            limits=SpoolLimits(
                max_bytes=settings.positive("--spool-max-bytes", spool_max_bytes),
                sync=settings.word("--spool-sync", spool_sync, ("always", "interval")),
            ),
            lock=LockPolicy(settings.duration("--node-lock-timeout", node_lock_timeout)),
            checks=CheckPolicy(settings.duration("--handshake-timeout", handshake_timeout)),
            profiling=settings.address("--profiling-address", profiling_address) if profiling else None,
            verbosity=settings.verbosity(v),
            overwrites_default_scheduler=force_overwrite_default_scheduler,
            simulates_whole_nodes=settings.word("--whole-nodes", whole_nodes, ("place", "simulate")) == "simulate",
            certificate=settings.certificate(cert_file, key_file, insecure_http=insecure_http),
            max_body_bytes=settings.positive("--max-body-bytes", max_body_bytes),
        )
        asyncio.run(run(chosen))


@app.command()
def simulate(
    cluster: Cluster,
    pod: Annotated[Path, typer.Option(help="One Pod in YAML.")],
    name: Name = "hami-scheduler",
    node_policy: NodePolicy = "binpack",
    device_policy: DevicePolicy = "spread",
    device_config_file: DeviceConfig = device_config.SHIPPED,
    detail: Annotated[bool, typer.Option("--detail", help="All that is known, beside the proposal's fields.")] = False,
) -> None:
    """Print the schedulerlog that the pod would get on this cluster. Nothing is started, nothing is written."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s: %(message)s")
    with one_line_for(*MISTAKES):
        manifest, asked = manifests.read(cluster), manifests.read_pod(pod)
        vendors = device_config.read(device_config_file)
        told = simulated(manifest, asked, name, _policy(node_policy, device_policy), now_utc(), vendors)
    if told:
        typer.echo(schedulerlog(told, is_full=detail), nl=False)
    else:
        typer.echo("The pod asks for no device: this scheduler would hand every node back.", err=True)


def _policy(node_policy: str, device_policy: str) -> SchedulingPolicy:
    return SchedulingPolicy(settings.word("--node-policy", node_policy, NODE_POLICIES), device_policy)


if __name__ == "__main__":
    app()
