"""The event about this scheduler's own version and settings."""

import os
import socket
from datetime import datetime
from hashlib import blake2b
from typing import Final

from engine.fit import device_config
from runtime.cli.version import VERSION
from runtime.settings.addresses import without_user_info
from runtime.settings.flags import shown
from runtime.settings.kafka_connection import KafkaConnectionIfGiven
from scheduler.settings import Settings
from schemas.events import SchedulerObserved, compute_settings_digest

IMPLEMENTATION: Final = "schedulerlog"
DEVICE_CONFIG: Final = "device-config-digest"
"""Among the settings: equal for equal contents of the device configuration."""


def own_settings(settings: Settings, kafka: KafkaConnectionIfGiven, started_at: datetime) -> SchedulerObserved:
    """Every setting in force, by the name of its flag. None of them is a secret."""
    # Of a URL that was given for HOST:PORT, a password must not be published.
    in_force = {name: without_user_info(text) for name, text in (shown(settings) | shown(kafka)).items()}
    in_force[DEVICE_CONFIG] = _digest(settings)
    return SchedulerObserved(
        cluster=settings.cluster_name,
        scheduler=settings.name,
        observed_at=started_at,
        instance=os.environ.get("POD_NAME") or socket.gethostname(),
        implementation=IMPLEMENTATION,
        version=VERSION,
        settings=in_force,
        settings_digest=compute_settings_digest(IMPLEMENTATION, VERSION, in_force),
    )


def _digest(settings: Settings) -> str:
    try:
        content = (settings.device_config_file or device_config.SHIPPED).read_bytes()
    # It was read before; where it has gone since, its content is not known.
    except OSError:
        return ""
    return blake2b(content, digest_size=8).hexdigest()
