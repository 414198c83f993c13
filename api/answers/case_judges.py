"""Judges of pods on the objects of the cluster, shared by all questions while the lists behind them are remembered.

To index ten thousand pods takes a second of CPU, and to judge one pod a tenth of it.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Final, TypeVar

from cachetools import TTLCache

from api.answers.object_lists import MAX_SECONDS, ObjectList
from api.answers.pod_case import PodCase
from engine.cases.judging import CaseJudge, build_case_judge
from engine.cases.pod_facts import find_maker, judge_members
from engine.diagnosis.facts import JudgedGang
from engine.diagnosis.layers.group_members import find_group_of_pod
from engine.diagnosis.outcome import JudgedPod
from engine.snapshot import kinds
from engine.snapshot.case_objects import CaseObjects
from runtime.kubernetes.object_fields import get_text
from schemas.answers.diagnosis import InBothLanguages
from schemas.answers.suggestions import Suggestions
from schemas.json_types import Json

MAX_JUDGES: Final = 4
"""Maximum number of judges in memory: pods with and without volumes, claims and affinity need different lists."""

_Key = tuple[str, ...]
T = TypeVar("T")


def _create_cache() -> "TTLCache[_Key, tuple[Sequence[ObjectList], CaseJudge | None]]":
    return TTLCache(MAX_JUDGES, ttl=MAX_SECONDS)


@dataclass(frozen=True, slots=True)
class CaseJudges:
    """Judges by the kinds of the lists that they stand on, with those lists."""

    cache: "TTLCache[_Key, tuple[Sequence[ObjectList], CaseJudge | None]]" = field(default_factory=_create_cache)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Lock of the judges: a judge places a pod in its cluster, and takes it away again."""

    async def judge(self, case: PodCase, now: datetime) -> JudgedPod | None:
        """Judge the pod of the case; None if no verdict is needed, or if nodes or pods are not known in full."""
        return await self._ask(case, now, lambda judge, pod: judge.judge(pod))

    async def judge_gang(self, case: PodCase, now: datetime) -> JudgedGang | None:
        """Judge the waiting members of the pod's gang together; None without a gang, or as for a verdict."""
        namespace = get_text(case.pod, "metadata", "namespace")
        group = find_group_of_pod(case.pod, case.objects, namespace) if case.pod else None
        return await self._ask(case, now, lambda judge, _: judge_members(judge, group)) if group else None

    async def list_notes(self, case: PodCase, now: datetime) -> list[InBothLanguages]:
        """List what the pod's owner wrote and no scheduler reads; none as for a verdict."""
        # The objects of the judge are the cluster's; the pod's owner is in its namespace.
        maker = find_maker(case.objects, case.pod) if case.pod else None
        return await self._ask(case, now, lambda judge, pod: judge.list_notes(pod, maker)) or []

    async def suggest(self, case: PodCase, cluster: str, now: datetime) -> Suggestions | None:
        """Suggest changes after which the pod of the case fits; None as for a verdict, or if it is not refused."""
        return await self._ask(case, now, lambda judge, pod: judge.suggest(pod, cluster))

    async def _ask(self, case: PodCase, now: datetime, question: Callable[[CaseJudge, Json], T | None]) -> T | None:
        if case.pod is None or not case.lists or case.objects.unread & {kinds.NODE, kinds.POD}:
            return None
        async with self.lock:
            answer = await asyncio.to_thread(partial(self._answer, case.pod, case.lists, now, question))
        asyncio.get_running_loop().call_later(MAX_SECONDS + 1, self.cache.expire)
        return answer

    def _answer(
        self, pod: Json, lists: Sequence[ObjectList], now: datetime, question: Callable[[CaseJudge, Json], T | None]
    ) -> T | None:
        shared = [entry for entry in lists if entry.is_of_cluster]
        key = tuple(sorted(entry.kind for entry in shared))
        lists_before, judge = self.cache.get(key, ((), None))
        # A list that was read again is another object.
        if [*map(id, lists_before)] != [*map(id, shared)]:
            judge = build_case_judge(_build_objects(shared), now)
            self.cache[key] = shared, judge
        claims = [entry for listed in lists if listed.kind == kinds.VOLUME_CLAIM for entry in listed.table.values()]
        return question(judge.with_objects(claims), pod) if judge else None


def _build_objects(lists: Sequence[ObjectList]) -> CaseObjects:
    unread = frozenset(entry.kind for entry in lists if entry.error or entry.is_cut)
    return CaseObjects(
        {entry.kind: entry.table for entry in lists}, unread, frozenset(entry.kind for entry in lists) - unread
    )
