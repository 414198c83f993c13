"""The JSON that the API gives to people about a pod that does not exist yet."""

from typing import Final

from pydantic import Field

from .attempts import FullSchedulerLog
from .base import Answer
from .diagnosis import Diagnosis
from .suggestions import Suggestions


class Simulation(Answer):
    """Where a pod would go. Nothing was written, and no scheduler was asked."""

    node: str | None = Field(description="Null where it fits no node.")
    schedulerlog: FullSchedulerLog | None = Field(
        description="Of the attempt that was not made; null for a pod that asks for no device."
    )
    diagnosis: Diagnosis | None = Field(description="As above.")
    suggestions: Suggestions | None = Field(description="As above; `attempt` is empty.")


ANSWERS: Final = (Simulation,)
"""Each has a JSON Schema of its own."""
