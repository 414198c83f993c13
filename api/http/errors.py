"""Errors as JSON: each has ``error`` (the cause), ``next`` (what to check or do), a code, and RFC 9457's members.

ApiError
  BadRequestError       400  the request itself is wrong
  UnauthorizedError     401  the caller is not known
  ForbiddenError        403  the caller is known, and may not read this
  NotFoundError         404  nothing is recorded under this name
  ExpiredError          410  the page to continue from no longer exists
  TooManyRequestsError  429  the caller has to wait, or to ask for less
  UnavailableError      503  a store is down or overloaded; the same request may succeed later
    ObjectsNotReadError 503  this API reads no objects of that cluster; another caller of them has the answer
  UnreadableError       500  a document in the index can't be decoded
"""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, ClassVar, Final

from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from schemas.answers.attempts import Error

SEE_DOCS: Final = "GET /docs lists every path with its parameters."
RETRY_AFTER_SECONDS: Final = "5"
PROBLEM: Final = "application/problem+json"
"""Media type of errors (RFC 9457)."""
_CACHE_CONTROL: Final = b"cache-control"
_PROTECTION: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
)
_MAX_ERROR_CHARACTERS: Final = 2000  # a query can hold thousands of wrong values
CODES: Final = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    410: "Expired",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    421: "MisdirectedRequest",
    429: "TooManyRequests",
    431: "HeadersTooLarge",
    503: "ServiceUnavailable",
}
"""Codes of errors of which only the status is known. Most names are those of k8s.io/apimachinery
(``metav1.StatusReason``).
"""
UNKNOWN_PATH: Final = "UnknownPath"
UNREADABLE_DOCUMENT: Final = "UnreadableDocument"
INDEX_REFUSED: Final = "IndexRefused"
OBJECTS_NOT_READ: Final = "ObjectsNotRead"


class ApiError(Exception):
    """Answer with another status than 200. ``error`` is the cause, ``next_step`` what the caller should do."""

    status: ClassVar[HTTPStatus]
    code: ClassVar[str] = ""
    """Code of the error; empty for the code of its status."""

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


class TooLargeError(ApiError):
    status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE


class TooManyRequestsError(ApiError):
    status = HTTPStatus.TOO_MANY_REQUESTS


class UnavailableError(ApiError):
    status = HTTPStatus.SERVICE_UNAVAILABLE


class ObjectsNotReadError(UnavailableError):
    code = OBJECTS_NOT_READ


class UnreadableError(ApiError):
    status = HTTPStatus.INTERNAL_SERVER_ERROR
    code = UNREADABLE_DOCUMENT


def to_unreadable_error(document_id: str, cause: str) -> UnreadableError:
    """Build the error for a document of the index that can't be decoded."""
    return UnreadableError(
        f"document {document_id} in the index can't be read: {cause}",
        "Check that the worker has the same version as this API. The record it was made from is still on Kafka.",
    )


def add_protection(headers: list[tuple[bytes, bytes]]) -> None:
    """Add the headers that forbid browsers to guess the type of an answer, to frame it or to store it.

    An answer that has one of these headers keeps its value. headers: as ASGI has them.
    """
    present = dict(headers)
    headers.extend(header for header in _PROTECTION if header[0] not in present)
    caching = present.get(_CACHE_CONTROL, b"")
    # With only ``private``, a browser stores what its user may no longer read.
    if b"no-" not in caching:
        headers[:] = [header for header in headers if header[0] != _CACHE_CONTROL]
        headers.append((_CACHE_CONTROL, caching + b", no-store" if caching else b"no-store"))


def to_json_response(
    status: int, body: BaseModel, headers: dict[str, str] | None = None, media_type: str = "application/json"
) -> Response:
    return Response(body.model_dump_json(by_alias=True), status, headers, media_type)


def describe_problem(status: int, error: str, next_step: str, code: str = "") -> Error:
    """Describe an error as the body of its answer. Without ``code`` it has that of the status."""
    code = code or derive_code(status)
    return Error(
        error=error,
        next=next_step,
        code=code,
        type=f"urn:schedulerlog:error:{code}",
        title=HTTPStatus(status).phrase,
        status=status,
        detail=error,
    )


def derive_code(status: int) -> str:
    """Derive the code of an error of which only the status is known."""
    return CODES.get(status, "InternalError" if status >= 500 else "Unknown")


def to_error_response(
    status: int, error: str, next_step: str, headers: dict[str, str] | None = None, code: str = ""
) -> Response:
    return to_json_response(status, describe_problem(status, error, next_step, code), headers, PROBLEM)


async def on_api_error(_: Request, error: ApiError) -> Response:
    """Answer every ``ApiError``."""
    # Only where the same request may succeed later.
    may_succeed = isinstance(error, UnavailableError | TooManyRequestsError) and error.code != OBJECTS_NOT_READ
    headers = {"Retry-After": RETRY_AFTER_SECONDS} if may_succeed else None
    return to_error_response(error.status, error.error, error.next_step, headers, error.code)


async def on_http_error(request: Request, error: HTTPException) -> Response:
    """Answer requests whose path has no route, or whose method the route does not have."""
    headers = dict(error.headers or {})
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        cause = f"{request.method} is not answered at this path; it answers {headers.get('Allow', 'GET')}"
        return to_error_response(error.status_code, cause, "This API is read-only: use GET.", headers)
    if error.status_code == HTTPStatus.NOT_FOUND:
        return to_error_response(404, f"there is no path {request.url.path[:200]}", SEE_DOCS, headers, UNKNOWN_PATH)
    return to_error_response(error.status_code, str(error.detail), SEE_DOCS, headers)


class InvalidParametersError(Exception):
    """Refusal of parameters by their declaration. ``problems``: pydantic's errors."""

    def __init__(self, problems: Sequence[Any]) -> None:
        super().__init__(problems)
        self.problems = problems


async def on_invalid_parameters(_: Request, error: InvalidParametersError) -> Response:
    """Answer a request with wrong parameters: name all of them, in one line."""
    # A list parameter repeats the same sentence for every value that is wrong.
    causes = dict.fromkeys(_describe_parameter_error(problem) for problem in error.problems)
    return to_error_response(HTTPStatus.BAD_REQUEST, "; ".join(causes)[:_MAX_ERROR_CHARACTERS], SEE_DOCS)


def _describe_parameter_error(problem: Any) -> str:
    """Describe one of pydantic's errors as ``parameter NAME: cause``."""
    cause = str(problem["msg"]).removeprefix("Value error, ")
    # ``loc`` may also hold a position in a list, which is of no use: the message quotes the wrong value.
    name = next((part for part in problem["loc"] if part not in ("query", "path")), None)
    return f"parameter {name}: {cause}" if name else cause


async def on_failure(_: Request, error: Exception) -> Response:
    """Answer after a defect. The log has the traceback; the caller gets only the type of the exception."""
    cause = f"this request failed because of a defect in the API ({type(error).__name__})"
    response = to_error_response(500, cause, "The traceback is in the API's log; please report it.")
    # Starlette sends this answer outside of the middleware that adds these headers to all others.
    add_protection(response.headers.raw)
    return response
