"""The version of this program."""

from typing import Final

# The program runs from its sources, where no package metadata names it; a test compares it with pyproject.toml.
VERSION: Final = "0.1.0"
