"""How long a server waits for who reads an answer."""

import asyncio
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from process.patient_http import PatientHttp

KIB = 1024


class Reader:
    """The transport to a client who takes ``taken`` bytes between two looks at what is left."""

    def __init__(self, left: int, taken: int) -> None:
        self.left, self.taken = left, taken
        self.was_aborted = asyncio.Event()
        self.has_all = asyncio.Event()

    def get_write_buffer_size(self) -> int:
        left, self.left = self.left, max(self.left - self.taken, 0)
        if not left:
            self.has_all.set()
        return left

    def abort(self) -> None:
        self.was_aborted.set()


class Impatient(PatientHttp):
    reading_seconds = 0.01

    async def send_to(self, reader: Reader) -> None:
        transport: Any = reader
        self.transport = transport
        self._watch_reading()


def protocol() -> Impatient:
    return Impatient(uvicorn.Config(app=lambda: None), ServerState(), {})


@pytest.mark.parametrize(("left", "taken"), [(1024 * KIB, 0), (1024 * KIB, 100), (100, 1), (16 * KIB, KIB)])
async def test_m2_who_takes_nothing_or_a_few_bytes_of_an_answer_is_hung_up_on(left: int, taken: int) -> None:
    await protocol().send_to(reader := Reader(left, taken))
    async with asyncio.timeout(60):
        await reader.was_aborted.wait()


@pytest.mark.parametrize(("left", "taken"), [(1024 * KIB, 16 * KIB), (100, 100)])
async def test_who_reads_slowly_gets_the_whole_answer(left: int, taken: int) -> None:
    await protocol().send_to(reader := Reader(left, taken))
    async with asyncio.timeout(60):
        await reader.has_all.wait()
    assert not reader.was_aborted.is_set()
