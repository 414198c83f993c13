"""What may be asked: names in paths, parameters in queries. Everything else is refused by name.

FastAPI reads these models for both the checks and the OpenAPI document.
"""

import re
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final, Literal, Self

from fastapi import Path, Request
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WrapValidator, model_validator

from api.http.continue_token import MAX_CHARACTERS
from api.http.errors import BadRequestError

NO_NAMESPACE: Final = "-"
"""No namespace of a cluster can be called so; scheduler-sniffer's pods are in it, because its log names none."""
MAX_NODES_ASKED: Final = 100
MAX_SEARCH: Final = 200
DEFAULT_SEARCH: Final = 50
MAX_EPISODES: Final = 100
DEFAULT_EPISODES: Final = 20

_CLOCKS_DIFFER: Final = timedelta(minutes=1)
_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_DURATION: Final = re.compile(r"(\d{1,6})([smhd])", re.ASCII)
_RFC3339: Final = re.compile(r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d(?:\.\d{1,9})?)([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def wrong_namespace(name: str) -> str | None:
    """As ``wrong_label``, but for what readers write where a log names no namespace."""
    return None if name == NO_NAMESPACE else wrong_label(name)


def wrong_label(name: str) -> str | None:
    """What keeps ``name`` from being an RFC 1123 label, as namespaces are; None for a good one."""
    if not name:
        return "is empty"
    if len(name) > 63:
        return f"has {len(name)} characters, RFC 1123 labels have at most 63"
    return _wrong_part(name)


def wrong_subdomain(name: str) -> str | None:
    """What keeps ``name`` from being an RFC 1123 subdomain, as names of pods and nodes are; None for a good one."""
    if not name:
        return "is empty"
    if len(name) > 253:
        return f"has {len(name)} characters, RFC 1123 subdomains have at most 253"
    return next((wrong for part in name.split(".") if (wrong := _wrong_part(part))), None)


def _wrong_part(part: str) -> str | None:
    if _LABEL.fullmatch(part):
        return None
    if bad := re.sub(r"[-a-z0-9]", "", part, flags=re.ASCII):
        return f"has {bad[0]!a}, where RFC 1123 allows a-z, 0-9 and '-'"
    return "has a part that does not begin and end with a letter or a digit, as RFC 1123 wants it"


def _label(name: str) -> str:
    if wrong := wrong_namespace(name):
        raise ValueError(f"{name[:80]!a} {wrong}")
    return name


def _subdomain(name: str) -> str:
    if wrong := wrong_subdomain(name):
        raise ValueError(f"{name[:80]!a} {wrong}")
    return name


NamespaceName = Annotated[str, AfterValidator(_label)]
ObjectName = Annotated[str, AfterValidator(_subdomain)]

Word = Annotated[str, Field(min_length=1, max_length=1024)]
"""Anything that the index holds as one word."""

InNamespace = Annotated[NamespaceName, Path(description="The pod's namespace.", examples=["default"])]
NodeName = Annotated[ObjectName, Path(description="The node's name.", examples=["node1"])]
PodName = Annotated[ObjectName, Path(description="The pod's name.", examples=["gpu-pod"])]


def moment(text: str, now: datetime) -> datetime:
    """``15m``, ``2h``, ``7d`` (that long before ``now``) or RFC 3339. Raises ``ValueError`` saying which are known."""
    if said := _DURATION.fullmatch(text):
        return now - timedelta(**{_UNITS[said[2]]: int(said[1])})
    # A plus sign that nobody escaped arrives as a space.
    if said := _RFC3339.fullmatch(re.sub(r" (\d\d:\d\d)$", r"+\1", text)):
        # fromisoformat knows microseconds; the digits behind them are below the resolution of what is stored.
        clock = re.sub(r"(\.\d{6})\d+", r"\1", said[2])
        return datetime.fromisoformat(f"{said[1]}T{clock}{said[3].upper()}").astimezone(UTC)
    raise ValueError(f"{text[:60]!a} is neither a time as in 2026-01-02T03:04:05Z nor a duration as in 15m, 2h, 7d")


def _checked_moment(text: str) -> str:
    try:
        moment(text, datetime.now(UTC))
    except OverflowError:
        raise ValueError(f"{text[:60]!a} lies outside the years that can be counted") from None
    return text


When = Annotated[str, AfterValidator(_checked_moment)]


def _by_commas(values: Any) -> Any:
    """``node=a,b&node=c`` is three names."""
    if not isinstance(values, list):
        return values
    return [part for value in values for part in str(value).split(",")]


def _one_each(values: list[str]) -> list[str]:
    if len(values) > MAX_NODES_ASKED:
        raise ValueError(f"{len(values)} names, at most {MAX_NODES_ASKED} are answered at once")
    return list(dict.fromkeys(values))


def _whole(value: Any, handler: Any) -> Any:
    # int() takes " 5", "+5", "1_0" and digits of other scripts.
    if isinstance(value, str) and not re.fullmatch(r"-?\d{1,9}", value, re.ASCII):
        raise ValueError(f"{value[:40]!a} is no whole number")
    return handler(value)


Whole = WrapValidator(_whole)
Token = Annotated[str, Field(max_length=MAX_CHARACTERS)]
CONTINUE: Final = "Where the next page begins, as the page before gave it; all other parameters stay the same."


class Query(BaseModel):
    """No parameter that nobody declared: a misspelt one would otherwise be an answer to another question."""

    model_config = ConfigDict(extra="allow", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _knows_all(cls, asked: Any) -> Any:
        known = [field.alias or name for name, field in cls.model_fields.items()]
        if unknown := sorted(set(asked) - set(known)):
            raise ValueError(f"parameter {unknown[0][:60]!a} is unknown here; known are: {', '.join(known) or 'none'}")
        return asked


def once(request: Request, *repeatable: str) -> None:
    """Raise for a parameter given twice: one of the two would silently not count."""
    given = request.query_params.multi_items()
    if len(given) < 2:
        return
    seen = Counter(key for key, _ in given if key not in repeatable)
    if twice := next((key for key, count in seen.items() if count > 1), None):
        raise BadRequestError(f"parameter {twice[:60]!a} is given {seen[twice]} times", "Give it once.")


class NoQuery(Query):
    """No parameters."""


class SchedulerlogQuery(Query):
    node: Annotated[list[ObjectName], BeforeValidator(_by_commas), AfterValidator(_one_each)] = Field(
        default=[], description=f"Only these nodes: repeated, or with commas between; at most {MAX_NODES_ASKED}."
    )
    status: Literal["passed", "failed"] | None = Field(None, description="Only nodes that passed, or that failed.")
    limit: Annotated[int, Whole] | None = Field(
        None, ge=1, le=100_000, description="At most so many nodes; all without it. Headers say whether there are more."
    )
    continue_: Token | None = Field(None, alias="continue", description=CONTINUE)
    detail: Literal["full"] | None = Field(
        None, description="full: also the attempt's request, counts and ids; with node, those nodes' devices too."
    )


class HistoryQuery(Query):
    limit: Annotated[int, Whole] = Field(
        DEFAULT_EPISODES, ge=1, le=MAX_EPISODES, description="At most so many episodes."
    )
    continue_: Token | None = Field(None, alias="continue", description=CONTINUE)


class SearchQuery(Query):
    namespace: NamespaceName | None = Field(None, description="The pods' namespace.")
    pod: ObjectName | None = Field(None, description="The pods' name.")
    node: ObjectName | None = Field(None, description="A node that the attempt looked at.")
    reason: Word | None = Field(None, description="A reason code that some node refused for, as it is spelled.")
    status: Literal["succeeded", "failed", "pending"] | None = Field(None, description="What became of the attempt.")
    device: Word | None = Field(None, description="The UUID of a device that the attempt took.")
    since: When | None = Field(
        None, description="Attempts that started then or later: RFC 3339, or 15m, 2h, 7d ago.", examples=["2h"]
    )
    until: When | None = Field(None, description="Attempts that started before: RFC 3339, or 15m, 2h, 7d ago.")
    q: str | None = Field(
        None, min_length=1, max_length=500, description="Words that all occur in the messages and reasons."
    )
    limit: Annotated[int, Whole] = Field(DEFAULT_SEARCH, ge=1, le=MAX_SEARCH, description="At most so many attempts.")
    continue_: Token | None = Field(None, alias="continue", description=CONTINUE)


class RangeQuery(Query):
    """A list over a time, in pages."""

    since: When | None = Field(None, description="Then or later: RFC 3339, or 15m, 2h, 7d ago.", examples=["2h"])
    until: When | None = Field(None, description="Before: RFC 3339, or 15m, 2h, 7d ago.")
    limit: Annotated[int, Whole] = Field(DEFAULT_SEARCH, ge=1, le=MAX_SEARCH, description="At most so many.")
    continue_: Token | None = Field(None, alias="continue", description=CONTINUE)


class FindingKind(Query):
    finding: Word | None = Field(None, description="What was found, as it is spelled.", examples=["Overcommitted"])


class FindingPlace(FindingKind):
    namespace: NamespaceName | None = Field(None, description="The pod's namespace.")
    pod: ObjectName | None = Field(None, description="The pod's name.")
    node: ObjectName | None = Field(None, description="The node that it is about.")
    device: Word | None = Field(None, description="The device that it is about, as its scheduler names it.")
    scheduler: Word | None = Field(None, description="The scheduler whose decision it is about.")


# What stands last among the bases comes first in the documentation.
class PodFindingsQuery(RangeQuery, FindingKind):
    """Of one pod."""


class FindingsQuery(RangeQuery, FindingPlace):
    """Of all pods."""


def _checked_past(text: str) -> str:
    now = datetime.now(UTC)
    if moment(text, now) > now + _CLOCKS_DIFFER:
        raise ValueError(f"{text[:60]!a} lies in the future, of which nothing is known; without at it is now")
    return text


class NodeQuery(Query):
    at: Annotated[When, AfterValidator(_checked_past)] | None = Field(
        None, description="As of that time: RFC 3339, or 15m, 2h, 7d ago; now without it.", examples=["2h"]
    )


class NodeDeviceQuery(NodeQuery):
    device: Word | None = Field(None, description="Only this device, by its UUID.")


class NodeOccupancyQuery(RangeQuery, NodeDeviceQuery):
    """Either one moment (``at``, by default now) or a range in pages."""

    @property
    def is_about_a_range(self) -> bool:
        return bool(self.model_fields_set & RangeQuery.model_fields.keys())

    @model_validator(mode="after")
    def _asks_one_thing(self) -> Self:
        if self.at is not None and self.is_about_a_range:
            raise ValueError("at asks for one moment; from, to, limit and continue for a range: give one or the other")
        return self
