"""TLS to Kafka and OpenSearch by what the files of the settings hold when a connection begins."""

import logging
import ssl
from functools import partial
from pathlib import Path
from typing import Any, Self

from pydantic import SecretStr

from runtime.http.tls import build_client_context
from runtime.log_once import LoggedProblem
from runtime.settings.secret_files import Version, read_version, reveal_secret

logger = logging.getLogger(__name__)


class PresentContext(ssl.SSLContext):
    """Context whose connections trust, and show, what its files hold when they begin.

    Clients of Kafka and OpenSearch take one context for their life, and asyncio asks it for each connection. It is not
    loaded again in place: an authority that OpenSSL has loaded is trusted for as long as its context. It is built again
    only when a file changes, because reading the system's authorities holds the event loop for a tenth of a second.
    While the files can't be read, or do not fit each other, connections use those of before, and the log names them.
    """

    def __new__(cls, *_files: object) -> Self:
        # Of a client, and without any authority: what does not ask for a connection below trusts nobody.
        return super().__new__(cls, ssl.PROTOCOL_TLS_CLIENT)

    def __init__(
        self,
        server: str,
        ca_file: Path | None,
        cert_file: Path | None = None,
        key_file: Path | None = None,
        key_password: SecretStr | None = None,
    ) -> None:
        """Read the files. Raises ``ValueError``, as ``build_client_context``. ``server`` is its name in the log."""
        self._files = (ca_file, cert_file, key_file)
        self._key_password = key_password
        self._problem = LoggedProblem(partial(logger.warning, "TLS to %s: %s; the files of before are used", server))
        self._present = self._read_versions(), self._build()

    def wrap_bio(self, *buffers: Any, **options: Any) -> ssl.SSLObject:
        """Begin a connection."""
        # The versions are read before the content: a file that changes in between is read again.
        if (versions := self._read_versions()) != self._present[0]:
            try:
                self._present = versions, self._build()
            except ValueError as error:
                self._problem.note(str(error))
            else:
                self._problem.note("")
        return self._present[1].wrap_bio(*buffers, **options)

    def _build(self) -> ssl.SSLContext:
        return build_client_context(*self._files, reveal_secret(self._key_password) or None)

    def _read_versions(self) -> list[Version]:
        return [read_version(file) if file else None for file in self._files]
