"""Labels of pods that a setting names. Pure, and without pydantic."""

import re
from typing import Final

_KEY: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9.]{0,252}/)?[A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?", re.ASCII)


def parse_label_names(text: str) -> tuple[str, ...]:
    """Parse names of labels between commas, ``team,example.com/cost-center``. Raises ``ValueError``."""
    names = tuple(dict.fromkeys(name for part in text.split(",") if (name := part.strip())))
    if wrong := next((name for name in names if not _KEY.fullmatch(name)), None):
        raise ValueError(f"{wrong!r} is not the name of a label: write for example team,example.com/cost")
    return names
