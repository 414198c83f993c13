"""Costs of calls in Kubernetes' units, which bound what one evaluation of a selector may take.

https://kubernetes.io/docs/reference/using-api/cel/#runtime-cost-budget
"""

from collections.abc import Callable, Sequence
from typing import Final

from engine.claims.cel.values import Network, Value, measure

LIMIT: Final = 1_000_000
"""Units that Kubernetes grants to one evaluation of a device selector."""

_PATTERN_LENGTHS: Final = {
    **dict.fromkeys(("dns1123Label", "dns1123LabelPrefix", "dns1035Label", "dns1035LabelPrefix"), 30),
    **dict.fromkeys(("dns1123Subdomain", "dns1123SubdomainPrefix", "qualifiedName"), 60),
    **dict.fromkeys(("date", "datetime"), 71),
    "labelValue": 40, "uri": 1103, "uuid": 70, "byte": 84,
}  # fmt: skip

LIST_LITERAL: Final = 10
MAP_LITERAL: Final = 30
STRUCT_LITERAL: Final = 40

Arguments = Sequence[Value]
Cost = Callable[[Arguments], int]


def _divide_by_ten(size: int) -> int:
    """Divide by ten and round up: the price of walking through a text."""
    return -(-size // 10)


def _traverse(arguments: Arguments) -> int:
    return _traverse_value(arguments[0])


def _traverse_value(value: Value) -> int:
    """Calculate the cost of a walk through a value and everything in it."""
    if type(value) in (str, bytes):
        return len(value) // 10
    return sum(map(_traverse_value, value)) if type(value) is tuple else 1


def _walk(arguments: Arguments) -> int:
    return _divide_by_ten(measure(arguments[0]))


def _walk_twice(arguments: Arguments) -> int:
    return _divide_by_ten(measure(arguments[0]) * 2)


def _search(arguments: Arguments) -> int:
    """Calculate the cost of a regular expression: the text times a quarter of the pattern."""
    return _divide_by_ten(1 + measure(arguments[0])) * -(-measure(arguments[1]) // 4)


def _join(arguments: Arguments) -> int:
    parts = arguments[0]
    separators = max(0, len(parts) - 1) * (len(arguments[1]) if len(arguments) > 1 else 0)
    return _divide_by_ten((sum(measure(part) for part in parts) + separators) * 2)


def _parse_address(arguments: Arguments) -> int:
    return 1 if isinstance(arguments[0], Network) else _walk(arguments)


def _find_address(arguments: Arguments) -> int:
    cost = _divide_by_ten(2 * measure(arguments[0]))
    return cost + (_divide_by_ten(measure(arguments[1])) if isinstance(arguments[1], str) else 0)


def _find_network(arguments: Arguments) -> int:
    return _find_address(arguments) + _walk(arguments) + 1


def _find_part(arguments: Arguments) -> int:
    return _walk(arguments) * _divide_by_ten(measure(arguments[1]))


def _allocate(size: int) -> int:
    return size + 1 + LIST_LITERAL


def _sort(arguments: Arguments) -> int:
    keys = arguments[-1]
    factor = 2.1 if keys and type(keys[0]) in (str, bytes) else 2.0
    return _allocate(int(len(keys) ** 2 * factor))


def _compare_sets(arguments: Arguments) -> int:
    return 1 + measure(arguments[0]) * measure(arguments[1])


def _compare(arguments: Arguments) -> int:
    if type(arguments[0]) not in (str, bytes):
        return 1
    return _divide_by_ten(min(map(measure, arguments)))


def compare_equal(arguments: Arguments) -> int:
    """Calculate the cost of an equality: the smaller side."""
    return _divide_by_ten(min(map(measure, arguments)))


def _add(arguments: Arguments) -> int:
    if type(arguments[0]) not in (str, bytes):
        return 1
    return _divide_by_ten(sum(map(measure, arguments)))


def _validate(arguments: Arguments) -> int:
    """Calculate the cost of a named format: the text times a quarter of the pattern that Kubernetes assumes."""
    return _divide_by_ten(1 + measure(arguments[1])) * -(-_PATTERN_LENGTHS[arguments[0].name] // 4)


COSTS: Final[dict[str, Cost]] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _traverse),
    **dict.fromkeys(("url", "lowerAscii", "upperAscii", "substring", "trim", "cidr", "isIP", "isCIDR"), _walk),
    **dict.fromkeys(("quantity", "isQuantity", "semver", "isSemver"), _walk),
    **dict.fromkeys(("startsWith", "endsWith", "strings.quote", "format"), _walk),
    **dict.fromkeys(("replace", "split", "ip.isCanonical"), _walk_twice),
    **dict.fromkeys(("find", "findAll", "matches"), _search),
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), _compare),
    "join": _join,
    "ip": _parse_address,
    "containsIP": _find_address,
    "containsCIDR": _find_network,
    "contains": _find_part,
    "validate": _validate,
    "_+_": _add,
    "lists.range": lambda arguments: _allocate(max(0, arguments[0])),
    "reverse": lambda arguments: _allocate(measure(arguments[0])),
    "slice": lambda arguments: _allocate(max(0, arguments[2] - arguments[1])),
    "flatten": lambda arguments: _allocate(measure(arguments[0]) * (arguments[1] if len(arguments) > 1 else 1)),
    **dict.fromkeys(("distinct", "sort", "@sortByAssociatedKeys"), _sort),
    "sets.contains": _compare_sets,
    "sets.intersects": _compare_sets,
    "sets.equivalent": lambda arguments: 2 * _compare_sets(arguments) - 1,
}
"""Costs by the name of a function; a call of any other one costs 1."""
