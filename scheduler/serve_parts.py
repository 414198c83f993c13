"""Opens what the scheduler runs on, as its settings name it: spool, certificate, log; and shows their metrics."""

from collections.abc import Callable

from engine.fit.devices.cluster_state import ClusterColumns
from runtime.errors import SettingError
from runtime.http.server_tls import BrokenPairError, CertificatePair, Certificates
from scheduler.bind.bind_journal import FILE, BindJournal
from scheduler.hami_compat.klog.writer import KlogWriter
from scheduler.metrics import Metrics
from scheduler.publish.spool.files import FAILURES, explained
from scheduler.publish.spool.spool import Spool, SpoolInUseError, SpoolLimits
from scheduler.settings import Settings


def open_spool(settings: Settings) -> Spool:
    """Raises `SettingError` where another process uses it, or it can't be written."""
    try:
        return Spool(settings.spool, SpoolLimits(max_bytes=settings.spool_max_size, sync=settings.spool_sync))
    except SpoolInUseError as error:
        raise SettingError(f"--spool: {error}") from None
    except FAILURES as error:
        raise SettingError(f"--spool: {settings.spool} can't be used: {explained(error)}") from None


def open_binds(settings: Settings) -> BindJournal:
    """Raises `SettingError` where what the last process left can't be read."""
    try:
        return BindJournal(settings.spool, syncs=settings.spool_sync == "always")
    except FAILURES as error:
        raise SettingError(
            f"--spool: {settings.spool / FILE} can't be read: {explained(error)}. Repair the disk, or move the file"
            " away: the binds in it then remain unreported"
        ) from None


def certificates(settings: Settings, metrics: Metrics) -> Certificates | None:
    """None for plain HTTP. Raises `SettingError` for files that can't be used."""
    if not settings.cert_file or not settings.key_file:
        return None
    try:
        found = Certificates(CertificatePair(settings.cert_file, settings.key_file, client_ca=settings.client_ca_file))
    except BrokenPairError as error:
        raise SettingError(str(error)) from None
    metrics.watch(
        "certificate_is_broken",
        lambda: float(bool(found.problem)),
    )
    metrics.watch("certificate_reloads", lambda: found.reloads)
    return found


def klog_writer(settings: Settings, metrics: Metrics) -> KlogWriter | None:
    """None without `-v`."""
    if settings.verbosity is None:
        return None
    writer = KlogWriter(settings.verbosity)
    metrics.watch("klog_dropped_calls", lambda: writer.dropped)
    return writer


def watch_spool(metrics: Metrics, spool: Spool, columns: ClusterColumns) -> None:
    """Show the state of the spool as metrics."""
    watched: dict[str, Callable[[], float]] = {
        "spool_bytes": lambda: spool.unsent_bytes,
        "spool_oldest_age_seconds": spool.oldest_age_seconds,
        "spool_is_failing": lambda: float(bool(spool.problem or spool.reading.text)),
        "spool_dropped_detail_records": lambda: spool.dropped_detail,
        "spool_dropped_decision_records": lambda: spool.dropped_verdicts,
        "spool_damaged_places": lambda: spool.counts.damaged,
        "registered_nodes": lambda: len(columns.node_names),
    }
    for name, read in watched.items():
        metrics.watch(name, read)
