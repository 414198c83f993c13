"""Types of path and query parameters, and the base of their models.

Each refuses a wrong value with a sentence that quotes it. Both the checks and the OpenAPI document come from these
annotations.
"""

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WrapValidator, model_validator

from api.http.pagination import MAX_CHARACTERS
from page.views.translations import STATUS_WORDS
from runtime.settings.names import find_label_problem, find_subdomain_problem
from schemas.codec.records import format_rfc3339

ATTEMPT_ID: Final = r"^[A-Za-z0-9._:-]{1,128}$"
NO_NAMESPACE: Final = "-"
"""Namespace of pods from a log without namespaces (scheduler-sniffer). No cluster can have one of this name."""

# Errors quote the first characters of wrong values.
_QUOTED_NAME: Final = 80
_QUOTED_TIME: Final = 60

_CLOCK_SKEW: Final = timedelta(minutes=1)
# ASCII everywhere: without it ``\d`` matches the digits of all scripts.
_DURATION: Final = re.compile(r"(\d{1,6})([smhd])", re.ASCII)
_RFC3339: Final = re.compile(r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d(?:\.\d{1,9})?)([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def find_namespace_problem(name: str) -> str | None:
    """Find what is wrong with ``name`` as a namespace: an RFC 1123 label or ``NO_NAMESPACE``. None for a valid one."""
    return None if name == NO_NAMESPACE else find_label_problem(name)


def _check_namespace(name: str) -> str:
    if problem := find_namespace_problem(name):
        raise ValueError(f"{name[:_QUOTED_NAME]!a} {problem}")
    return name


def _check_object_name(name: str) -> str:
    if problem := find_subdomain_problem(name):
        raise ValueError(f"{name[:_QUOTED_NAME]!a} {problem}")
    return name


_OUTCOMES: Final = {word: status for status, word in STATUS_WORDS.items()}
OUTCOME_WORDS: Final = "`placed`, `refused` and `undecided`, as page and terminal have it, mean the same."


def _read_outcome(text: object) -> object:
    if text not in (*_OUTCOMES, *_OUTCOMES.values()):
        words = ", ".join(_OUTCOMES)
        raise ValueError(
            f"{str(text)[:_QUOTED_NAME]!a} is none of {words} (in answers: {', '.join(_OUTCOMES.values())})"
        )
    return _OUTCOMES.get(str(text), text)


Outcome = Annotated[Literal["succeeded", "failed", "pending"], BeforeValidator(_read_outcome)]
NamespaceName = Annotated[str, AfterValidator(_check_namespace)]
ObjectName = Annotated[str, AfterValidator(_check_object_name)]
Keyword = Annotated[str, Field(min_length=1, max_length=1024)]
"""Value compared with a field of type ``keyword``; the index ignores keywords that are longer than this."""

NamespaceInPath = Annotated[NamespaceName, Field(description="The pod's namespace.", examples=["default"])]
NodeInPath = Annotated[ObjectName, Field(description="The node's name.", examples=["node1"])]
AttemptInPath = Annotated[
    str,
    Field(
        description="The attempt's id.",
        pattern=ATTEMPT_ID,
        examples=["6f97a54de6fbb9e27ee3a1dc8d608d38"],
    ),
]
PodInPath = Annotated[ObjectName, Field(description="The pod's name.", examples=["gpu-pod"])]


def parse_time(text: str, now: datetime) -> datetime:
    """Parse ``15m``, ``2h``, ``7d`` (before ``now``) or RFC 3339 as a time in UTC.

    Raises ``ValueError`` for a text of another form, ``OverflowError`` for a time outside the years 1 to 9999.
    """
    if duration := _DURATION.fullmatch(text):
        return now - timedelta(**{_UNITS[duration[2]]: int(duration[1])})
    # In a query a plus sign that was not escaped arrives as a space.
    if parts := _RFC3339.fullmatch(re.sub(r" (\d\d:\d\d)$", r"+\1", text)):
        # fromisoformat reads microseconds; more digits are below the resolution of what is stored.
        clock = re.sub(r"(\.\d{6})\d+", r"\1", parts[2])
        return datetime.fromisoformat(f"{parts[1]}T{clock}{parts[3].upper()}").astimezone(UTC)
    raise ValueError(
        f"{text[:_QUOTED_TIME]!a} is neither a time as in 2026-01-02T03:04:05Z nor a duration as in 15m, 2h, 7d"
    )


def _check_time(text: str) -> str:
    try:
        parse_time(text, datetime.now(UTC))
    except OverflowError:
        raise ValueError(f"{text[:_QUOTED_TIME]!a} is outside the years 1 to 9999") from None
    return text


def _check_past(text: str) -> str:
    now = datetime.now(UTC)
    # The caller's clock may be ahead of this one, and "now" by that clock is a fair question.
    if parse_time(text, now) > now + _CLOCK_SKEW:
        raise ValueError(f"{text[:_QUOTED_TIME]!a} is in the future; leave out `at` for the current state")
    return text


def _check_moment(text: str) -> str:
    # The index would compute what is after a date as well (``2026-01-02||-1d``), and "now".
    if not _RFC3339.fullmatch(text):
        raise ValueError(f"{text[:_QUOTED_TIME]!a} is not a time as in 2026-01-02T03:04:05Z")
    # In UTC: Java knows fewer offsets than Python.
    return format_rfc3339(parse_time(_check_time(text), datetime.min.replace(tzinfo=UTC)))


MomentText = Annotated[str, AfterValidator(_check_moment)]
"""Time of a token, which anybody can write: only RFC 3339."""
Milliseconds = Annotated[int, Field(ge=-(2**63), lt=2**63)]
"""Time since 1970, as OpenSearch sorts by time; the least number stands for a missing time."""
# Kept as text: what a duration means is fixed when the first page is read, and carried in the token from then on.
TimeText = Annotated[str, AfterValidator(_check_time)]
PastTimeText = Annotated[TimeText, AfterValidator(_check_past)]


def _check_whole_number(value: Any, handler: Any) -> Any:
    # int() would also accept " 5", "+5", "1_0" and digits of other scripts.
    if isinstance(value, str) and not re.fullmatch(r"-?\d{1,9}", value, re.ASCII):
        raise ValueError(f"{value[:40]!a} is not a whole number")
    return handler(value)


WholeNumber = Annotated[int, WrapValidator(_check_whole_number)]
ContinueToken = Annotated[str, Field(max_length=MAX_CHARACTERS)]


class Query(BaseModel):
    """Query that refuses unknown parameters: to ignore a misspelt filter would answer another question."""

    # ``allow``, because ``forbid`` would name only the wrong parameter and not those that exist.
    model_config = ConfigDict(extra="allow", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown(cls, parameters: Any) -> Any:
        names = [field.alias or name for name, field in cls.model_fields.items()]
        if unknown := sorted(set(parameters) - set(names)):
            raise ValueError(f"parameter {unknown[0][:60]!a} is unknown here; known are: {', '.join(names) or 'none'}")
        return parameters
