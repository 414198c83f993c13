"""The rules: what a file may say, and where in it what is wrong."""

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

DEFAULTS: Final = Path(__file__).with_name("rules.yaml")

Minutes = Annotated[float, Field(gt=0, le=7 * 24 * 60)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}$")]


class RuleError(Exception):
    """A file of rules can't be used; the message names the file, the line and what is wrong."""


class _Rule(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    name: Name
    severity: Literal["info", "warning", "critical"] = "warning"


class Pending(_Rule):
    """A pod is refused for the same reason again and again."""

    kind: Literal["pending"]
    for_minutes: Minutes = 30
    reasons: frozenset[str] = frozenset()
    """Only these reason codes; empty: any."""
    namespaces: frozenset[str] = frozenset()
    """Only these; empty: any."""
    forget_minutes: Minutes = 20
    """A pod that is not tried for so long is no longer waiting: kube-scheduler tries every five minutes at least."""


class Surge(_Rule):
    """A reason refuses many times as often as in the time before."""

    kind: Literal["surge"]
    factor: Annotated[float, Field(gt=1)] = 5
    window_minutes: Minutes = 10
    before_minutes: Minutes = 60
    at_least: Annotated[int, Field(ge=1)] = 20
    """Attempts in the window."""


class Lock(_Rule):
    """Binds to a node fail since another pod holds its lock."""

    kind: Literal["lock"]
    for_minutes: Minutes = 5
    forget_minutes: Minutes = 15
    """Nobody has tried to bind there for so long: it is not known to be locked."""


class Handshake(_Rule):
    """A node's handshake or registration is wrong."""

    kind: Literal["handshake"]
    codes: frozenset[str]
    """As in node checked: ``HandshakeTooOld``, …"""
    for_minutes: Annotated[float, Field(ge=0, le=24 * 60)] = 0


class Finding(_Rule):
    """A placement that can't be right."""

    kind: Literal["finding"]
    findings: frozenset[str]
    """As in finding reported: ``Overcommitted``, …"""
    window_minutes: Minutes = 60
    at_least: Annotated[int, Field(ge=1)] = 1


class Silent(_Rule):
    """A scheduler that has pods waiting says nothing any more."""

    kind: Literal["silent"]
    for_minutes: Minutes = 10
    forget_minutes: Minutes = 24 * 60
    """A scheduler that is silent for so long is taken to be gone for good."""


class Behind(_Rule):
    """A scheduler's decisions reach Kafka late: its spool grows."""

    kind: Literal["behind"]
    seconds: Annotated[float, Field(gt=0)] = 60
    for_minutes: Minutes = 2
    forget_minutes: Minutes = 30


class Dropped(_Rule):
    """A scheduler has given up device detail: its spool is full."""

    kind: Literal["dropped"]
    window_minutes: Minutes = 15
    at_least: Annotated[int, Field(ge=1)] = 1


class DeadLetters(_Rule):
    """Records are being set aside."""

    kind: Literal["dead-letters"]
    window_minutes: Minutes = 15
    at_least: Annotated[int, Field(ge=1)] = 1


Rule: TypeAlias = Pending | Surge | Lock | Handshake | Finding | Silent | Behind | Dropped | DeadLetters


class _File(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    rules: list[Annotated[Rule, Field(discriminator="kind")]]

    @model_validator(mode="after")
    def _names_differ(self) -> "_File":
        names = [rule.name for rule in self.rules]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"two rules are called {twice[0]}: alerts are told apart by the name")
        return self


def load(path: Path = DEFAULTS) -> list[Rule]:
    """Raises ``RuleError``."""
    try:
        text = path.read_text(encoding="utf-8")
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        return _File.model_validate(yaml.safe_load(text)).rules
    except (OSError, UnicodeDecodeError) as error:
        raise RuleError(f"{path}: can't be read: {error}") from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise RuleError(f"{path}:{line}: no YAML: {error.problem}") from None
    except (yaml.YAMLError, RecursionError) as error:
        raise RuleError(f"{path}: no YAML: {error}") from None
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        keys = [key for key in first["loc"] if key not in _KINDS]
        place = ".".join(map(str, keys))
        said = first["msg"].removeprefix("Value error, ")
        raise RuleError(f"{path}:{_line(node, keys)}: {place + ': ' if place else ''}{said}") from None


# pydantic names the chosen kind of a union in the place of an error; it stands nowhere in the file.
_KINDS: Final = frozenset(
    {"pending", "surge", "lock", "handshake", "finding", "silent", "behind", "dropped", "dead-letters"}
)


def _line(node: Any, keys: Sequence[str | int]) -> int:
    """Of the deepest place along ``keys`` that is there."""
    line = node.start_mark.line + 1 if node else 1
    for key in keys:
        if isinstance(node, yaml.SequenceNode) and isinstance(key, int) and key < len(node.value):
            node = node.value[key]
            line = node.start_mark.line + 1
        elif isinstance(node, yaml.MappingNode):
            found = [(name, value) for name, value in node.value if name.value == key]
            if not found:
                break
            line, node = found[0][0].start_mark.line + 1, found[0][1]
        else:
            break
    return line


def minutes(count: float) -> timedelta:
    return timedelta(minutes=count)
