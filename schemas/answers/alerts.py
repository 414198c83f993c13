"""The JSON that the API gives to people about alerts."""

from typing import Final, Literal

from pydantic import Field

from .base import Answer


class AlertListed(Answer):
    """An alert as its last change left it."""

    rule: str
    severity: str = Field(description="Severity from the rule: info, warning, critical.")
    state: Literal["firing", "resolved"]
    summary: str = Field(description="For people, in one line.")
    summary_zh: str = Field(description="The summary in Chinese; empty for alerts of older versions.")
    labels: dict[str, str] = Field(description="Subject: `cluster`, `namespace` and `pod`, `node`, `reason`, …")
    numbers: dict[str, float] = Field(description="Numbers of its beginning, by name with the unit.")
    started_at: str
    changed_at: str
    evidence: dict[str, str] = Field(
        description="`api` and `opensearch` are paths to GET there, `attempt` is that of an attempt, `command` is a "
        "command line."
    )


class Alerts(Answer):
    total: int
    items: list[AlertListed] = Field(description="Most severe first, then latest first.")
    evaluated_until: str | None = Field(description="Time up to which the rules are evaluated; null: they never were.")
    is_current: bool = Field(description="False where that is minutes ago: alerts that began since then are missing.")


ANSWERS: Final = (Alerts,)
"""Each has a JSON Schema of its own."""
