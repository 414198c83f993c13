"""Objects as the text of a Helm template: YAML with short values on one line, as the manifests are written."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import yaml

from deploy.helm_from_kustomize.branches import ABSENT, Branch, Expression, HelmLines

WIDTH: Final = 120
_STEP: Final = "  "
_TOP: Final = frozenset({"metadata", "spec", "template", "rules"})
"""Keys whose values have lines of their own, however short they are."""


def write_object(item: Any) -> str:
    """Write an object with its conditions as YAML."""
    return "".join(f"{line}\n" for line in _write_entries(item, ""))


def write_scalar(value: Any) -> str:
    """Write a plain value so that it can stand anywhere, also between braces; Helm's braces in it are quoted."""
    text = yaml.safe_dump([value], default_flow_style=True, width=1 << 30, allow_unicode=True).strip()[1:-1]
    return text.replace("{{", '{{ "{{" }}')


def _write_entries(tree: Any, indent: str) -> Iterator[str]:
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from _write_entry(f"{write_scalar(key)}:", value, indent)
    else:
        for item in tree:
            yield from _write_entry("-", item, indent)


def _write_entry(head: str, value: Any, indent: str) -> Iterator[str]:
    if isinstance(value, Branch):
        yield from _write_branch(head, value, indent)
        return
    if isinstance(value, HelmLines):
        yield from (f"{indent}{line}" for line in value.text.splitlines())
        return
    flow = _write_flow(value)
    is_top = head.removesuffix(":") in _TOP and isinstance(value, dict | list) and value
    if flow is not None and not is_top and len(f"{indent}{head} {flow}") <= WIDTH:
        yield f"{indent}{head} {flow}"
    elif isinstance(value, dict | list):
        block = list(_write_entries(value, indent + _STEP))
        if head == "-":
            # The first entry of a map stands behind the dash.
            assert not block[0].lstrip().startswith("{{-"), block[0]  # noqa: S101
            yield f"{indent}- {block[0].lstrip()}"
            yield from block[1:]
        else:
            yield f"{indent}{head}"
            yield from block
    else:
        yield f"{indent}{head} {flow}"


def _write_branch(head: str, branch: Branch, indent: str) -> Iterator[str]:
    then, otherwise = (list(_write_present(head, side, indent)) for side in (branch.then, branch.otherwise))
    yield f"{indent}{{{{- if {branch.condition} }}}}" if then else f"{indent}{{{{- if not ({branch.condition}) }}}}"
    yield from then
    if then and otherwise:
        yield f"{indent}{{{{- else }}}}"
    yield from otherwise
    yield f"{indent}{{{{- end }}}}"


def _write_present(head: str, value: Any, indent: str) -> Iterable[str]:
    return () if value is ABSENT else _write_entry(head, value, indent)


def _write_flow(value: Any) -> str | None:
    """Write the value on one line; None where it has conditions or lines of Helm."""
    if isinstance(value, Branch | HelmLines) or value is ABSENT:
        return None
    if isinstance(value, Expression):
        return value.text
    if isinstance(value, dict):
        pairs = {write_scalar(key): _write_flow(part) for key, part in value.items()}
        return None if None in pairs.values() else f"{{{', '.join(f'{key}: {text}' for key, text in pairs.items())}}}"
    if isinstance(value, list):
        parts = [_write_flow(part) for part in value]
        return None if None in parts else f"[{', '.join(map(str, parts))}]"
    return write_scalar(value)
