"""The devices that an attempt judged are read once, as long as nothing of them was missing."""

from unittest.mock import AsyncMock, Mock, patch

from api.answers.fact_collector import FactCollector
from api.index.attempts.attempt_queries import PodName
from engine.diagnosis.facts import DiagnosisFacts
from schemas.answers.attempts import DeviceLog
from tests.support.builders.events import STARTED, a_summary

ROW = Mock(spec=DeviceLog)


async def collect_facts(collector: FactCollector, original_id: str = "0f" * 16) -> DiagnosisFacts:
    attempt = a_summary(["node1"])
    return await collector.collect_of_attempt(PodName("default", "llm", "a"), attempt, original_id, STARTED)


async def test_they_are_read_once_for_an_attempt_and_those_that_repeat_it() -> None:
    collector = FactCollector(Mock(), Mock(), "default", Mock())
    with patch("api.answers.fact_collector.read_devices", AsyncMock(return_value=([ROW], ""))) as reading:
        assert (await collect_facts(collector)).devices == (await collect_facts(collector)).devices == [ROW]
        assert reading.await_count == 1
        await collect_facts(collector, "1f" * 16)
        assert reading.await_count == 2


async def test_what_was_missing_is_looked_for_again() -> None:
    collector = FactCollector(Mock(), Mock(), "default", Mock())
    with patch(
        "api.answers.fact_collector.read_devices", AsyncMock(return_value=([ROW], "states are missing"))
    ) as reading:
        await collect_facts(collector)
        assert (await collect_facts(collector)).select_unknown("devices")
        assert reading.await_count == 2
