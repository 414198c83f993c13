"""The text below a field, in the JSON Schema of its model."""

import ast
import inspect
import sys
from collections.abc import Iterator, Mapping
from functools import cache
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
                for name, text in list_field_texts(above).items():
                    properties.get(name, {}).setdefault("description", text)
        return schema


def list_field_texts(model: type[BaseModel]) -> Mapping[str, str]:
    """List the text below each field that the class itself declares."""
    return _parse_module(model.__module__).get(model.__name__, {})


@cache
def _parse_module(name: str) -> Mapping[str, Mapping[str, str]]:
    """Parse the texts by class and field; the source is parsed once for all of its classes."""
    tree = ast.parse(inspect.getsource(sys.modules[name]))
    return {node.name: dict(_parse_class(node)) for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}


def _parse_class(declared: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for field, below in pairwise(declared.body):
        match field, below:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                yield name, inspect.cleandoc(text)
