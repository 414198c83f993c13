"""Fields of a form that a browser sends."""

from typing import Final
from urllib.parse import parse_qs

from starlette.requests import Request

from api.http.errors import BadRequestError

MAX_FORM_BYTES: Final = 1024 * 1024


async def read_form(request: Request) -> dict[str, str]:
    """Read the first value of each field. Raises ``BadRequestError``."""
    return parse_fields(await read_body(request))


async def read_body(request: Request) -> bytes:
    """Read the body. Raises ``BadRequestError`` for more than ``MAX_FORM_BYTES``."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MAX_FORM_BYTES:
            raise BadRequestError(f"the form has more than {MAX_FORM_BYTES} bytes", "Send less at once.")
    return body


def parse_fields(body: bytes) -> dict[str, str]:
    """Parse the first value of each field. Raises ``BadRequestError``."""
    try:
        fields = parse_qs(body.decode("ascii"), errors="strict", max_num_fields=20)
    except ValueError:
        raise BadRequestError("the form can't be read", "Send it from a page of this address.") from None
    return {name: values[0] for name, values in fields.items()}
