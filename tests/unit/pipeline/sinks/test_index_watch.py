"""An index that is deleted, made again or restored is noticed; what retention deletes is not a loss."""

from datetime import UTC, datetime

import pytest

from pipeline.sinks.index_watch import IndexIdentity, IndexWatch, find_lost_indices
from runtime.opensearch.client import create_client
from runtime.settings.opensearch_connection import build_opensearch_connection
from tests.support.builders.index_documents import INDEX
from tests.support.fakes.opensearch import FakeOpenSearch, serving

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
TODAY, LONG_AGO, ALL = "schedulerlog-attempts-2026.11.23", "schedulerlog-attempts-2026.10.23", "schedulerlog-pods-all"
IDENTITY = IndexIdentity("one", "")


@pytest.mark.parametrize(
    ("name", "identity", "what"),
    [
        (TODAY, IDENTITY, None),
        (TODAY, None, "was deleted"),
        ("schedulerlog-attempts-2026.11.22", None, "was deleted"),
        ("schedulerlog-trends-2026.11.01", None, "was deleted"),
        ("schedulerlog-trends-2026.10.01", None, None),
        (ALL, None, "was deleted"),
        (LONG_AGO, None, None),
        (LONG_AGO, IndexIdentity("two", ""), "was made again or restored"),
        (ALL, IndexIdentity("one", "restored in place"), "was made again or restored"),
        (TODAY, IndexIdentity("two", ""), "was made again or restored"),
        (TODAY, IndexIdentity("one", "restored in place"), "was made again or restored"),
    ],
)
def test_m7_what_happened_to_an_index(name: str, identity: IndexIdentity | None, what: str | None) -> None:
    now = {name: identity} if identity else {}
    assert find_lost_indices({name: IDENTITY}, now | {"schedulerlog-new": IDENTITY}, NOW).get(name) == what


def test_m7_an_index_of_which_only_the_name_is_known_may_be_any_but_has_to_be_there() -> None:
    assert find_lost_indices({TODAY: None}, {}, NOW) == {TODAY: "was deleted"}
    assert not find_lost_indices({TODAY: None, LONG_AGO: None}, {TODAY: IDENTITY}, NOW)


async def test_m7_an_answer_that_is_none_ends_nothing_and_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    async with serving(FakeOpenSearch(indices={INDEX: {}})) as fake:
        client, lost = create_client(build_opensearch_connection(fake.url)), list[str]()
        watch = IndexWatch(client, lost.extend)
        try:
            for _ in range(3):
                await watch.check()
        finally:
            await client.close()
    assert len(caplog.messages) == 1
    assert caplog.messages[0].startswith("deleted indices are not noticed: ")
    assert not lost
