"""Creation of clients of OpenSearch."""

import logging
from base64 import b64encode
from functools import partial
from typing import Any

import orjson
from opensearchpy import AsyncHttpConnection, AsyncOpenSearch, AWSV4SignerAsyncAuth
from opensearchpy.exceptions import AuthenticationException, SerializationError, TransportError
from opensearchpy.serializer import JSONSerializer

from runtime.cli.installation import write_install_command
from runtime.errors import SettingError
from runtime.opensearch.refusals import explain_alert, explain_distrust, suggest_next_step
from runtime.refused_credentials import note_acceptance, note_refusal
from runtime.settings.opensearch_connection import OpenSearchConnection
from runtime.settings.secret_files import is_fixed, reveal_secret
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
    """Connection that notes whether OpenSearch accepts who we are, and we its certificate."""

    def __init__(self, *, fixed_secret: str, **options: Any) -> None:
        """Take the variable that the password comes from as ``fixed_secret``; empty for one from a file."""
        super().__init__(**options)
        self._fixed_secret = fixed_secret

    async def perform_request(self, *args: Any, **options: Any) -> Any:
        try:
            answer = await super().perform_request(*args, **options)
        except AuthenticationException as error:
            words = f"{self.host}: HTTP 401: OpenSearch refuses user or password{suggest_next_step(error, '')}"
            note_refusal("OpenSearch", self.host, words, self._fixed_secret)
            raise
        except TransportError as error:
            if distrust := explain_distrust(error):
                words = f"{self.host}: its certificate is not trusted ({distrust}){suggest_next_step(error, '')}"
                note_refusal("OpenSearch", self.host, words)
            elif alert := explain_alert(error):
                words = f"{self.host}: it refuses our certificate ({alert}){suggest_next_step(error, '')}"
                note_refusal("OpenSearch", self.host, words)
            # Every other status is for somebody whom it knows; a connection that fails has none.
            elif isinstance(error.status_code, int):
                note_acceptance("OpenSearch", self.host, self._fixed_secret)
            raise
        note_acceptance("OpenSearch", self.host, self._fixed_secret)
        return answer


def create_client(connection: OpenSearchConnection, *, max_connections: int = 4) -> AsyncOpenSearch:
    """Create a client that tries once: the caller decides whether and when to try again. It asks several URLs in turn.
    Raises ``SettingError`` for missing credentials of AWS.

    Each request has the password that its file has then; new connections trust, and show, what their files have.
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
    identity: Any = None
    if connection.opensearch_aws_region:
        identity = AWSV4SignerAsyncAuth(
            _find_aws_credentials(), connection.opensearch_aws_region, connection.opensearch_aws_service
        )
    elif connection.opensearch_username:
        identity = partial(_write_authorization, connection)
    context = connection.opensearch_ssl_context
    return {
        # The client's default class of connections asks for no headers.
        "connection_class": NotingConnection,
        "fixed_secret": derive_variable("opensearch_password") if is_fixed(connection.opensearch_password) else "",
        "http_auth": identity,
        **({"ssl_context": context} if context else {}),
    }


def _write_authorization(connection: OpenSearchConnection, **_request: object) -> dict[str, str]:
    """Write the header of HTTP's basic authentication; called before each request."""
    user_info = f"{connection.opensearch_username}:{reveal_secret(connection.opensearch_password)}"
    return {"authorization": f"Basic {b64encode(user_info.encode()).decode()}"}


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
