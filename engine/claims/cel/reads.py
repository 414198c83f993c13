"""The properties of a device that decide a selector, so that it is evaluated once for devices that share them."""

from dataclasses import dataclass

from engine.claims.cel.rendering import is_bind
from engine.claims.cel.syntax import Call, Comprehension, Identifier, Literal, Node, Select, list_children

Path = tuple[str, str, str]
"""``attributes`` or ``capacity``, a domain ("" for the driver's own), and a short name."""


@dataclass(frozen=True, slots=True)
class Reads:
    """Attributes and capacities that an expression reads; driver and sharing of a device always count."""

    paths: tuple[Path, ...]


class _UnboundedError(Exception):
    """An expression that may read any property."""


Chain = tuple[str, ...]
"""Names from the device on: ``("attributes", "gpu.example.com", "model")``."""

_DRIVER = "\0driver"
"""The driver's name in a chain: ``device.attributes[device.driver]``."""


def find_reads(root: Node) -> Reads | None:
    """Find the properties that an expression reads; None if it may read any."""
    paths: set[Path] = set()
    try:
        _visit(root, {}, paths)
    except _UnboundedError:
        return None
    return Reads(tuple(sorted(paths)))


def _visit(node: Node, bound: dict[str, Chain], paths: set[Path]) -> None:
    chain = _follow_chain(node, bound)
    if chain is not None:
        _add(chain, paths)
        return
    match node:
        case Call(function="@in", arguments=(Literal(value=str() as name), values)):
            domain = _follow_chain(values, bound)
            if domain is not None and len(domain) == 2:
                _add((*domain, name), paths)
                return
        case Comprehension() if is_bind(node):
            start = _follow_chain(node.start, bound)
            if start is None:
                _visit(node.start, bound, paths)
            inner = {name: link for name, link in bound.items() if name != node.accumulator}
            _visit(node.result, inner if start is None else inner | {node.accumulator: start}, paths)
            return
        case Comprehension():
            bound = {name: link for name, link in bound.items() if name not in (node.variable, node.second_variable)}
    for child in list_children(node):
        _visit(child, bound, paths)


def _add(chain: Chain, paths: set[Path]) -> None:
    if chain and chain[0] in ("driver", "allowMultipleAllocations"):
        return
    if len(chain) < 3:
        raise _UnboundedError
    paths.add((chain[0], "" if chain[1] == _DRIVER else chain[1], chain[2]))


def _follow_chain(node: Node, bound: dict[str, Chain]) -> Chain | None:
    """Return the names that lead from the device to a node; None if it is none of its properties."""
    match node:
        case Identifier(name=name):
            if name in bound:
                return bound[name]
            return tuple(name.split(".")[1:]) if name == "device" or name.startswith("device.") else None
        case Select(operand=operand, field=field):
            return _extend(_follow_chain(operand, bound), field)
        case Call(function="_[_]" | "_[?_]" | "_?._", arguments=(operand, Literal(value=str() as key))):
            return _extend(_follow_chain(operand, bound), key)
        case Call(function="_[_]" | "_[?_]", arguments=(operand, key)):
            base = _follow_chain(operand, bound)
            if base is None:
                return None
            if len(base) == 1 and _follow_chain(key, bound) == ("driver",):
                return _extend(base, _DRIVER)
            raise _UnboundedError
    return None


def _extend(chain: Chain | None, name: str) -> Chain | None:
    return None if chain is None else (*chain, name)
