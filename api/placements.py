"""Answers the requests about what was placed: findings about it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated

from fastapi import Query, Request
from starlette.responses import Response

from api import findings
from api.attempts import Attempts
from api.errors import NotFoundError
from api.listing import listed
from api.opensearch import OpenSearch
from api.queries import FindingsQuery, InNamespace, PodFindingsQuery, PodName, once
from api.unknown import unknown_pod


@dataclass(frozen=True, slots=True)
class Placements:
    attempts: Attempts
    index: OpenSearch

    async def findings(self, request: Request, query: Annotated[FindingsQuery, Query()]) -> Response:
        """Placements that can't be right, latest first, each with the numbers and the lines that prove it.

        A time is that of what was found, not of when somebody noticed.
        """
        once(request)
        asked = query.model_dump(include={"namespace", "pod", "node", "device", "finding", "scheduler"})
        _, answer = await listed(self.index, request, findings.LISTING, query, partial(findings.conditions, asked))
        return answer

    async def findings_of_pod(
        self, request: Request, namespace: InNamespace, name: PodName, query: Annotated[PodFindingsQuery, Query()]
    ) -> Response:
        """What about this pod's attempts and placements can't be right, latest first. None is good news."""
        once(request)
        asked = {"namespace": namespace, "pod": name, "finding": query.finding}
        conditions = partial(findings.conditions, asked)
        page, answer = await listed(self.index, request, findings.LISTING, query, conditions, pod=f"{namespace}/{name}")
        if not page.total:
            await self._known(namespace, name, unknown_pod)
        return answer

    async def _known(self, namespace: str, name: str, unknown: Callable[[str, str], NotFoundError]) -> None:
        """Raise what ``unknown`` makes, unless an attempt of the pod is known: nothing and nobody are two answers."""
        if await self.attempts.latest(namespace, name) is None:
            raise unknown(namespace, name)
