"""For tests that cause thousands of failures, each of which would be logged."""

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture
def quiet_log() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)
