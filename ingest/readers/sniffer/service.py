"""The sniffer's gRPC service (``sniffer.proto``): takes the place of the sidecar that the scheduler sends to.

The message classes are built at run time: seven lines of description need no generated code.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final

import grpc
import grpc.aio
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from ingest.errors import KafkaUnavailableError

SERVICE: Final = "api.SnifferService"
FIELDS: Final = ("endpoint", "pod", "node", "event", "payload", "timestamp")
"""Fields in the order of their numbers, from 1; all are strings."""
MAX_REQUEST_BYTES: Final = 1024 * 1024
MAX_CALLS: Final = 64
"""At once; each may wait for Kafka with a request in memory. Others are answered RESOURCE_EXHAUSTED."""

Take = Callable[[dict[str, Any]], Awaitable[None]]


def _build_messages() -> tuple[Any, Any]:
    file = descriptor_pb2.FileDescriptorProto(name="schedulerlog/sniffer.proto", package="api", syntax="proto3")
    request = file.message_type.add(name="SendRequest")
    for number, name in enumerate(FIELDS, start=1):
        kind = descriptor_pb2.FieldDescriptorProto
        request.field.add(name=name, number=number, type=kind.TYPE_STRING, label=kind.LABEL_OPTIONAL)
    file.message_type.add(name="SendResponse")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    names = ("api.SendRequest", "api.SendResponse")
    classes = [message_factory.GetMessageClass(pool.FindMessageTypeByName(name)) for name in names]
    return classes[0], classes[1]


SendRequest, SendResponse = _build_messages()


def create_server(
    address: str, take: Take, credentials: grpc.ServerCredentials | None = None
) -> tuple[grpc.aio.Server, int]:
    """Create a server that is not started yet, and return it with its port.

    ``take`` returns when the request is stored safely; without ``credentials`` nothing is encrypted.

    Raises ``OSError`` where the address is in use.
    """

    async def send(request: Any, context: grpc.aio.ServicerContext) -> Any:
        try:
            await take({name: getattr(request, name) for name in FIELDS})
        except KafkaUnavailableError as error:
            await context.abort(grpc.StatusCode.UNAVAILABLE, f"not stored, send it again: {error}")
        return SendResponse()

    handler = grpc.unary_unary_rpc_method_handler(
        send, request_deserializer=SendRequest.FromString, response_serializer=SendResponse.SerializeToString
    )
    running = grpc.aio.server(
        options=[("grpc.max_receive_message_length", MAX_REQUEST_BYTES)], maximum_concurrent_rpcs=MAX_CALLS
    )
    running.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {"Send": handler}),))
    try:
        port = running.add_secure_port(address, credentials) if credentials else running.add_insecure_port(address)
    # grpc raises it without an errno for an address in use.
    except RuntimeError as error:
        raise OSError(f"{address} can't be listened on: {error}") from None
    return running, port
