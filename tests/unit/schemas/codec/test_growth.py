"""M11: a record of the topics is decoded in time that grows with its length, whichever of its fields is long.

Each golden record, with each of its lists, objects and texts in turn many times as long.
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import orjson
import pytest

from schemas.codec.records import decode
from tests.support.growth import FACTOR, is_linear

GOLDEN: Final = Path("tests/contract/golden")
FIRST_RECORDS: Final = [kind / "001.json" for kind in sorted(GOLDEN.iterdir()) if kind.is_dir()]
"""The record of each type that has every field."""
SIZE: Final = 1_000


Longer = Callable[[int], Any]


def iterate_longer(value: Any) -> Iterator[Longer]:
    """Iterate over the parts of the JSON value, each as a function that makes the value with that part so many times as
    long.
    """
    if isinstance(value, str) and value:
        yield lambda size: value * size
    elif isinstance(value, list) and value:
        yield lambda size: (value * size)[:size]
        yield from (_with_first(value, longer) for longer in iterate_longer(value[0]))
    elif isinstance(value, dict):
        member = next(iter(value.values()), None)
        yield lambda size: value | dict.fromkeys(map(str, range(size)), member)
        for name, part in value.items():
            yield from (_with_field(value, name, longer) for longer in iterate_longer(part))


def _with_first(values: list[Any], longer: Longer) -> Longer:
    return lambda size: [longer(size), *values[1:]]


def _with_field(value: dict[str, Any], name: str, longer: Longer) -> Longer:
    return lambda size: value | {name: longer(size)}


@pytest.mark.parametrize(
    "file", FIRST_RECORDS, ids=[file.parent.name.removeprefix("io.schedulerlog.") for file in FIRST_RECORDS]
)
def test_m11_a_record_of_which_any_field_is_long_is_decoded_in_time_that_grows_with_it(file: Path) -> None:
    value = orjson.loads(file.read_bytes())
    headers = orjson.loads(file.with_suffix(".headers.json").read_bytes())
    encoded = [(name, text.encode()) for name, text in headers.items() if name != "key"]
    for longer in iterate_longer(value):
        written = {size: orjson.dumps(longer(size)) for size in (SIZE, FACTOR * SIZE)}
        assert is_linear(partial(_decode_size, written, encoded), SIZE), written[SIZE][:300]


def _decode_size(written: dict[int, bytes], headers: list[tuple[str, bytes]], size: int) -> None:
    decode(written[size], headers)
