"""The settings of all parts as one model: a setting that several parts have is the same one for all of them."""

from datetime import timedelta
from typing import Annotated

from pydantic import Field

from api.settings import Settings as ApiSettings
from ingest.reading.options import WatchSettings
from pipeline.settings import (
    AlertsSettings,
    EventsSettings,
    IndexSettings,
    NotifySettings,
    PlacementsSettings,
    ProvisionSettings,
    RetentionSettings,
    WorkerSettings,
)
from runtime.settings.settings import Duration


class SingleProcessSettings(
    WorkerSettings,
    IndexSettings,
    PlacementsSettings,
    AlertsSettings,
    EventsSettings,
    NotifySettings,
    RetentionSettings,
    ProvisionSettings,
    WatchSettings,
    ApiSettings,
):
    """Settings of the process: those of its parts, and the pause of its retention."""

    def to_api_settings(self) -> ApiSettings:
        """Return the settings of the API, whose requests to OpenSearch have less time than those of the writers."""
        if "opensearch_timeout" in self.model_fields_set:
            return self
        return self.model_copy(update={"opensearch_timeout": ApiSettings.model_fields["opensearch_timeout"].default})

    retention_interval: Annotated[Duration, Field(ge=timedelta(minutes=1))] = timedelta(hours=6)
    """Time between two runs of `retention` within `schedulerlog all`."""
