"""PromQL read by a parser of Prometheus' grammar: which series an expression asks for, and its value for given rates.

``value`` evaluates the few forms that the rules use, on increments as steady as a test says; it is not Prometheus.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import promql_parser as promql

Node = Any
Labels = Mapping[str, str]
Vector = list[tuple[dict[str, str], float]]

GRAFANA: Final = re.compile(r"\$__rate_interval|\$__interval|\$__range")


@dataclass(frozen=True, slots=True)
class Selected:
    name: str
    labels: frozenset[str]
    """Of its matchers."""


def parsed(expression: str) -> Node:
    """Raises ``ValueError``. Grafana's variables for intervals are read as five minutes."""
    return promql.parse(GRAFANA.sub("5m", expression))


def selected(node: Node) -> Iterator[Selected]:
    """Every series that the expression asks for."""
    if isinstance(node, promql.VectorSelector):
        yield Selected(node.name or "", frozenset(matcher.name for matcher in node.matchers.matchers))
    for inner in _inner(node):
        yield from selected(inner)


def grouped(node: Node) -> Iterator[tuple[frozenset[str], frozenset[str]]]:
    """For each aggregation the labels that it groups by, and the names of the series below it."""
    if isinstance(node, promql.AggregateExpr) and node.modifier is not None:
        yield frozenset(node.modifier.labels), frozenset(selector.name for selector in selected(node.expr))
    for inner in _inner(node):
        yield from grouped(inner)


def _inner(node: Node) -> list[Node]:
    if isinstance(node, promql.BinaryExpr):
        return [node.lhs, node.rhs]
    if isinstance(node, promql.AggregateExpr):
        return [node.expr, *([node.param] if node.param is not None else [])]
    if isinstance(node, promql.Call):
        return list(node.args)
    if isinstance(node, promql.MatrixSelector):
        return [node.vector_selector]
    return [node.expr] if isinstance(node, promql.ParenExpr | promql.UnaryExpr | promql.SubqueryExpr) else []


@dataclass(slots=True)
class Numbers:
    """``rates``: series to its rate a second in each window; ``gauges``: recorded series to their values."""

    rates: Sequence[tuple[str, Labels, float]] = ()
    gauges: dict[str, float] = field(default_factory=dict)


def value(expression: str, numbers: Numbers) -> float | None:
    """The value of an expression with at most one series without labels; None where it has no result."""
    found = _value(parsed(expression), numbers)
    if isinstance(found, float):
        return found
    assert len(found) <= 1
    return found[0][1] if found else None


def _value(node: Node, numbers: Numbers) -> float | Vector:
    if isinstance(node, promql.NumberLiteral):
        return float(node.val)
    if isinstance(node, promql.ParenExpr):
        return _value(node.expr, numbers)
    if isinstance(node, promql.VectorSelector):
        return [({}, numbers.gauges[node.name])] if node.name in numbers.gauges else []
    if isinstance(node, promql.Call) and node.func.name == "vector":
        number = _value(node.args[0], numbers)
        assert isinstance(number, float)
        return [({}, number)]
    if isinstance(node, promql.Call) and node.func.name == "rate":
        chosen = node.args[0].vector_selector
        return [(dict(labels), rate) for name, labels, rate in numbers.rates if _matches(chosen, name, labels)]
    if isinstance(node, promql.AggregateExpr) and str(node.op) == "sum" and node.modifier is None:
        series = _value(node.expr, numbers)
        assert isinstance(series, list)
        return [({}, math.fsum(rate for _, rate in series))] if series else []
    assert isinstance(node, promql.BinaryExpr), f"no evaluation of {node}"
    return _binary(str(node.op), _value(node.lhs, numbers), _value(node.rhs, numbers))


def _matches(selector: Node, name: str, labels: Labels) -> bool:
    tests = {"=": lambda a, b: a == b, "!=": lambda a, b: a != b}
    tests |= {"=~": lambda a, b: bool(re.fullmatch(b, a)), "!~": lambda a, b: not re.fullmatch(b, a)}
    signs = {"Equal": "=", "NotEqual": "!=", "Re": "=~", "NotRe": "!~"}
    return name == selector.name and all(
        tests[signs[str(matcher.op).rpartition(".")[2]]](labels.get(matcher.name, ""), matcher.value)
        for matcher in selector.matchers.matchers
    )


def _binary(sign: str, left: float | Vector, right: float | Vector) -> float | Vector:
    if sign == "or":
        return left or right
    if sign == "and":
        return left if right else []
    first, second = _number(left), _number(right)
    if first is None or second is None:
        return []
    if sign == ">":
        return left if first > second else []
    found = _divided(first, second) if sign == "/" else {"-": first - second, "*": first * second}[sign]
    return found if isinstance(left, float) and isinstance(right, float) else [({}, found)]


def _number(side: float | Vector) -> float | None:
    return side if isinstance(side, float) else side[0][1] if side else None


def _divided(first: float, second: float) -> float:
    # As Prometheus divides: nothing by nothing is not a number, which is greater than nothing.
    return first / second if second else math.nan if not first else math.inf
