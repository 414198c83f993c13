"""Connection to the API server whose objects explain pods; absent outside of a cluster."""

import logging
from typing import Final, Protocol, Self

from runtime.kubernetes.client import Client
from runtime.kubernetes.credentials import ApiCredentials, LoadConfiguration
from runtime.kubernetes.errors import NO_ANSWER, KubeApiError, KubeConfigError
from schemas.json_types import Json

log = logging.getLogger(__name__)

READ_SECONDS: Final = 3.0
"""Time limit of one read: after it the answer says what could not be read."""


class Objects(Protocol):
    """Reader of objects. Both methods raise ``KubeApiError``."""

    @property
    def is_connected(self) -> bool:
        """True if there is a connection to an API server."""

    async def get(self, path: str) -> Json: ...

    async def read_page(self, path: str, **query: str | int) -> Json: ...


class ObjectApi:
    """Reader with a connection, entered once by the event loop that answers requests."""

    def __init__(self, load: LoadConfiguration, *, is_configured: bool) -> None:
        """Prepare a connection, if ``is_configured``: to import the official client takes a second."""
        self._load, self._is_configured = load, is_configured
        self._client: Client | None = None

    @property
    def is_connected(self) -> bool:
        return self._client is not None

    async def __aenter__(self) -> Self:
        if self._is_configured:
            try:
                self._client = Client(await ApiCredentials.open(self._load), timeout_seconds=READ_SECONDS)
            except KubeConfigError as error:
                # The API answers without it; each diagnosis says what could not be read.
                log.warning("diagnoses are made without the cluster's objects: %s", error)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._client:
            await self._client.close()

    async def get(self, path: str) -> Json:
        return await self._require_client().get(path)

    async def read_page(self, path: str, **query: str | int) -> Json:
        return await self._require_client().get_page(path, **query)

    def _require_client(self) -> Client:
        if self._client is None:
            raise KubeApiError(NO_ANSWER, "there is no connection to an API server")
        return self._client
