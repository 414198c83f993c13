"""The parameters of the report of failures."""

from datetime import UTC, datetime
from typing import Literal, Self

from pydantic import Field, model_validator

from api.http.param_types import NamespaceName, TimeText
from api.http.query_base import Query
from api.http.trends_query import TrendsQuery

ReportFormat = Literal["json", "csv", "markdown", "html"]


class ReportQuery(Query):
    namespace: NamespaceName | None = Field(None, description="The pods' namespace; all of them without it.")
    since: TimeText = Field("7d", description="From this time on: RFC 3339, or 15m, 2h, 7d ago.")
    until: TimeText | None = Field(None, description="Before this time: RFC 3339, or 15m, 2h, 7d ago.")
    lang: Literal["en", "zh"] = Field("en", description="The language of meanings and remedies.")
    format: ReportFormat = Field(
        "json", description="json; csv: a row per number; markdown; html: a page of its own, with plots."
    )

    @model_validator(mode="after")
    def _is_a_range(self) -> Self:
        TrendsQuery(since=self.since, until=self.until).range(datetime.now(UTC))
        return self
