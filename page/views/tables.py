"""Tables of words beside the modules of this package: TOML, read once."""

import tomllib
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any


@cache
def table(name: str) -> MappingProxyType[str, Any]:
    """What ``name.toml`` holds."""
    source = Path(__file__).with_name(f"{name}.toml")
    return MappingProxyType(tomllib.loads(source.read_text(encoding="utf-8")))
