"""The command line of ``scheduler serve``."""

import asyncio
from typing import Any

import typer
from typer.core import TyperCommand

from engine.fit import device_config
from engine.fit.device_config import DeviceConfigError
from engine.fit.manifests import ManifestError
from runtime.cli.cli import create_application, one_line_for
from runtime.errors import SettingError
from runtime.kubernetes.errors import KubeConfigError
from runtime.settings.flags import with_settings
from runtime.settings.kafka_connection import KafkaConnectionIfGiven
from runtime.settings.settings import LogSettings
from runtime.telemetry import logs
from runtime.telemetry.tracing import TracingSettings, tracing
from scheduler.hami_compat import arguments as hami_arguments
from scheduler.settings import Settings

app = create_application("")


class _HamisArguments(TyperCommand):
    """Understands the arguments of HAMi's scheduler too."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        options = [option for option in self.params if getattr(option, "is_flag", False)]
        off = {name: option.secondary_opts[0] for option in options if option.secondary_opts for name in option.opts}
        with one_line_for(SettingError):
            words, notes = hami_arguments.translate(args, off)
        for note in notes:
            typer.echo(note, err=True)
        return list(super().parse_args(ctx, words))


@app.command(cls=_HamisArguments)
@with_settings(Settings, KafkaConnectionIfGiven, LogSettings, TracingSettings)
def serve(settings: Settings, kafka: KafkaConnectionIfGiven, log: LogSettings, traces: TracingSettings) -> None:
    """Answer POST /filter, POST /bind and POST /webhook; GET /healthz, /readyz and /metrics too.

    The arguments of HAMi's scheduler are understood as they are.
    """
    # The servers and clients take their time to import: only this command needs them.
    from scheduler.serve import serve as run

    # The publisher says once that a broker is away, where aiokafka fills the log.
    logs.configure(log, silent=["aiokafka"])
    with one_line_for(SettingError, ManifestError, KubeConfigError, DeviceConfigError):
        if settings.publish:
            kafka.require_addresses("say --no-publish")
        vendors = device_config.read_for(settings.hami_version, settings.device_config_file)
        with tracing(traces, "scheduler") as spans:
            asyncio.run(run(settings, kafka, vendors, spans))
