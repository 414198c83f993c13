"""End of long answers, such as watches, when their caller may no longer read them."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import Final, TypeVar

from api.authority.access import Access
from api.authority.rights import Right
from api.http.cluster import Cluster
from api.http.errors import ApiError

CHECK_SECONDS: Final = 2.0
MAX_AGE_SECONDS: Final = 5.0
"""Maximum age of reviews. With the check interval and the limit of a review (3 s), a stream ends within 10 s of a
revoked right.
"""

T = TypeVar("T")


async def wait_for_refusal(
    access: Access, cluster: Cluster, *rights: Right, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> ApiError:
    """Wait until the caller is unknown or lacks one of the rights; return the error that ends the stream.

    The stream also ends (503) when the API server does not answer, because a right that can't be checked may be
    revoked. All streams of a caller share the reviews.
    """
    while True:
        await sleep(CHECK_SECONDS)
        try:
            await access.require_still(cluster, *rights, max_age=MAX_AGE_SECONDS)
        except ApiError as error:
            return error


async def iterate_while_allowed(events: AsyncIterator[T], refusal: Awaitable[ApiError]) -> AsyncGenerator[T]:
    """Iterate over the events until ``refusal`` returns an error, which is raised; no event follows it."""
    ending = asyncio.ensure_future(refusal)
    following: asyncio.Future[T] | None = None
    try:
        while True:
            following = asyncio.ensure_future(anext(events))
            await asyncio.wait((following, ending), return_when=asyncio.FIRST_COMPLETED)
            if ending.done():
                raise ending.result()
            try:
                event = following.result()
            except StopAsyncIteration:
                return
            yield event
            if ending.done():
                raise ending.result()
    finally:
        ending.cancel()
        if following:
            following.cancel()
