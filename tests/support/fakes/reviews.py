"""Takes reviews in the place of an API server: tokens and rights as a test grants them, and a record of each review."""

import asyncio
from collections.abc import Mapping
from typing import Any, NamedTuple

from schemas.json_types import Json

TOKEN_REVIEW, ACCESS_REVIEW = "TokenReview", "SubjectAccessReview"


class Grant(NamedTuple):
    """``namespace`` and ``name`` are empty for all."""

    user: str
    verb: str
    resource: str
    namespace: str = ""
    name: str = ""


class FakeReviews:
    def __init__(self) -> None:
        self.audience = "schedulerlog"
        self.users: dict[str, Json] = {}
        """Who each token belongs to."""
        self.grants: set[Grant] = set()
        self.specs: list[tuple[str, Json]] = []
        """Every review, by its kind."""
        self.answer: Any = None
        """What is answered in the place of everything, if it is not None; an exception is raised."""
        self.answering = asyncio.Event()
        """While it is not set, no review is answered."""
        self.answering.set()

    def build_header(self, name: str, *grants: Grant) -> Json:
        """Build a header that names this user, who has these rights from now on."""
        self.users[f"token-of-{name}"] = {"username": name, "groups": ["system:authenticated"]}
        self.grants |= set(grants)
        return {"Authorization": f"Bearer token-of-{name}"}

    def list_specs(self, kind: str) -> list[Json]:
        return [spec for spec_kind, spec in self.specs if spec_kind == kind]

    async def create(self, path: str, obj: Mapping[str, Any]) -> Any:
        kind, spec = obj["kind"], obj["spec"]
        assert path.endswith(f"/{kind.lower()}s")
        self.specs.append((kind, spec))
        await self.answering.wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        if self.answer is not None:
            return self.answer
        return {"kind": kind, "status": self._review_token(spec) if kind == TOKEN_REVIEW else self._review_access(spec)}

    def _review_token(self, spec: Json) -> Json:
        user = self.users.get(spec["token"])
        if user is None or self.audience not in spec["audiences"]:
            # As a real API server answers: what is false is left out.
            return {"user": {}, "error": "invalid bearer token"}
        return {"authenticated": True, "user": user, "audiences": [self.audience]}

    def _review_access(self, spec: Json) -> Json:
        attributes = spec.get("resourceAttributes")
        if attributes is None:
            path = spec["nonResourceAttributes"]
            return {"allowed": Grant(spec["user"], path["verb"], path["path"]) in self.grants}
        if (attributes["group"], attributes["subresource"]) != ("schedulerlog.io", "schedulerlog"):
            return {"allowed": False}
        namespace, name = attributes.get("namespace", ""), attributes.get("name", "")
        matching = (
            Grant(spec["user"], attributes["verb"], attributes["resource"], granted_namespace, named)
            for granted_namespace in {namespace, ""}
            for named in {name, ""}
        )
        return {"allowed": any(grant in self.grants for grant in matching)}
