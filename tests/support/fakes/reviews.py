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

    def caller(self, name: str, *grants: Grant) -> Json:
        """A header that names this user, who has these rights from now on."""
        self.users[f"token-of-{name}"] = {"username": name, "groups": ["system:authenticated"]}
        self.grants |= set(grants)
        return {"Authorization": f"Bearer token-of-{name}"}

    def asked(self, kind: str) -> list[Json]:
        return [spec for of, spec in self.specs if of == kind]

    async def create(self, path: str, obj: Mapping[str, Any]) -> Any:
        kind, spec = obj["kind"], obj["spec"]
        assert path.endswith(f"/{kind.lower()}s")
        self.specs.append((kind, spec))
        await self.answering.wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        if self.answer is not None:
            return self.answer
        return {"kind": kind, "status": self._token(spec) if kind == TOKEN_REVIEW else self._access(spec)}

    def _token(self, spec: Json) -> Json:
        user = self.users.get(spec["token"])
        if user is None or self.audience not in spec["audiences"]:
            # As a real API server answers: what is false is left out.
            return {"user": {}, "error": "invalid bearer token"}
        return {"authenticated": True, "user": user, "audiences": [self.audience]}

    def _access(self, spec: Json) -> Json:
        about = spec.get("resourceAttributes")
        if about is None:
            path = spec["nonResourceAttributes"]
            return {"allowed": Grant(spec["user"], path["verb"], path["path"]) in self.grants}
        if (about["group"], about["subresource"]) != ("schedulerlog.io", "schedulerlog"):
            return {"allowed": False}
        namespace, name = about.get("namespace", ""), about.get("name", "")
        matching = (
            Grant(spec["user"], about["verb"], about["resource"], of, named)
            for of in {namespace, ""}
            for named in {name, ""}
        )
        return {"allowed": any(grant in self.grants for grant in matching)}
