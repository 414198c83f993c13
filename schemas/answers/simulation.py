"""The JSON that the API gives to people about a pod that does not exist yet."""

from typing import Final

from pydantic import Field

from .attempts import FullSchedulerLog
from .base import Answer
from .diagnosis import Diagnosis
from .suggestions import Suggestions


class Simulation(Answer):
    """Simulated placement of a pod. Nothing was written, and no scheduler was asked."""

    node: str | None = Field(description="Null where it fits no node.")
    schedulerlog: FullSchedulerLog | None = Field(
        description="Log of the simulated attempt; null for a pod that requests no device."
    )
    diagnosis: Diagnosis | None = Field(
        description="Diagnosis of the simulated attempt; null for a pod that requests no device."
    )
    suggestions: Suggestions | None = Field(
        description="Suggestions for the simulated attempt; `attempt` is empty. Null for a pod that requests no device."
    )


ANSWERS: Final = (Simulation,)
"""Each has a JSON Schema of its own."""
