"""Every error is JSON with ``error`` (the cause) and ``next`` (what to check or do).

ApiError
  BadRequestError       400  the request itself is wrong
  UnauthorizedError     401  the caller is not known
  ForbiddenError        403  the caller is known, and may not read this
  NotFoundError         404  nothing is recorded under this name
  ExpiredError          410  the page to continue from no longer exists
  UnavailableError      503  a store is down or overloaded; the same request may succeed later
  UnreadableError       500  a document in the index can't be decoded
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
RETRY_AFTER_SECONDS: Final = "5"
_MAX_ERROR_CHARACTERS: Final = 2000  # a query can hold thousands of wrong values


class ApiError(Exception):
    """An answer with another status than 200. ``error`` is the cause, ``next_step`` what the caller should do."""

    status: ClassVar[HTTPStatus]

    def __init__(self, error: str, next_step: str) -> None:
        super().__init__(error)
        self.error = error
        self.next_step = next_step


class BadRequestError(ApiError):
    status = HTTPStatus.BAD_REQUEST


class UnauthorizedError(ApiError):
    status = HTTPStatus.UNAUTHORIZED


class ForbiddenError(ApiError):
    status = HTTPStatus.FORBIDDEN


class NotFoundError(ApiError):
    status = HTTPStatus.NOT_FOUND


class ExpiredError(ApiError):
    status = HTTPStatus.GONE


class UnavailableError(ApiError):
    status = HTTPStatus.SERVICE_UNAVAILABLE


class UnreadableError(ApiError):
    status = HTTPStatus.INTERNAL_SERVER_ERROR


def unreadable(document_id: str, cause: str) -> UnreadableError:
    """The error for a document of the index that can't be decoded."""
    return UnreadableError(
        f"document {document_id} in the index can't be read: {cause}",
        "Check that the worker has the same version as this API. The record it was made from is still on Kafka.",
    )


def json_response(status: int, body: BaseModel, headers: dict[str, str] | None = None) -> Response:
    return Response(body.model_dump_json(by_alias=True), status, headers, "application/json")


def error_response(status: int, error: str, next_step: str, headers: dict[str, str] | None = None) -> Response:
    return json_response(status, Error(error=error, next=next_step), headers)


async def on_api_error(_: Request, error: ApiError) -> Response:
    """Exception handler of every ``ApiError``."""
    # Only for 503, where the same request may succeed later.
    headers = {"Retry-After": RETRY_AFTER_SECONDS} if isinstance(error, UnavailableError) else None
    return error_response(error.status, error.error, error.next_step, headers)


async def on_http_error(request: Request, error: HTTPException) -> Response:
    """Exception handler for paths that no route has, and for methods that a route does not answer."""
    headers = dict(error.headers or {})
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        cause = f"{request.method} is not answered at this path; it answers {headers.get('Allow', 'GET')}"
        return error_response(error.status_code, cause, "This API is read-only: use GET.", headers)
    if error.status_code == HTTPStatus.NOT_FOUND:
        return error_response(404, f"there is no path {request.url.path[:200]}", SEE_DOCS, headers)
    return error_response(error.status_code, str(error.detail), SEE_DOCS, headers)


async def on_invalid_parameters(_: Request, error: RequestValidationError) -> Response:
    """Exception handler for parameters that their declaration refuses: all of them, in one line."""
    # A list parameter repeats the same sentence for every value that is wrong.
    causes = dict.fromkeys(_parameter_error(problem) for problem in error.errors())
    return error_response(HTTPStatus.BAD_REQUEST, "; ".join(causes)[:_MAX_ERROR_CHARACTERS], SEE_DOCS)


def _parameter_error(problem: Any) -> str:
    """One of pydantic's errors as ``parameter NAME: cause``."""
    cause = str(problem["msg"]).removeprefix("Value error, ")
    # ``loc`` may also hold a position in a list, which is of no use: the message quotes the wrong value.
    name = next((part for part in problem["loc"] if part not in ("query", "path")), None)
    return f"parameter {name}: {cause}" if name else cause


async def on_failure(_: Request, error: Exception) -> Response:
    """Exception handler for defects. The log has the traceback; the caller gets only the type of the exception."""
    cause = f"this request failed because of a defect in the API ({type(error).__name__})"
    return error_response(500, cause, "The traceback is in the API's log; please report it.")
