"""A family of indices of OpenSearch: its names, its alias and its templates."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal

from .index_fields import build_otel_aliases

MAPPING_VERSION: Final = 12
"""Written into the ``_meta`` of every template; a worker refuses to write through another version. A later version only
adds fields, so indices that are there take it over."""

SETTINGS_TEMPLATE: Final = "schedulerlog@settings"
"""The component template with the settings of this project; ``provision`` writes it again each time."""
CUSTOM_TEMPLATE: Final = "schedulerlog@custom"
"""The component template with the settings of the operator, which come before ours; ``provision`` makes it empty, once.
A family's own is called by its alias: ``schedulerlog-devices@custom``."""

# ASCII: without it `\d` matches the digits of all scripts, which no index of ours has.
_DAY: Final = re.compile(r"\d{4}\.\d\d\.\d\d", re.ASCII)
LONGEST_MONTH: Final = timedelta(days=31)
WHOLE_MONTH: Final = "00"
"""The day in the name of an index of a whole month, in a family whose other indices are of days."""
_EARLIEST: Final = datetime(2014, 6, 6, tzinfo=UTC)
"""Kubernetes' first commit. Logs of years ago may be read."""
_MAX_AHEAD: Final = timedelta(days=1)
_DATE: Final = re.compile(r"-(\d{4}\.\d\d\.\d\d)\Z", re.ASCII)
IMPOSSIBLE_DAY: Final = "its time is more than a day ahead, or before Kubernetes: synchronize the clock of its source"


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


def find_next_month(moment: datetime) -> datetime:
    """Find the beginning of the month behind that of ``moment``, in the same time zone."""
    return (moment.replace(day=1, hour=0, minute=0, second=0, microsecond=0) + LONGEST_MONTH).replace(day=1)


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
    """Time (UTC) whose documents are in one index. ``day``: a day may have gigabytes; where it has little, `retention`
    makes an index of a month ahead of it, whose name ends with ``.00``, and the writers find that (decision 0049).
    ``all``: one index has all documents, because they change for longer; they expire one by one, by ``@timestamp``."""
    shown_at_first: dict[str, Any] | None = None
    """A query: the documents of a new index that its alias shows, until its filter is changed. None: all."""
    is_written_daily: bool = False
    """True if a document is written again each day, under the same id, and what it was on each day is kept."""
    sorted_by: str | None = None
    """Field whose equal documents lie side by side in an index, because they are read together; None for the order in
    which they came. An index that is there keeps its order."""

    def name(self, started_at: datetime) -> str:
        """Name the index of a document about this time: by the first day of its period."""
        if self.period == "all":
            return f"{self.alias}-all"
        # Called for every document; times of events are in UTC already, so the conversion is rarely needed.
        day = started_at if started_at.tzinfo is UTC else started_at.astimezone(UTC)
        return f"{self.alias}-{day.year:04}.{day.month:02}.{day.day if self.period == 'day' else 1:02}"

    def derive_month(self, name: str) -> tuple[str, str]:
        """Derive the index of the month from that of a day, and what the ids of the day's documents end with in it."""
        is_repeated = self.is_written_daily and not name.endswith(f".{WHOLE_MONTH}")
        return f"{name[:-2]}{WHOLE_MONTH}", f"@{name[-2:]}" if is_repeated else ""

    def list_places(self, moment: datetime) -> list[tuple[str, str]]:
        """List where documents about this time may be: the name of an index, and what their ids end with in it."""
        day = self.name(moment)
        return [(day, ""), *([self.derive_month(day)] if self.period == "day" else [])]

    def join_names(self, moment: datetime) -> str:
        """Join the names of the indices that may have documents about this time, as paths of requests have them."""
        return ",".join(name for name, _ in self.list_places(moment))

    @property
    def longest_period(self) -> timedelta:
        """The longest time whose documents are in one index that ``name`` gives."""
        return LONGEST_MONTH if self.period == "month" else timedelta(days=1)

    def parse_period(self, name: str) -> tuple[datetime, datetime] | None:
        """Parse begin and end of the period of the index; None for a name that this family does not give."""
        day = name.removeprefix(f"{self.alias}-")
        # Nothing was removed: an index of another alias. `strptime` alone would also take "2026.1.2".
        if day == name or not _DAY.fullmatch(day):
            return None
        is_month = self.period == "month" or (self.period == "day" and day.endswith(f".{WHOLE_MONTH}"))
        try:
            start = datetime.strptime(day[:-2] + "01" if is_month else day, "%Y.%m.%d").replace(tzinfo=UTC)
            return start, find_next_month(start) if is_month else start + timedelta(days=1)
        except (ValueError, OverflowError):
            return None

    def parse_end(self, name: str) -> datetime | None:
        """Parse the end of the period of the index; None for a name that this family does not give."""
        period = self.parse_period(name)
        return period and period[1]

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
                **({"settings": {"index": {"sort": {"field": [self.sorted_by]}}}} if self.sorted_by else {}),
                "aliases": {self.alias: {"filter": self.shown_at_first} if self.shown_at_first else {}},
                "mappings": {
                    "dynamic": "strict",
                    "_meta": {"schedulerlog_mapping_version": MAPPING_VERSION, "about": self.description},
                    "properties": self.properties | build_otel_aliases(self.properties),
                },
            },
            "_meta": {"schedulerlog_mapping_version": MAPPING_VERSION, "about": self.description},
        }


def describe_impossible(moment: datetime, now: datetime) -> str:
    """Describe the fault in the time of an attempt; empty for a possible one."""
    if moment - now > _MAX_AHEAD:
        return f"{moment:%Y-%m-%d %H:%M} is more than a day ahead: synchronize the clock of the source"
    if moment < _EARLIEST:
        return f"{moment:%Y-%m-%d %H:%M} is before Kubernetes was made: set the clock of the source"
    return ""


def is_possible(index: str, now: datetime) -> bool:
    """Tell whether an index is of a day or month that may have attempts; True for one that is named by neither."""
    match = _DATE.search(index)
    # As text: a day that does not exist, such as 9999.99.99, is out of range as well.
    return match is None or f"{_EARLIEST:%Y.%m.%d}" <= match[1] <= f"{now + _MAX_AHEAD:%Y.%m.%d}"
