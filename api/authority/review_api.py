"""Connection to the API server that reviews callers: opened when the API starts, closed when it ends."""

from collections.abc import Mapping
from typing import Any, Final, Protocol, Self

from runtime.kubernetes.client import Client
from runtime.kubernetes.credentials import ApiCredentials, LoadConfiguration
from runtime.kubernetes.errors import NO_ANSWER, KubeApiError

REVIEW_SECONDS: Final = 3.0
"""Time limit of one review."""


class Reviews(Protocol):
    """Creator of reviews, which the API server answers with their status."""

    async def create(self, path: str, obj: Mapping[str, Any]) -> Any:
        """Create a review and return it with its status. Raises ``KubeApiError``."""


class ReviewApi:
    """Connection that the event loop of the requests enters once."""

    def __init__(self, load: LoadConfiguration) -> None:
        self._load = load
        self._client: Client | None = None

    async def __aenter__(self) -> Self:
        self._client = Client(await ApiCredentials.open(self._load), timeout_seconds=REVIEW_SECONDS)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._client:
            await self._client.close()

    async def create(self, path: str, obj: Mapping[str, Any]) -> Any:
        """Create an object. Raises ``KubeApiError``."""
        return await self._require_client().create(path, obj)

    async def get(self, path: str) -> Any:
        """Read an object. Raises ``KubeApiError``."""
        return await self._require_client().get(path)

    def _require_client(self) -> Client:
        if self._client is None:
            raise KubeApiError(NO_ANSWER, "the API has not started yet")
        return self._client


async def check(load: LoadConfiguration) -> None:
    """Check that the files say how to reach an API server. Raises ``KubeConfigError``."""
    await ApiCredentials.open(load)
