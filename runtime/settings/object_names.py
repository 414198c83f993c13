"""The names that an API server accepts, so that a name from outside is checked before it becomes part of a path."""

import re
from typing import Final

# ASCII alone: letters and digits of other scripts are in no name.
_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII)


def label_problem(name: str) -> str | None:
    """Explain what is wrong with ``name`` as an RFC 1123 label (namespaces); None for a valid one."""
    if not name:
        return "is empty"
    if len(name) > 63:
        return f"has {len(name)} characters, RFC 1123 labels have at most 63"
    return _part_problem(name)


def subdomain_problem(name: str) -> str | None:
    """Explain what is wrong with ``name`` as an RFC 1123 subdomain (pods and nodes); None for a valid one."""
    if not name:
        return "is empty"
    if len(name) > 253:
        return f"has {len(name)} characters, RFC 1123 subdomains have at most 253"
    return next((problem for part in name.split(".") if (problem := _part_problem(part))), None)


def _part_problem(part: str) -> str | None:
    if _LABEL.fullmatch(part):
        return None
    if forbidden := re.sub(r"[-a-z0-9]", "", part, flags=re.ASCII):
        return f"has {forbidden[0]!a}, but RFC 1123 allows only a-z, 0-9 and '-'"
    return "has a part that does not begin and end with a letter or a digit, as RFC 1123 requires"
