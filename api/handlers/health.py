"""Is this process ready to answer, and which part is not?

Ready once the topic was replayed, also while OpenSearch is down: the latest pods are answered. While the topic can't be
read at all, OpenSearch alone makes it ready, because every pod can be answered from there.
"""

import time

from pydantic import BaseModel, ConfigDict

from api.index.client import IndexDownError, IndexRefusedError, OpenSearch
from api.memory.attempts_consumer import TopicState


class Alive(BaseModel):
    alive: bool = True


class Part(BaseModel):
    model_config = ConfigDict(frozen=True)

    ready: bool
    why_not: str = ""


class TopicPart(Part):
    replayed: bool
    lag_records: int


class Parts(BaseModel):
    model_config = ConfigDict(frozen=True)

    attempts_topic: TopicPart
    opensearch: Part


class Readiness(BaseModel):
    model_config = ConfigDict(frozen=True)

    ready: bool
    parts: Parts


async def readiness(topic: TopicState, index: OpenSearch) -> Readiness:
    parts = Parts(attempts_topic=topic_part(topic, time.monotonic()), opensearch=await _index_part(index))
    return Readiness(ready=is_ready(parts, topic), parts=parts)


def is_ready(parts: Parts, topic: TopicState) -> bool:
    return topic.replayed or (bool(topic.trouble) and parts.opensearch.ready)


def topic_part(topic: TopicState, now: float) -> TopicPart:
    following = topic.is_following(now)
    why_not = "" if following else topic.trouble or "not replayed to its end yet"
    return TopicPart(ready=following, why_not=why_not, replayed=topic.replayed, lag_records=topic.lag)


async def _index_part(index: OpenSearch) -> Part:
    try:
        await index.ping()
    except (IndexDownError, IndexRefusedError) as error:
        return Part(ready=False, why_not=str(error))
    return Part(ready=True)
