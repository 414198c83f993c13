"""What describes the API: the OpenAPI document, the same as a page, and what Kubernetes reads of the aggregated API."""

import orjson
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from api.aggregated.discovery import DOCUMENTS
from api.http.errors import error_response
from api.http.openapi_document import served
from api.http.openapi_page import CONTENT_SECURITY_POLICY, documentation_page


def document_routes(*, is_aggregated: bool) -> list[Route]:
    documents = [Route("/docs", _documentation), Route("/", _documentation), Route("/openapi.json", _openapi)]
    return documents + [Route(path, _discovery) for path in DOCUMENTS] if is_aggregated else documents


async def _openapi(_: Request) -> Response:
    return Response(served(), media_type="application/json")


async def _documentation(_: Request) -> Response:
    page = documentation_page(orjson.loads(served()))
    return HTMLResponse(page, headers={"Content-Security-Policy": CONTENT_SECURITY_POLICY})


async def _discovery(request: Request) -> Response:
    # The API server asks first for a newer form, and takes this one where that is not acceptable.
    if "as=APIGroupDiscoveryList" in request.headers.get("accept", ""):
        return error_response(406, "discovery is in its first form alone", "Accept application/json.")
    return Response(DOCUMENTS[request.url.path], media_type="application/json")
