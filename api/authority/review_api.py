"""The connection to the API server that reviews callers: opened when the API starts, closed when it ends."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Protocol, Self

from runtime.kubernetes.client import Client
from runtime.kubernetes.credentials import ApiCredentials, LoadConfiguration, from_kubeconfig, in_cluster
from runtime.kubernetes.errors import NO_ANSWER, KubeApiError

REVIEW_SECONDS: Final = 3.0
"""What one review may take."""


class Reviews(Protocol):
    """Takes reviews, and answers each with what the API server made of it."""

    async def create(self, path: str, obj: Mapping[str, Any]) -> Any:
        """Raises ``KubeApiError``."""


class ReviewApi:
    """Entered once, by the event loop that answers requests."""

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
        """As of ``Reviews``."""
        return await self._entered().create(path, obj)

    async def get(self, path: str) -> Any:
        """An object. Raises ``KubeApiError``."""
        return await self._entered().get(path)

    def _entered(self) -> Client:
        if self._client is None:
            raise KubeApiError(NO_ANSWER, "the API has not started yet")
        return self._client


def loading(kubeconfig: Path | None, context: str | None) -> LoadConfiguration:
    """Reads the kubeconfig, or without one the service account of the pod."""
    return from_kubeconfig(kubeconfig, context) if kubeconfig else in_cluster


async def check(load: LoadConfiguration) -> None:
    """Raises ``KubeConfigError`` where the files do not say how to reach an API server, or can't be used."""
    await ApiCredentials.open(load)
