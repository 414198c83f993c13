"""The parts of the process. A part's modules are imported when it starts: one that does not run costs no memory."""

import logging
import socket
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from cli.single_process.messenger import send_messages
from cli.single_process.readers import follow_hami_log, follow_kai_log, read_cluster
from cli.single_process.settings import SingleProcessSettings
from pipeline.alerts.rules import Rule
from pipeline.settings import INDEX_GROUP, PLACEMENTS_GROUP, derive_events_group
from runtime.settings.names import ALERTS_GROUP
from runtime.supervision import ProcessPart
from runtime.telemetry.health import ServeHealth
from runtime.telemetry.spans import Tracing

logger = logging.getLogger(__name__)

_READING, _FOLDING, _STORING, _ANSWERING = range(4)
"""Stages of the end: first nothing new is read, then what was read is folded and stored; the API answers until then."""
EVENTS_QPS: Final = 20.0
EVENTS_BURST: Final = 50
"""Requests to the API server that write events, as of `pipeline events`."""
OUR_SCHEDULER: Final = "schedulerlog"
"""Name of our scheduler in deploy/kustomize."""
EVENTS_LINGER_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class Choice:
    """Choice of the parts, and the options that are no settings."""

    rules: tuple[Rule, ...]
    listening: socket.socket | None
    """Socket of the API, which stays open when the API starts again; None: no API."""
    tracing: Tracing
    has_cluster: bool = True
    """False: the parts that need an API server of Kubernetes are left out."""
    excluded: Collection[str] = field(default=frozenset())
    hami_log: str | None = None
    """Pod of HAMi's scheduler whose log is read: NAMESPACE/NAME[/CONTAINER]."""
    kai_log: str | None = None
    events_of: Collection[str] = (OUR_SCHEDULER,)
    """Schedulers whose decisions become events of their pods; others write events of their own."""
    has_targets_file: bool = False
    """False: no messages are sent."""


NAMES: Final = (
    "kube-events", "hami-log", "kai-log", "worker", "index", "placements", "alerts", "events", "notify", "retention",
    "api",
)  # fmt: skip


def build_parts(settings: SingleProcessSettings, choice: Choice) -> list[ProcessPart]:
    """Build the parts that the choice leaves."""
    parts = [
        ProcessPart("worker", partial(_fold, settings, choice.tracing), _FOLDING),
        ProcessPart("index", partial(_index, settings, choice.tracing), _STORING),
        ProcessPart("placements", partial(_track_placements, settings), _STORING),
        ProcessPart("alerts", partial(_evaluate_rules, settings, list(choice.rules)), _STORING),
        ProcessPart("retention", partial(_delete_expired, settings), _STORING),
    ]
    if choice.has_cluster:
        parts.append(ProcessPart("kube-events", partial(read_cluster, settings), _READING))
        parts.append(ProcessPart("events", partial(_write_events, settings, choice.events_of), _STORING))
    if choice.hami_log:
        parts.append(ProcessPart("hami-log", partial(follow_hami_log, settings, choice.hami_log), _READING))
    if choice.kai_log:
        parts.append(ProcessPart("kai-log", partial(follow_kai_log, settings, choice.kai_log), _READING))
    if choice.listening:
        parts.append(ProcessPart("api", partial(_answer, settings, choice.listening, choice.tracing), _ANSWERING))
    if choice.listening and choice.has_targets_file:
        sending = partial(send_messages, settings, choice.listening)
        parts.append(ProcessPart("notify", sending, _STORING))
    return [part for part in parts if part.name not in choice.excluded]


async def _fold(settings: SingleProcessSettings, tracing: Tracing, serve_health: ServeHealth) -> None:
    from pipeline.worker import process

    await process.work(settings, tracing, serve_health)


async def _index(settings: SingleProcessSettings, tracing: Tracing, serve_health: ServeHealth) -> None:
    from pipeline.index import process

    await process.work(settings, INDEX_GROUP, tracing, serve_health)


async def _track_placements(settings: SingleProcessSettings, serve_health: ServeHealth) -> None:
    from engine.summaries.node_pools import parse_expected_pools
    from pipeline.placements import process

    pools = parse_expected_pools(settings.node_pools, settings.expected_pools)
    await process.work(
        process.Settings(settings, settings, PLACEMENTS_GROUP, None, settings.session_seconds, pools), serve_health
    )


async def _evaluate_rules(settings: SingleProcessSettings, rules: list[Rule], serve_health: ServeHealth) -> None:
    from pipeline.alerts import process

    await process.work(process.Settings(settings, ALERTS_GROUP, rules, None, settings.session_seconds), serve_health)


async def _write_events(
    settings: SingleProcessSettings, schedulers: Collection[str], serve_health: ServeHealth
) -> None:
    from pipeline.kube_events import process
    from pipeline.kube_events.event_writer import EventPolicy
    from runtime.kubernetes.credentials import choose_loader

    await process.work(
        process.Settings(
            settings,
            derive_events_group(settings.cluster_name),
            choose_loader(settings.kubeconfig, settings.context),
            EVENTS_QPS,
            EVENTS_BURST,
            EVENTS_LINGER_SECONDS,
            None,
            EventPolicy(settings.cluster_name, frozenset(schedulers)),
        ),
        serve_health,
    )


async def _delete_expired(settings: SingleProcessSettings, serve_health: ServeHealth) -> None:
    from prometheus_client import CollectorRegistry

    from pipeline.admin.retention import keep_clean
    from runtime.telemetry.health import report_no_problem

    with serve_health(None, CollectorRegistry(), report_no_problem, report_no_problem):
        await keep_clean(settings, settings.retention_interval, dry_run=False, say=lambda item: logger.info("%s", item))


async def _answer(
    settings: SingleProcessSettings, listening: socket.socket, tracing: Tracing, serve_health: ServeHealth
) -> None:
    from api.server import work

    await work(settings.to_api_settings(), listening, tracing, serve_health)
