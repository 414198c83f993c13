"""An answer for programs: JSON, YAML, or the names in it. Pure."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from cli.terminal.safe_text import hidden_characters


def as_json(answer: Any) -> str:
    """Indented, and with the text of every language as it is; only what a terminal would obey is escaped."""
    text = json.dumps(answer, indent=2, ensure_ascii=False)
    hidden = hidden_characters(text)
    if not hidden:
        return text
    return re.sub(f"[{re.escape(''.join(hidden))}]", lambda found: json.dumps(found[0])[1:-1], text)


def as_line(answer: Any) -> str:
    """JSON on one line, for one of many."""
    return json.dumps(answer)


def as_yaml(answer: Any) -> str:
    """The same as YAML, in the order of the fields."""
    import yaml

    has_hidden = bool(hidden_characters(json.dumps(answer, ensure_ascii=False)))
    return str(yaml.safe_dump(answer, sort_keys=False, allow_unicode=not has_hidden)).rstrip("\n")


def names_of(items: Iterable[Mapping[str, Any]]) -> str:
    """``pod/NAME`` a line, as ``kubectl -o name`` prints them; each once."""
    return "\n".join(dict.fromkeys(f"pod/{item['name']}" for item in items))
