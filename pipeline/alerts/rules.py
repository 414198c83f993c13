"""Files of rules: the kinds of rules, and the line of a mistake."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from pipeline.alerts.conditions.autoscaler import AutoscalerRule
from pipeline.alerts.conditions.behind import BehindRule
from pipeline.alerts.conditions.dead_letters import DeadLettersRule
from pipeline.alerts.conditions.dropped import DroppedRule
from pipeline.alerts.conditions.finding import FindingRule
from pipeline.alerts.conditions.gang import GangRule
from pipeline.alerts.conditions.handshake import HandshakeRule
from pipeline.alerts.conditions.kubelet import KubeletRule
from pipeline.alerts.conditions.lock import LockRule
from pipeline.alerts.conditions.pending import PendingRule
from pipeline.alerts.conditions.queue import QueueRule
from pipeline.alerts.conditions.silent import SilentRule
from pipeline.alerts.conditions.surge import SurgeRule
from runtime.files.yaml_lines import Mapping, YamlError, parse_documents

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
    | QueueRule
    | GangRule
    | KubeletRule
    | AutoscalerRule
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
    """Load the rules of a file. Raises ``RuleError``."""
    document = None
    try:
        document = next((parsed for _, parsed in parse_documents(path.read_bytes())), None)
        return _RuleFile.model_validate(document).rules
    except OSError as error:
        raise RuleError(f"{path}: can't be read: {error}") from None
    except YamlError as error:
        raise RuleError(f"{path}:{error.line}: not valid YAML: {error.problem}") from None
    except ValidationError as error:
        # Only the first mistake: the others are often its consequences.
        first = error.errors(include_url=False, include_input=False)[0]
        # pydantic puts the chosen kind of a union into the location of an error; the file has no such key.
        keys = [key for key in first["loc"] if key not in KINDS]
        location = ".".join(map(str, keys))
        cause = first["msg"].removeprefix("Value error, ")
        raise RuleError(f"{path}:{_find_line(document, keys)}: {location + ': ' if location else ''}{cause}") from None


def _find_line(node: Any, keys: Sequence[str | int]) -> int:
    """Find the line of the deepest key along ``keys`` that the file has."""
    line = 1
    for key in keys:
        if isinstance(node, Mapping) and key in node:
            line = node.get_line(str(key))
        elif not (isinstance(node, list) and isinstance(key, int) and key < len(node)):
            break
        node = node[key]
        line = node.line if isinstance(node, Mapping) else line
    return line
