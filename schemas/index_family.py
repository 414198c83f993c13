"""A family of indices of OpenSearch: its names, its alias and its templates."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal

from .index_fields import build_otel_aliases

MAPPING_VERSION: Final = 9
"""Written into the ``_meta`` of every template; a worker refuses to write through another version. A later version only
adds fields, so indices that are there take it over."""

SETTINGS_TEMPLATE: Final = "schedulerlog@settings"
"""The component template with the settings of this project; ``provision`` writes it again each time."""
CUSTOM_TEMPLATE: Final = "schedulerlog@custom"
"""The component template with the settings of the operator, which come before ours; ``provision`` makes it empty, once.
A family's own is called by its alias: ``schedulerlog-devices@custom``."""

# ASCII: without it `\d` matches the digits of all scripts, which no index of ours has.
_DAY: Final = re.compile(r"\d{4}\.\d\d\.\d\d", re.ASCII)
_LONGEST_MONTH: Final = timedelta(days=31)


def build_settings_template(shards: int = 1, replicas: int = 0) -> dict[str, Any]:
    """Build the body of ``PUT _component_template/{SETTINGS_TEMPLATE}``."""
    index = {
        "number_of_shards": shards,
        "number_of_replicas": replicas,
        # What is read by id is exact at once (decision 0003); a second is how late a search may be.
        "refresh_interval": "1s",
        # Most of a document is stored JSON that is never searched: size matters more than the CPU of reading one.
        "codec": "best_compression",
    }
    return {"template": {"settings": {"index": index}}, "_meta": {"about": "Settings of schedulerlog: never edit them"}}


@dataclass(frozen=True, slots=True)
class Index:
    """A family of indices behind one alias."""

    alias: str
    description: str
    properties: dict[str, Any]
    retention: timedelta = timedelta(days=30)
    kept_while: dict[str, Any] | None = None
    """A query: an index that has a document like that is kept, however old it is."""
    period: Literal["day", "month", "all"] = "day"
    """Time (UTC) whose documents are in one index: a day where a day may have gigabytes. ``all``: one index has all
    documents, because they change for longer; they expire one by one, by their ``@timestamp``."""

    def name(self, started_at: datetime) -> str:
        """Name the index of a document about this time: by the first day of its period."""
        if self.period == "all":
            return f"{self.alias}-all"
        # Called for every document; times of events are in UTC already, so the conversion is rarely needed.
        day = started_at if started_at.tzinfo is UTC else started_at.astimezone(UTC)
        return f"{self.alias}-{day.year:04}.{day.month:02}.{day.day if self.period == 'day' else 1:02}"

    @property
    def longest_period(self) -> timedelta:
        """The longest time whose documents are in one index."""
        return _LONGEST_MONTH if self.period == "month" else timedelta(days=1)

    def parse_end(self, name: str) -> datetime | None:
        """Parse the end of the period of the index; None for a name that ``name`` does not give."""
        day = name.removeprefix(f"{self.alias}-")
        # Nothing was removed: an index of another alias. `strptime` alone would also take "2026.1.2".
        if day == name or not _DAY.fullmatch(day):
            return None
        try:
            start = datetime.strptime(day, "%Y.%m.%d").replace(tzinfo=UTC)
            end = start + self.longest_period
        except (ValueError, OverflowError):
            return None
        return end.replace(day=1) if self.period == "month" else end

    @property
    def family(self) -> str:
        """The name of the family in settings: `devices` of `schedulerlog-devices`."""
        return self.alias.removeprefix("schedulerlog-")

    @property
    def custom_template(self) -> str:
        """The component template of this family alone, which an operator may make."""
        return f"{self.alias}@custom"

    def build_template(self, *custom: str) -> dict[str, Any]:
        """Build the body of ``PUT _index_template/{alias}``. ``custom``: component templates of the operator that
        exist; of several the last one counts."""
        return {
            "index_patterns": [f"{self.alias}-*"],
            # Above OpenSearch's default of 0, so that a catch-all template of the cluster does not win over this one.
            "priority": 200,
            # OpenSearch refuses an index template that names a component template that is not there.
            "composed_of": [SETTINGS_TEMPLATE, *custom],
            "template": {
                "aliases": {self.alias: {}},
                "mappings": {
                    "dynamic": "strict",
                    "_meta": {"schedulerlog_mapping_version": MAPPING_VERSION, "about": self.description},
                    "properties": self.properties | build_otel_aliases(self.properties),
                },
            },
            "_meta": {"schedulerlog_mapping_version": MAPPING_VERSION, "about": self.description},
        }
