"""HTTP that can't be parsed is answered in JSON too; it never reaches the application."""

from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from schemas.answers.attempts import Error

_SAID = "this is no HTTP request that can be read"
_NEXT = "Are all characters of the URL that are not ASCII percent-encoded, and does the port speak plain HTTP?"


class JsonProtocol(HttpToolsProtocol):
    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn's signature
        body = Error(error=_SAID, next=_NEXT).model_dump_json().encode()
        head = f"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
        transport: Any = self.transport
        transport.write(f"{head}connection: close\r\n\r\n".encode() + body)
        transport.close()
