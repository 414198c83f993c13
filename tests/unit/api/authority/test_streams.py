"""End of a caller's stream."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from api.authority.access import Access
from api.authority.credentials import Caller
from api.authority.reviewer import Reviewer
from api.authority.rights import list_pods
from api.authority.streams import iterate_while_allowed, wait_for_refusal
from api.http.cluster import Cluster
from api.http.errors import ApiError, ForbiddenError, UnauthorizedError, UnavailableError
from runtime.kubernetes.errors import KubeApiError
from tests.support.fakes.reviews import FakeReviews, Grant
from tests.support.harness.guarded_api import Clock

HOME = Cluster("home")
READS = Grant("alice", "list", "pods", "llm")


class Stream:
    """A stream of ``alice``, opened now; ``ended_after`` is by the clock that the checks wait by."""

    def __init__(self) -> None:
        self.reviews, self.clock = FakeReviews(), Clock()
        self.reviews.build_header("alice", READS)
        self._reviewer = Reviewer(self.reviews, "schedulerlog", clock=self.clock)
        self._events: dict[float, object] = {}

    async def measure_end(self, **changes: object) -> tuple[type[ApiError], float]:
        """Measure the seconds from ``changes`` (1 s after the opening) to the end, and return them with the error."""
        opened = self.clock.now
        caller = await self._identify(10)
        access = Access(caller, self._reviewer, HOME.name, self._identify)
        await access.require(HOME, list_pods("llm"))

        async def sleep(seconds: float) -> None:
            if self.clock.now == opened:
                for name, value in changes.items():
                    setattr(self.reviews, name, value)
            self.clock.now += seconds
            assert self.clock.now < opened + 60, "the stream does not end"

        refused = await wait_for_refusal(access, HOME, list_pods("llm"), sleep=sleep)
        return type(refused), self.clock.now - opened

    async def _identify(self, max_age: float) -> Caller | None:
        return await self._reviewer.identify("token-of-alice", max_age)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"grants": set()}, ForbiddenError),
        ({"users": {}}, UnauthorizedError),
        ({"users": {"token-of-alice": {"username": "bob"}}}, UnauthorizedError),
        ({"answer": KubeApiError(0, "it can't be reached")}, UnavailableError),
    ],
)
async def test_a_stream_ends_within_ten_seconds_of_what_ends_its_right(
    changes: dict[str, object], error: type[ApiError]
) -> None:
    ended_by, seconds = await Stream().measure_end(**changes)
    assert ended_by is error
    # The review itself may take three more.
    assert seconds <= 7


async def test_streams_of_a_caller_share_their_reviews() -> None:
    stream = Stream()
    with pytest.raises(AssertionError, match="does not end"):
        await stream.measure_end()
    # Two at first, then a token and a right every six seconds (at each third check) for a minute.
    assert len(stream.reviews.specs) <= 2 + 2 * 10


async def test_events_end_with_the_right() -> None:
    refused: asyncio.Future[ApiError] = asyncio.Future()

    async def iterate_events() -> AsyncIterator[int]:
        yield 1
        yield 2
        # In the time that it takes to send the second the right is lost.
        refused.set_result(ForbiddenError("alice may not", "ask"))
        yield 3

    events = iterate_while_allowed(iterate_events(), refused)
    assert [await anext(events), await anext(events)] == [1, 2]
    with pytest.raises(ForbiddenError):
        await anext(events)


async def test_a_stream_that_ends_by_itself_leaves_no_check_behind() -> None:
    refused = asyncio.ensure_future(asyncio.Event().wait())

    async def iterate_events() -> AsyncIterator[int]:
        yield 1

    assert [event async for event in iterate_while_allowed(iterate_events(), refused)] == [1]  # type: ignore[arg-type]
    await asyncio.sleep(0)
    assert refused.cancelled()
