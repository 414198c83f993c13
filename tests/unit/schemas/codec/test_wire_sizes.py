"""What the verdicts of a big cluster weigh: records below 64 KiB, and below 30 bytes a verdict on the wire."""

import numpy as np
import pytest
import zstandard

from schemas.codec.chunking import runs
from schemas.codec.records import MAX_VALUE_BYTES, encode
from schemas.events import DevicesJudged
from tests.support.builders.events import devices_judged

NODES, EACH = 5_000, 8


@pytest.fixture(scope="module")
def values() -> list[bytes]:
    """One attempt of 5,000 nodes x 8 devices, all refused, random UUIDs, as values of records."""
    names = [f"gpu-node-{place:05}.cluster.example" for place in range(NODES)]
    # A device: 43 characters of UUID, and nine numbers of at most 40 characters together.
    sizes = np.full(NODES, len(names[0]) + 3 + 3 * 6 + EACH * (43 + 40))
    events = [a_run(names, cut, part) for part, cut in enumerate(runs(sizes))]
    return [encode(event).value for event in events]


def a_run(names: list[str], cut: slice, part: int) -> DevicesJudged:
    index = list(range(cut.start, cut.stop))
    return devices_judged(names[cut], each=EACH, seed=part, part=part, node_index=index)


def test_every_record_is_below_what_intermediaries_forward(values: list[bytes]) -> None:
    assert max(map(len, values)) < MAX_VALUE_BYTES
    assert min(map(len, values[:-1])) > MAX_VALUE_BYTES * 0.6, "records should be well filled"


@pytest.mark.parametrize("records_in_a_batch", [1, 16])
def test_a_verdict_weighs_less_than_30_bytes_on_the_wire(values: list[bytes], records_in_a_batch: int) -> None:
    batches = [values[start : start + records_in_a_batch] for start in range(0, len(values), records_in_a_batch)]
    # Level 3 is what aiokafka uses unless told otherwise.
    wire = sum(len(zstandard.ZstdCompressor(level=3).compress(b"".join(batch))) for batch in batches)
    assert wire / (NODES * EACH) < 30
