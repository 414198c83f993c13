"""Identity of this process at OpenSearch, as its files have it when a request is sent."""

import ssl
from base64 import b64encode

from runtime.settings.opensearch_connection import OpenSearchConnection
from runtime.settings.secret_files import read_version, reveal_secret


class RenewedIdentity:
    """Headers of each request, and the certificates of the next connection."""

    def __init__(self, connection: OpenSearchConnection, context: ssl.SSLContext | None) -> None:
        """Remember what the files are at now; ``context`` is made of them, and None without TLS."""
        self._connection, self._context = connection, context
        files = (connection.opensearch_ca_file, connection.opensearch_cert_file, connection.opensearch_key_file)
        self._files = [file for file in files if file]
        self._versions = [read_version(file) for file in self._files]

    def __call__(self, **_request: object) -> dict[str, str]:
        """Return the header of HTTP's basic authentication, if there is a user; called before each request."""
        self._renew_certificates()
        if not self._connection.opensearch_username:
            return {}
        user_info = f"{self._connection.opensearch_username}:{reveal_secret(self._connection.opensearch_password)}"
        return {"authorization": f"Basic {b64encode(user_info.encode()).decode()}"}

    def _renew_certificates(self) -> None:
        versions = [read_version(file) for file in self._files]
        if versions == self._versions or not self._context:
            return
        try:
            # Certificate and key may be replaced one after the other: a context that took one would show neither.
            self._connection.build_opensearch_ssl_context()
        except ValueError:
            return
        connection = self._connection
        if connection.opensearch_ca_file:
            self._context.load_verify_locations(connection.opensearch_ca_file)
        if connection.opensearch_cert_file:
            self._context.load_cert_chain(
                connection.opensearch_cert_file, connection.opensearch_key_file, password=lambda: ""
            )
        self._versions = versions
