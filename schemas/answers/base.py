"""What every answer shares."""

from pydantic import BaseModel, ConfigDict


class Answer(BaseModel):
    # The JSON is put together from bytes (``summaries.answer``): a field that no model has must fail the tests.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
