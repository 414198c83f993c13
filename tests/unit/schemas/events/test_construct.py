"""Models that are made without validation are those that pydantic would make."""

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel

import schemas.events
from schemas.events.base import Model

assert schemas.events  # its import makes all the models


def iterate_kinds(kind: type[Model]) -> Iterator[type[Model]]:
    for subclass in kind.__subclasses__():
        yield subclass
        yield from iterate_kinds(subclass)


KINDS = sorted(
    (kind for kind in iterate_kinds(Model) if kind.__module__.startswith("schemas.events")),
    key=lambda kind: kind.__name__,
)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_model_is_constructed_as_pydantic_does_it(kind: type[Model]) -> None:
    names = list(kind.model_fields)
    # Given in another order than that of the fields, and not all of them.
    for subset in (names[::-1], names[::2], []):
        values: dict[str, Any] = {name: f"any {name}" for name in subset}
        ours = kind.model_construct(**values)
        theirs = BaseModel.model_construct.__func__(kind, **values)  # type: ignore[attr-defined]
        # As lists: the order of fields is that of the JSON.
        assert list(ours.__dict__.items()) == list(theirs.__dict__.items())
        assert ours.model_fields_set == theirs.model_fields_set
        assert ours == theirs == ours.model_copy()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_model_is_copied_as_pydantic_does_it(kind: type[Model]) -> None:
    names = list(kind.model_fields)
    values: dict[str, Any] = {name: [f"any {name}"] for name in names[::2]}
    model = kind.model_construct(**values)
    for update in (None, {}, {name: f"another {name}" for name in names[::3]}):
        ours = model.model_copy(update=update)
        theirs = BaseModel.model_copy(model, update=update)
        assert type(ours) is type(theirs) is kind
        assert list(ours.__dict__.items()) == list(theirs.__dict__.items())
        assert all(ours.__dict__[name] is value for name, value in theirs.__dict__.items())
        assert ours.model_fields_set == theirs.model_fields_set
        # What is added to a copy is not added to the model.
        assert ours.__dict__ is not model.__dict__
        assert ours.model_fields_set is not model.model_fields_set


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_no_default_can_be_changed_for_all_models(kind: type[Model]) -> None:
    for name, field in kind.model_fields.items():
        if not field.is_required() and field.default_factory is None:
            assert isinstance(field.default, str | int | bool | float | tuple | None), name


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_no_field_has_another_name_in_json(kind: type[Model]) -> None:
    assert all(field.alias is None and field.validation_alias is None for field in kind.model_fields.values())
    assert not kind.__private_attributes__
