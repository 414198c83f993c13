"""Creation of clients of OpenSearch."""

import logging
from typing import Any

import orjson
from opensearchpy import AsyncHttpConnection, AsyncOpenSearch, AWSV4SignerAsyncAuth
from opensearchpy.exceptions import AuthenticationException, SerializationError, TransportError
from opensearchpy.serializer import JSONSerializer

from runtime.cli.installation import write_install_command
from runtime.errors import SettingError
from runtime.opensearch.identity import RenewedIdentity
from runtime.refused_credentials import note_acceptance, note_refusal
from runtime.settings.opensearch_connection import OpenSearchConnection
from runtime.settings.secret_files import FileSecret
from runtime.settings.variables import derive_variable


class OrjsonSerializer(JSONSerializer):  # type: ignore[misc]
    """Serializer with orjson. It sends texts and bytes unchanged, as the client's own does."""

    def loads(self, s: str | bytes) -> Any:
        """Parse JSON. Raises ``SerializationError``."""
        try:
            return orjson.loads(s)
        except orjson.JSONDecodeError as error:
            raise SerializationError(s, error) from None

    def dumps(self, data: Any) -> Any:
        """Serialize to JSON. Raises ``SerializationError``."""
        if isinstance(data, str | bytes):
            return data
        try:
            # As text: the client encodes every body itself.
            return orjson.dumps(data).decode()
        except TypeError as error:
            raise SerializationError(data, error) from None


class NotingConnection(AsyncHttpConnection):  # type: ignore[misc]
    """Connection that notes whether OpenSearch accepts who we are."""

    is_fixed = False
    """The password comes from a variable."""

    async def perform_request(self, *args: Any, **options: Any) -> Any:
        variable = derive_variable("opensearch_password")
        try:
            answer = await super().perform_request(*args, **options)
        except AuthenticationException:
            cause = f"{self.host}: HTTP 401: OpenSearch refuses user or password"
            note_refusal(variable, cause, is_fixed=self.is_fixed)
            raise
        except TransportError as error:
            # Every other status is for somebody whom it knows; a connection that fails has none.
            if isinstance(error.status_code, int):
                note_acceptance(variable)
            raise
        note_acceptance(variable)
        return answer


class ConnectionWithFixedPassword(NotingConnection):
    """Connection with a password from a variable."""

    is_fixed = True


def create_client(connection: OpenSearchConnection, *, max_connections: int = 4) -> AsyncOpenSearch:
    """Create a client that tries once: the caller decides whether and when to try again. It asks several URLs in turn.
    Raises ``SettingError`` for files that can't be read (any more), and for missing credentials of AWS.

    Each request has the password that its file has then; new connections show the certificate that its files have.
    """
    # The client logs every failed request with a stack trace; its callers log an outage once.
    logging.getLogger("opensearch").setLevel(logging.CRITICAL)
    return AsyncOpenSearch(
        hosts=connection.urls,
        timeout=connection.opensearch_timeout.total_seconds(),
        max_retries=0,
        retry_on_timeout=False,
        maxsize=max_connections,
        serializer=OrjsonSerializer(),
        **_build_identity_arguments(connection),
    )


def _build_identity_arguments(connection: OpenSearchConnection) -> dict[str, Any]:
    try:
        context = connection.build_opensearch_ssl_context()
    except ValueError as error:
        raise SettingError(f"TLS to OpenSearch: {error}") from None
    if connection.opensearch_aws_region:
        identity: Any = AWSV4SignerAsyncAuth(
            _find_aws_credentials(), connection.opensearch_aws_region, connection.opensearch_aws_service
        )
    else:
        identity = RenewedIdentity(connection, context)
    is_fixed = connection.opensearch_password and not isinstance(connection.opensearch_password, FileSecret)
    # The client's default class of connections asks for no headers.
    kind = ConnectionWithFixedPassword if is_fixed else NotingConnection
    arguments = {"http_auth": identity, "connection_class": kind}
    return arguments | ({"ssl_context": context} if context else {})


def _find_aws_credentials() -> Any:
    """Find the credentials as AWS's own tools do: environment, files, the role of the pod or the machine; renewed by
    botocore."""
    try:
        from botocore.session import Session
    except ImportError:
        raise SettingError(
            "SCHEDULERLOG_OPENSEARCH_AWS_REGION: signing needs the package botocore: "
            + write_install_command("botocore")
        ) from None
    credentials = Session().get_credentials()
    if credentials is None:
        raise SettingError(
            "SCHEDULERLOG_OPENSEARCH_AWS_REGION: no credentials of AWS: give the pod a role, or set AWS_ACCESS_KEY_ID"
        )
    return credentials
