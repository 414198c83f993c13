"""The text below a field, in the JSON Schema of its model."""

import ast
import inspect
import textwrap
from itertools import pairwise
from typing import Any

from pydantic import BaseModel, GetJsonSchemaHandler


class DescribedModel(BaseModel):
    """A model whose fields are described by the text below them.

    pydantic's ``use_attribute_docstrings`` does the same when a class is made: it reads and parses the source of each,
    which takes a third of the time of importing ``schemas``. Only documents need the descriptions.
    """

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        schema = handler(core_schema)
        properties = handler.resolve_ref_schema(schema).get("properties", {})
        for above in cls.__mro__:
            if issubclass(above, DescribedModel):
                for name, text in _texts(above).items():
                    properties.get(name, {}).setdefault("description", text)
        return schema


def _texts(model: type[DescribedModel]) -> dict[str, str]:
    """The text below each field that the class itself declares."""
    [declared] = ast.parse(textwrap.dedent(inspect.getsource(model))).body
    found: dict[str, str] = {}
    statements = declared.body if isinstance(declared, ast.ClassDef) else []
    for field, below in pairwise(statements):
        match field, below:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                found[name] = inspect.cleandoc(text)
    return found
