"""Files of rules: which kinds there are, and where in a file a mistake is."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias, get_args

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from pipeline.alerts.conditions.behind import BehindRule
from pipeline.alerts.conditions.dead_letters import DeadLettersRule
from pipeline.alerts.conditions.dropped import DroppedRule
from pipeline.alerts.conditions.finding import FindingRule
from pipeline.alerts.conditions.handshake import HandshakeRule
from pipeline.alerts.conditions.lock import LockRule
from pipeline.alerts.conditions.pending import PendingRule
from pipeline.alerts.conditions.silent import SilentRule
from pipeline.alerts.conditions.surge import SurgeRule

DEFAULTS: Final = Path(__file__).with_name("rules.yaml")

Rule: TypeAlias = (
    PendingRule
    | SurgeRule
    | LockRule
    | HandshakeRule
    | FindingRule
    | SilentRule
    | BehindRule
    | DroppedRule
    | DeadLettersRule
)
KINDS: Final = frozenset(get_args(rule.model_fields["kind"].annotation)[0] for rule in get_args(Rule))


class RuleError(Exception):
    """A file of rules can't be used; the message names the file, the line and the mistake."""


class _RuleFile(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    rules: list[Annotated[Rule, Field(discriminator="kind")]]

    @model_validator(mode="after")
    def _names_differ(self) -> "_RuleFile":
        names = [rule.name for rule in self.rules]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"two rules are called {twice[0]}: alerts are distinguished by the name, rename one")
        return self


def load(path: Path = DEFAULTS) -> list[Rule]:
    """The rules of a file. Raises ``RuleError``."""
    try:
        text = path.read_text(encoding="utf-8")
        # Composed as well as loaded: only nodes know their lines, which the message of a mistake has to name.
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        return _RuleFile.model_validate(yaml.safe_load(text)).rules
    except (OSError, UnicodeDecodeError) as error:
        raise RuleError(f"{path}: can't be read: {error}") from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise RuleError(f"{path}:{line}: not valid YAML: {error.problem}") from None
    except (yaml.YAMLError, RecursionError) as error:
        raise RuleError(f"{path}: not valid YAML: {error}") from None
    except ValidationError as error:
        # The first mistake alone: the others are often its consequences.
        first = error.errors(include_url=False, include_input=False)[0]
        # pydantic puts the chosen kind of a union into the location of an error; the file has no such key.
        keys = [key for key in first["loc"] if key not in KINDS]
        location = ".".join(map(str, keys))
        cause = first["msg"].removeprefix("Value error, ")
        raise RuleError(f"{path}:{_line(node, keys)}: {location + ': ' if location else ''}{cause}") from None


def _line(node: Any, keys: Sequence[str | int]) -> int:
    """The line of the deepest node along ``keys`` that the file has."""
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
