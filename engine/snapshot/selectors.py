"""Label selectors and node selectors, matched as Kubernetes matches them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from engine.snapshot.fields import FieldError, Object, quote, read_items, read_labels, read_text, read_texts

Labels = Mapping[str, str]
Operator = Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]

_OPERATORS: Final[dict[str, Operator]] = {
    "In": "In",
    "NotIn": "NotIn",
    "Exists": "Exists",
    "DoesNotExist": "DoesNotExist",
}
_NODE_OPERATORS: Final[dict[str, Operator]] = _OPERATORS | {"Gt": "Gt", "Lt": "Lt"}
_INT64_MAX: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on one label."""

    key: str
    operator: Operator
    values: tuple[str, ...]

    def matches(self, labels: Labels) -> bool:
        """Return whether labels meet the condition; NotIn and DoesNotExist hold for a missing label."""
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value is not None and value in self.values
            case "NotIn":
                return value is None or value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case _:
                return value is not None and self._compares(value)

    def _compares(self, value: str) -> bool:
        """Compare as integers; a text that is not an integer of 64 bits on either side never matches."""
        if len(self.values) != 1:
            return False
        label, bound = read_integer(value), read_integer(self.values[0])
        if label is None or bound is None:
            return False
        return label > bound if self.operator == "Gt" else label < bound


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """Conditions that all must hold. None matches nothing, as an absent selector; () matches everything."""

    requirements: tuple[Requirement, ...] | None

    def matches(self, labels: Labels) -> bool:
        """Return whether labels meet every condition."""
        return self.requirements is not None and _meet_all(self.requirements, labels)

    @property
    def is_empty(self) -> bool:
        """True if the selector is present and has no condition."""
        return self.requirements == ()


NOTHING: Final = LabelSelector(None)


@dataclass(frozen=True, slots=True)
class NodeSelectorTerm:
    """Conditions on a node's labels and its name that all must hold. A malformed term matches nothing."""

    expressions: tuple[Requirement, ...]
    fields: tuple[Requirement, ...]
    is_malformed: bool = False

    def matches(self, labels: Labels, name: str) -> bool:
        """Return whether a node meets the term; without a name, conditions on fields are passed over."""
        if self.is_malformed or not _meet_all(self.expressions, labels):
            return False
        return not name or not self.fields or _meet_all(self.fields, {"metadata.name": name})


@dataclass(frozen=True, slots=True)
class NodeSelector:
    """Terms of which one must hold; a selector without terms matches no node."""

    terms: tuple[NodeSelectorTerm, ...]

    def matches(self, labels: Labels, name: str = "") -> bool:
        """Return whether a node meets any term."""
        # A loop, as in _meet_all: a judgement comes here several times per node.
        for term in self.terms:  # noqa: SIM110
            if term.matches(labels, name):
                return True
        return False


def _meet_all(requirements: tuple[Requirement, ...], labels: Labels) -> bool:
    # A judgement comes here once per pod of the cluster, and a loop takes half the time of a generator in ``all``.
    for requirement in requirements:  # noqa: SIM110
        if not requirement.matches(labels):
            return False
    return True


def read_integer(text: str) -> int | None:
    """Read an integer of 64 bits as Go's ParseInt does; None if the text is none."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 64:
        return None
    number = int(text)
    return number if -_INT64_MAX - 1 <= number <= _INT64_MAX else None


def read_label_selector(parent: Object, key: str, path: str = "") -> LabelSelector:
    """Read a LabelSelector; an absent one matches nothing, an empty one everything."""
    value = parent.get(key)
    if value is None:
        return NOTHING
    location = f"{path}.{key}" if path else key
    if not isinstance(value, dict):
        raise FieldError(location, f"is {quote(value)}, not a mapping")
    labels = read_labels(value, "matchLabels", location)
    equals = tuple(Requirement(label, "In", (text,)) for label, text in labels.items())
    return LabelSelector(equals + _read_requirements(value, "matchExpressions", location, _OPERATORS))


def read_node_selector(parent: Object, key: str, path: str = "") -> NodeSelector | None:
    """Read a NodeSelector; None if it is absent. Empty terms are left out, because they select no node."""
    value = parent.get(key)
    if value is None:
        return None
    location = f"{path}.{key}" if path else key
    if not isinstance(value, dict):
        raise FieldError(location, f"is {quote(value)}, not a mapping")
    terms = [
        read_node_selector_term(term, location) for location, term in read_items(value, "nodeSelectorTerms", location)
    ]
    return NodeSelector(tuple(term for term in terms if term.expressions or term.fields or term.is_malformed))


def read_node_selector_term(term: Object, path: str) -> NodeSelectorTerm:
    """Read one term; conditions that Kubernetes cannot parse make it malformed, which is not an error there."""
    try:
        expressions = _read_requirements(term, "matchExpressions", path, _NODE_OPERATORS)
        fields = _read_requirements(term, "matchFields", path, _NODE_OPERATORS)
    except _RequirementError:
        return NodeSelectorTerm((), (), is_malformed=True)
    is_malformed = any(field.operator not in ("In", "NotIn") or len(field.values) != 1 for field in fields)
    return NodeSelectorTerm(expressions, fields, is_malformed)


class _RequirementError(FieldError):
    """A condition with the right types and a content that matches nothing."""


def _read_requirements(
    parent: Object, key: str, path: str, operators: Mapping[str, Operator]
) -> tuple[Requirement, ...]:
    return tuple(_read_requirement(item, location, operators) for location, item in read_items(parent, key, path))


def _read_requirement(item: Object, path: str, operators: Mapping[str, Operator]) -> Requirement:
    name, values = read_text(item, "operator", path), read_texts(item, "values", path)
    operator = operators.get(name)
    if operator is None:
        raise _RequirementError(f"{path}.operator", f"is {quote(name)}, not one of {', '.join(operators)}")
    takes_values = operator not in ("Exists", "DoesNotExist")
    if takes_values != bool(values):
        raise _RequirementError(f"{path}.values", f"has {len(values)} entries, which {operator} does not allow")
    if operator in ("Gt", "Lt") and (len(values) != 1 or read_integer(values[0]) is None):
        raise _RequirementError(f"{path}.values", f"is {quote(list(values))}, not one integer")
    return Requirement(read_text(item, "key", path), operator, values)
