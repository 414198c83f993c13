"""What every model of query parameters is based on."""

from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator


class Query(BaseModel):
    """Refuses unknown parameters: a misspelt filter that is ignored would give the answer to another question."""

    # ``allow``, because ``forbid`` would name only the wrong parameter and not those that exist.
    model_config = ConfigDict(extra="allow", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown(cls, parameters: Any) -> Any:
        known = [field.alias or name for name, field in cls.model_fields.items()]
        if unknown := sorted(set(parameters) - set(known)):
            raise ValueError(f"parameter {unknown[0][:60]!a} is unknown here; known are: {', '.join(known) or 'none'}")
        return parameters
