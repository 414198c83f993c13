"""Names that an API server accepts: the check of a foreign name before it becomes part of a path."""

import re
from typing import Final

# Only ASCII: names contain no letters and digits of other scripts.
_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII)


def find_label_problem(name: str) -> str | None:
    """Find the problem of ``name`` as an RFC 1123 label (namespaces); None for a valid one."""
    if not name:
        return "is empty"
    if len(name) > 63:
        return f"has {len(name)} characters, RFC 1123 labels have at most 63"
    return _find_part_problem(name)


def find_subdomain_problem(name: str) -> str | None:
    """Find the problem of ``name`` as an RFC 1123 subdomain (pods and nodes); None for a valid one."""
    if not name:
        return "is empty"
    if len(name) > 253:
        return f"has {len(name)} characters, RFC 1123 subdomains have at most 253"
    return next((problem for part in name.split(".") if (problem := _find_part_problem(part))), None)


def _find_part_problem(part: str) -> str | None:
    if _LABEL.fullmatch(part):
        return None
    if forbidden := re.sub(r"[-a-z0-9]", "", part, flags=re.ASCII):
        return f"has {forbidden[0]!a}, but RFC 1123 allows only a-z, 0-9 and '-'"
    return "has a part that does not begin and end with a letter or a digit, as RFC 1123 requires"
