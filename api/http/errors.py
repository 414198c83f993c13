"""Every error is JSON: what is wrong, and what to check or do next.

ApiError
  BadRequestError       400  the request itself is wrong
  NotFoundError         404  nothing is there
  ExpiredError          410  the place to continue from is gone
  UnavailableError      503  a store is down or overloaded; the same request may succeed later
  UnreadableError       500  a store holds something that can't be read
"""

from http import HTTPStatus
from typing import Any, ClassVar, Final

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.responses import Response

from schemas.answers.attempts import Error

SEE_DOCS: Final = "GET /docs lists every path with its parameters."


class ApiError(Exception):
    """An answer that is not 200. ``error`` is the cause, ``next`` what the caller should do."""

    status: ClassVar[HTTPStatus]

    def __init__(self, error: str, next_step: str) -> None:
        super().__init__(error)
        self.error = error
        self.next_step = next_step


class BadRequestError(ApiError):
    status = HTTPStatus.BAD_REQUEST


class NotFoundError(ApiError):
    status = HTTPStatus.NOT_FOUND


class ExpiredError(ApiError):
    status = HTTPStatus.GONE


class UnavailableError(ApiError):
    status = HTTPStatus.SERVICE_UNAVAILABLE


class UnreadableError(ApiError):
    status = HTTPStatus.INTERNAL_SERVER_ERROR


def unreadable(document: str, cause: str) -> UnreadableError:
    return UnreadableError(
        f"document {document} in the index can't be read: {cause}",
        "Was it written by this version's processes? The record it was made from is still on Kafka.",
    )


def json_response(status: int, body: BaseModel, headers: dict[str, str] | None = None) -> Response:
    return Response(body.model_dump_json(by_alias=True), status, headers, "application/json")


def error_response(status: int, error: str, next_step: str, headers: dict[str, str] | None = None) -> Response:
    return json_response(status, Error(error=error, next=next_step), headers)


async def on_api_error(_: Request, error: ApiError) -> Response:
    headers = {"Retry-After": "5"} if isinstance(error, UnavailableError) else None
    return error_response(error.status, error.error, error.next_step, headers)


async def on_http_error(request: Request, error: HTTPException) -> Response:
    """Paths and methods that no route has."""
    headers = dict(error.headers or {})
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        said = f"{request.method} is not answered at this path; it answers {headers.get('Allow', 'GET')}"
        return error_response(error.status_code, said, "This API only reads: use GET.", headers)
    if error.status_code == HTTPStatus.NOT_FOUND:
        return error_response(404, f"nothing is at {request.url.path[:200]}", SEE_DOCS, headers)
    return error_response(error.status_code, str(error.detail), SEE_DOCS, headers)


async def on_invalid(_: Request, error: RequestValidationError) -> Response:
    """Parameters that their declaration refuses."""
    said = "; ".join(dict.fromkeys(_sentence(each) for each in error.errors()))
    return error_response(HTTPStatus.BAD_REQUEST, said[:2000], SEE_DOCS)


def _sentence(problem: Any) -> str:
    said = str(problem["msg"]).removeprefix("Value error, ")
    # Without the position in a list: what is wrong there is quoted anyway.
    place = next((part for part in problem["loc"] if part not in ("query", "path")), None)
    return f"parameter {place}: {said}" if place else said


async def on_failure(_: Request, error: Exception) -> Response:
    """A defect of ours. The log has the trace; the caller gets no part of it."""
    said = f"the API failed at this request ({type(error).__name__})"
    return error_response(500, said, "The API's log holds the cause; please report it.")
