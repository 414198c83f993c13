"""Expressions compiled by Google's CEL library, with Kubernetes' declarations for device selectors.

The library parses and checks. It does not evaluate here: see docs/decisions (CEL of device selectors).
"""

import json
import re
from functools import cache
from typing import Any, Final

from engine.claims.cel import signatures
from engine.claims.cel.checks import CompileError, check_literals
from engine.claims.cel.device_message import DescriptorPool
from engine.claims.cel.patterns import load_library
from engine.claims.cel.syntax import Call, CheckedExpression, Node, iterate_nodes
from engine.claims.cel.values import UnjudgedError
from engine.claims.cel.wire import decode_checked, decode_parsed

MAX_LENGTH: Final = 10 * 1024
"""Bytes that Kubernetes allows for one expression."""

_EXTENSIONS: Final = ("bindings", "optional", "sets", "lists", "two-var-comprehensions")
_ALIASES: Final = {
    "Quantity": signatures.QUANTITY,
    "Semver": signatures.VERSION,
    "IP": signatures.IP,
    "CIDR": signatures.CIDR,
    "URL": signatures.URL,
    "Format": signatures.FORMAT,
    "optional": "optional_type",
}
_POSITION: Final = re.compile(r"<input>:(\d+):(\d+):")
_CALL: Final = re.compile(
    r"<input>:(?P<line>\d+):(?P<column>\d+): found no matching overload for '[^']*' applied to '\((?P<types>[^']*)\)'"
)
_WORDS: Final = (
    (re.compile(r"(undefined field '[^']*') not found in struct '[^']*'"), r"\1"),
    (re.compile(r"expression of type '(?!\*error)([^']*)' cannot be the operand of a select operation"),
     r"type '\1' does not support field selection"),
    (re.compile(r"cannot be the range of a comprehension"), "cannot be range of a comprehension"),
    (re.compile(r"\\u003F"), "?"),
)  # fmt: skip
"""Words of the library for an error, and Kubernetes' own."""
_STATUS: Final = re.compile(r"^[A-Z_]+: (.*) \[[A-Z_]+\]$", re.DOTALL)


def compile_expression(text: str, *, with_lists: bool = False) -> CheckedExpression:
    """Compile a selector.

    Raises CompileError for what Kubernetes refuses to compile, UnjudgedError for what is beyond the bounds here or
    where the library is not installed. with_lists: the feature gate DRAListTypeAttributes.
    """
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise UnjudgedError("the expression has half of a surrogate pair, which no object in Kubernetes has") from None
    if size > MAX_LENGTH:
        raise UnjudgedError(f"the expression has {size:,} bytes, more than the {MAX_LENGTH:,} that Kubernetes allows")
    environment = load_environment(with_lists)
    try:
        message = environment.compile(text).serialize()
    except (RuntimeError, UnicodeError) as error:
        raise _explain(str(error), text) from None
    checked = decode_checked(message, text)
    check_literals(checked)
    _check_result(checked, with_lists)
    return checked


def parse_expression(text: str) -> Node | None:
    """Parse an expression without checking it; None if it does not parse."""
    try:
        return decode_parsed(load_environment(False).compile(text, disable_check=True).serialize(), text).root
    except (RuntimeError, UnicodeError):
        return None


@cache
def load_environment(with_lists: bool) -> Any:
    """Load Kubernetes' environment; raise UnjudgedError where the library is not installed."""
    cel = load_library()
    config = cel.NewEnvConfigFromYaml(json.dumps(_configure(with_lists)))
    return cel.NewEnv(config=config, descriptor_pool=DescriptorPool())


def _configure(with_lists: bool) -> dict[str, Any]:
    """Describe the environment as the library reads it: JSON is YAML."""
    # Kubernetes compiles what is stored with every function, also with those of feature gates that are off.
    functions, methods = signatures.FUNCTIONS | signatures.OPERATORS, signatures.METHODS
    names = sorted(functions.keys() | methods.keys())
    replaced = [{"name": name} for name in ("string", *signatures.OPERATORS)]
    value = "dyn" if with_lists else "any"
    return {
        "name": "kubernetes",
        "stdlib": {"exclude_functions": replaced},
        "extensions": [{"name": name} for name in _EXTENSIONS],
        "variables": [
            {"name": "device", "type_name": signatures.DEVICE},
            # A qualified name of its own, because a field of a message cannot have this type.
            {"name": "device.attributes", **_parse_type(f"map<string, map<string, {value}>>")},
            {"name": "device.capacity", **_parse_type("map<string, map<string, Quantity>>")},
        ],
        "functions": [
            {
                "name": name,
                "overloads": [
                    *(_describe_overload(name, text, is_method=False) for text in functions.get(name, ())),
                    *(_describe_overload(name, text, is_method=True) for text in methods.get(name, ())),
                ],
            }
            for name in names
        ],
    }


def _describe_overload(name: str, signature: str, *, is_method: bool) -> dict[str, Any]:
    types, _, result = signature.partition(" -> ")
    parameters = [_parse_type(text) for text in _split(types[1:-1])]
    overload = {"id": f"{name}{'.' if is_method else ''}{signature}", "return": _parse_type(result)}
    if is_method:
        return overload | {"target": parameters[0], "args": parameters[1:]}
    return overload | {"args": parameters}


def _parse_type(text: str) -> dict[str, Any]:
    name, bracket, parameters = text.removesuffix(">").partition("<")
    if len(name) == 1:
        return {"type_name": name, "is_type_param": True}
    parsed: dict[str, Any] = {"type_name": _ALIASES.get(name, name)}
    if bracket:
        parsed["params"] = [_parse_type(part) for part in _split(parameters)]
    return parsed


def _split(text: str, bracket: str = "<") -> list[str]:
    """Split types at the commas between them."""
    closing = ">" if bracket == "<" else ")"
    parts, depth, start = [], 0, 0
    for position, character in enumerate(text):
        depth += (character == bracket) - (character == closing)
        if character == "," and not depth:
            parts.append(text[start:position].strip())
            start = position + 1
    return [*parts, text[start:].strip()] if text.strip() else []


def _explain(text: str, expression: str) -> Exception:
    """Turn the library's error into Kubernetes' own text, or into the bound that was met."""
    status = _STATUS.match(text)
    message = status[1] if status else text
    if "recursion" in message:
        return UnjudgedError("the expression is nested more deeply than the CEL library here reads (32 levels)")
    if not message.startswith("ERROR:"):
        return UnjudgedError(f"the CEL library does not read the expression: {message}")
    for pattern, words in _WORDS:
        message = pattern.sub(words, message)
    errors = [error for error in message.removeprefix("ERROR: ").split("\nERROR: ") if not _is_follow_up(error)]
    errors.sort(key=_read_position)
    return CompileError(
        "compilation failed: " + "\n".join(f"ERROR: {_describe_calls(error, expression)}" for error in errors)
    )


def _read_position(error: str) -> tuple[int, ...]:
    position = _POSITION.match(error)
    return tuple(map(int, position.groups())) if position else ()


def _is_follow_up(error: str) -> bool:
    """Return whether an error only follows from another one; Kubernetes leaves those out."""
    return error.startswith("<input>:-1:-1:") or "expression of type '*error*'" in error


def _describe_calls(error: str, expression: str) -> str:
    """Write the types of a method's call as Kubernetes does, with the receiver in front."""
    call = _CALL.search(error)
    if not call or not _is_method(expression, int(call["line"]), int(call["column"])):
        return error
    receiver, *arguments = _split(call["types"], "(")
    return error[: call.start("types") - 1] + f"{receiver}.({', '.join(arguments)})" + error[call.end("types") + 1 :]


def _is_method(expression: str, line: int, column: int) -> bool:
    lines = expression.split("\n")
    offset = sum(len(text) + 1 for text in lines[: line - 1]) + column - 1
    message = load_environment(False).compile(expression, disable_check=True).serialize()
    parsed = decode_parsed(message, expression)
    return any(
        isinstance(node, Call) and node.target is not None and parsed.positions.get(node.id) == offset
        for node in iterate_nodes(parsed.root)
    )


def _check_result(checked: CheckedExpression, with_lists: bool) -> None:
    name = checked.result_type
    if name not in ("bool", "any") and not (with_lists and name == "dyn"):
        raise CompileError(f"must evaluate to bool or the unknown type, not {name}")
