"""The files of the page that are the same for everybody: style sheet, scripts, icon."""

from hashlib import sha256
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from api.authority.access import get_access
from page.render import STATIC

_TYPES: Final = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}


class StaticFiles:
    """They are read once: a request names one of them, and never a path."""

    def __init__(self) -> None:
        self._files = {
            path.name: (path.read_bytes(), _TYPES[path.suffix]) for path in STATIC.iterdir() if path.suffix in _TYPES
        }
        self._etags = {name: f'"{sha256(content).hexdigest()[:20]}"' for name, (content, _) in self._files.items()}

    async def file(self, request: Request) -> Response:
        get_access(request).allow_every_caller()
        name = request.path_params["name"]
        if name not in self._files:
            raise HTTPException(404)
        content, media_type = self._files[name]
        # Asked for again each time, and answered without the content unless it has changed: no address needs a version.
        headers = {"ETag": self._etags[name], "Cache-Control": "no-cache"}
        if self._etags[name] in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(content, headers=headers, media_type=media_type)
