"""Base of all answers."""

from typing import Final

from pydantic import BaseModel, ConfigDict

NUMBERS: Final = (
    "By name with the unit: `_mib`, `_percent` (of one device) or `_seconds`; a name without one counts what it says. "
    "The amounts of a quota begin with its resource, whose unit they have."
)
"""The description of numbers by name."""


class Answer(BaseModel):
    # The JSON is put together from bytes (``engine.summaries.answer``): a field that no model has must fail the tests.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
