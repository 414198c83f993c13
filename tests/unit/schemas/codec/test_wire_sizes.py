"""Weight of a big cluster's verdicts: records below 64 KiB, and 45 kB on the wire for 40,000 of them."""

import random

import numpy as np
import pytest
import zstandard

from schemas.codec.chunking import divide_sizes
from schemas.codec.records import MAX_VALUE_BYTES, encode
from schemas.events import DevicesJudged
from tests.support.builders.events import build_devices_judged
from tests.support.builders.node_states import a_random_state

NODES, DEVICES_PER_NODE = 5_000, 8
BYTES_OF_AN_ATTEMPT, WIRE_BYTES_OF_AN_ATTEMPT = 350_000, 45_000


@pytest.fixture(scope="module")
def values() -> list[bytes]:
    """One attempt of 5,000 nodes x 8 devices, all refused for random reasons, as values of records."""
    names = [f"gpu-node-{number:05}.cluster.example" for number in range(NODES)]
    # A node: its name, three numbers, and two characters for each device's verdict.
    sizes = np.full(NODES, len(names[0]) + 3 + 3 * 5 + DEVICES_PER_NODE * 2)
    draw = random.Random(1)
    return [encode(a_run(names[cut], part, draw)).value for part, cut in enumerate(divide_sizes(sizes))]


def a_run(names: list[str], part: int, draw: random.Random) -> DevicesJudged:
    revision = [draw.randrange(1_000) for _ in names]
    return build_devices_judged(names, per_node=DEVICES_PER_NODE, seed=part, part=part, revision=revision)


def test_every_record_is_below_what_intermediaries_forward(values: list[bytes]) -> None:
    assert max(map(len, values)) < MAX_VALUE_BYTES
    assert min(map(len, values[:-1])) > MAX_VALUE_BYTES * 0.6, "records should be well filled"


def test_an_attempt_is_small_before_and_after_compression(values: list[bytes]) -> None:
    # Level 3 is aiokafka's default.
    wire = len(zstandard.ZstdCompressor(level=3).compress(b"".join(values)))
    assert sum(map(len, values)) < BYTES_OF_AN_ATTEMPT
    assert wire < WIRE_BYTES_OF_AN_ATTEMPT


def test_a_state_of_many_devices_fits_into_one_record() -> None:
    assert len(encode(a_random_state("gpu-node-00001.cluster.example", 128)).value) < MAX_VALUE_BYTES
