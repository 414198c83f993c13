"""PromQL read by a parser of Prometheus' grammar: which series an expression asks for, and its value for given rates.

``evaluate`` evaluates the few forms that the rules use, on increments as steady as a test says; it is not Prometheus.
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
    """Labels of its matchers."""


def parse(expression: str) -> Node:
    """Parse an expression. Raises ``ValueError``. Grafana's variables for intervals are read as five minutes."""
    return promql.parse(GRAFANA.sub("5m", expression))


def list_selected(node: Node) -> Iterator[Selected]:
    """List every series that the expression asks for."""
    if isinstance(node, promql.VectorSelector):
        yield Selected(node.name or "", frozenset(matcher.name for matcher in node.matchers.matchers))
    for inner in _list_inner(node):
        yield from list_selected(inner)


def list_groups(node: Node) -> Iterator[tuple[frozenset[str], frozenset[str]]]:
    """List for each aggregation the labels that it groups by, and the names of the series below it."""
    if isinstance(node, promql.AggregateExpr) and node.modifier is not None:
        yield frozenset(node.modifier.labels), frozenset(selector.name for selector in list_selected(node.expr))
    for inner in _list_inner(node):
        yield from list_groups(inner)


def _list_inner(node: Node) -> list[Node]:
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


def evaluate(expression: str, numbers: Numbers) -> float | None:
    """Evaluate an expression with at most one series without labels; None where it has no result."""
    result = _evaluate_node(parse(expression), numbers)
    if isinstance(result, float):
        return result
    assert len(result) <= 1
    return result[0][1] if result else None


def _evaluate_node(node: Node, numbers: Numbers) -> float | Vector:
    if isinstance(node, promql.NumberLiteral):
        return float(node.val)
    if isinstance(node, promql.ParenExpr):
        return _evaluate_node(node.expr, numbers)
    if isinstance(node, promql.VectorSelector):
        return [({}, numbers.gauges[node.name])] if node.name in numbers.gauges else []
    if isinstance(node, promql.Call) and node.func.name == "vector":
        number = _evaluate_node(node.args[0], numbers)
        assert isinstance(number, float)
        return [({}, number)]
    if isinstance(node, promql.Call) and node.func.name == "rate":
        chosen = node.args[0].vector_selector
        return [(dict(labels), rate) for name, labels, rate in numbers.rates if _matches(chosen, name, labels)]
    if isinstance(node, promql.AggregateExpr) and str(node.op) == "sum" and node.modifier is None:
        series = _evaluate_node(node.expr, numbers)
        assert isinstance(series, list)
        return [({}, math.fsum(rate for _, rate in series))] if series else []
    assert isinstance(node, promql.BinaryExpr), f"no evaluation of {node}"
    return _combine(str(node.op), _evaluate_node(node.lhs, numbers), _evaluate_node(node.rhs, numbers))


def _matches(selector: Node, name: str, labels: Labels) -> bool:
    tests = {"=": lambda a, b: a == b, "!=": lambda a, b: a != b}
    tests |= {"=~": lambda a, b: bool(re.fullmatch(b, a)), "!~": lambda a, b: not re.fullmatch(b, a)}
    signs = {"Equal": "=", "NotEqual": "!=", "Re": "=~", "NotRe": "!~"}
    return name == selector.name and all(
        tests[signs[str(matcher.op).rpartition(".")[2]]](labels.get(matcher.name, ""), matcher.value)
        for matcher in selector.matchers.matchers
    )


def _combine(sign: str, left: float | Vector, right: float | Vector) -> float | Vector:
    if sign == "or":
        return left or right
    if sign == "and":
        return left if right else []
    first, second = _get_number(left), _get_number(right)
    if first is None or second is None:
        return []
    if sign == ">":
        return left if first > second else []
    result = _divide(first, second) if sign == "/" else {"-": first - second, "*": first * second}[sign]
    return result if isinstance(left, float) and isinstance(right, float) else [({}, result)]


def _get_number(side: float | Vector) -> float | None:
    return side if isinstance(side, float) else side[0][1] if side else None


def _divide(first: float, second: float) -> float:
    # As Prometheus divides: nothing by nothing is not a number, which is greater than nothing.
    return first / second if second else math.nan if not first else math.inf
