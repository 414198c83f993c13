"""An answer for programs: JSON, YAML, or the names in it. Pure."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from cli.terminal.safe_text import find_hidden


def to_json(answer: Any) -> str:
    """Convert to indented JSON; escapes only the characters that a terminal would obey."""
    text = json.dumps(answer, indent=2, ensure_ascii=False)
    hidden = find_hidden(text)
    if not hidden:
        return text
    return re.sub(f"[{re.escape(''.join(hidden))}]", lambda match: json.dumps(match[0])[1:-1], text)


def to_json_line(answer: Any) -> str:
    """Convert to JSON on one line, for one answer of many."""
    return json.dumps(answer)


def to_yaml(answer: Any) -> str:
    """Convert to YAML, in the order of the fields."""
    import yaml

    has_hidden = bool(find_hidden(json.dumps(answer, ensure_ascii=False)))
    return str(yaml.safe_dump(answer, sort_keys=False, allow_unicode=not has_hidden)).rstrip("\n")


def to_names(items: Iterable[Mapping[str, Any]]) -> str:
    """Convert to lines of ``pod/NAME`` without repetitions, as ``kubectl -o name`` prints them."""
    return "\n".join(dict.fromkeys(f"pod/{item['name']}" for item in items))
