"""The application with authentication, without a network: rights are what a test grants."""

import httpx

from api.authority.reviewer import Reviewer
from runtime.http.server_tls import Certificates
from tests.support.builders.events import STARTED, a_summary
from tests.support.fakes.reviews import FakeReviews, Grant
from tests.support.harness.api_app import POD, Answering, Caller, answer_nothing

OTHER = POD.replace("/llm/", "/other/")
UNKNOWN = POD.replace("deepseek-a", "unknown")
READS_LLM = Grant("alice", "get", "pods", "llm")


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Guarded(Caller):
    """The application with authentication; ``searches`` are what the index was asked."""

    def __init__(self, certificates: Certificates | None = None, *, is_over_http: bool = True) -> None:
        self.reviews, self.clock, self.today = FakeReviews(), Clock(), Clock()
        self.searches: list[httpx.Request] = []

        self.answering: Answering = answer_nothing

        def answer(request: httpx.Request) -> httpx.Response:
            self.searches.append(request)
            return self.answering(request)

        reviewer = Reviewer(self.reviews, "schedulerlog", clock=self.clock, now=self.today)
        super().__init__(answer, reviewer, certificates, is_over_http=is_over_http)

    def begin(self) -> None:
        """Reset, as if it had just started: nothing is granted, asked or remembered."""
        self.reviews.__init__()  # type: ignore[misc]
        self.searches.clear()
        self.answering = answer_nothing
        self.clock.now += 1000
        self.remember(a_summary(ended_at=STARTED))
        self.publish()

    async def get_status(self, path: str, headers: dict[str, str]) -> int:
        return (await self.client.get(path, headers=headers)).status_code
