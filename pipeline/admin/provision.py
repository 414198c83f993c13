"""Provisioning of the topics and index templates of the contract. Safe to run again at any time.

What exists is compared, and corrected where the store allows it. What can't be changed (fewer partitions, another
mapping of an existing index) is reported and left as it is.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from datetime import timedelta
from typing import Any, Final, TypeVar

from opensearchpy import AsyncOpenSearch
from opensearchpy.exceptions import ConnectionError as NoConnectionError
from opensearchpy.exceptions import RequestError, TransportError

from pipeline.settings import ProvisionSettings, TemplateSettings
from runtime.errors import UnreachableError
from runtime.kafka.errors import KafkaError
from runtime.kafka.topics import provision_topics
from runtime.opensearch.client import create_client
from runtime.opensearch.refusals import explain_refusal, is_refused_by_tls
from runtime.opensearch.roles import PROVISIONER
from runtime.settings.addresses import without_user_info
from schemas.index_family import CUSTOM_TEMPLATE, MAPPING_VERSION, SETTINGS_TEMPLATE, Index, build_settings_template
from schemas.indices import INDICES

Say = Callable[[str], None]
T = TypeVar("T")

RETRY_SECONDS: Final = 0.5
_EMPTY: Final = {"template": {}, "_meta": {"about": "Settings of the operator for the indices of schedulerlog"}}
_PASSING: Final = (429, 502, 503, 504)


async def provision(settings: ProvisionSettings, wait: timedelta, say: Say) -> None:
    """Make or correct everything; ``say`` gets a line about each. Raises ``UnreachableError``."""
    replicas, kafka = settings.replication_factor, f"Kafka at {settings.kafka_bootstrap_servers}"
    partitions = settings.topic_partitions
    await _retry(lambda: provision_topics(settings, replicas, say, partitions), wait, kafka)
    await provision_templates(settings, wait, say)


async def provision_templates(settings: TemplateSettings, wait: timedelta, say: Say) -> None:
    """Make or correct only the index templates, where somebody else makes the topics. Raises ``UnreachableError``."""
    await _retry(lambda: _provision_templates(settings, say), wait, f"OpenSearch at {settings.opensearch_url}")


async def _retry(work: Callable[[], Awaitable[T]], wait: timedelta, what: str) -> T:
    """Repeat ``work`` until the time ``wait`` has passed while the service ``what`` is not up yet; return its
    result."""
    deadline = time.monotonic() + wait.total_seconds()
    while True:
        try:
            return await work()
        # In a new cluster this command starts together with the stores, which take longer.
        except (KafkaError, OSError, TransportError) as error:
            if time.monotonic() > deadline or not _may_pass(error):
                raise UnreachableError(f"{what}: {_explain(error)}") from None
            await asyncio.sleep(RETRY_SECONDS)


def _may_pass(error: Exception) -> bool:
    """Tell whether the next try can succeed without anybody changing something."""
    if isinstance(error, TransportError):
        # 401, 403 and 400 are the same at the next try: an operator has to act. The status of a refused connection is a
        # word.
        return (isinstance(error, NoConnectionError) and not is_refused_by_tls(error)) or error.status_code in _PASSING
    return error.retriable if isinstance(error, KafkaError) else True


def _explain(error: Exception) -> str:
    if isinstance(error, TransportError):
        return explain_refusal(error, f"the role {PROVISIONER}")
    return without_user_info(str(error))


async def _provision_templates(settings: TemplateSettings, say: Say) -> None:
    store = create_client(settings)
    try:
        custom = await _put_components(store, settings, say)
        for index in INDICES:
            say(await _put_template(store, index, custom))
            for name, version in await _list_outdated(store, index):
                say(f"index {name}: {await _upgrade(store, name, index, version)}")
    finally:
        await store.close()


async def _put_components(store: AsyncOpenSearch, settings: TemplateSettings, say: Say) -> set[str]:
    """Write the component templates; return the names of the operator's own ones."""
    body = build_settings_template(settings.index_shards, settings.index_replicas)
    await store.transport.perform_request("PUT", f"/_component_template/{SETTINGS_TEMPLATE}", body=body)
    answer = await store.transport.perform_request("GET", "/_component_template/schedulerlog*")
    names = {template["name"] for template in answer["component_templates"]}
    if CUSTOM_TEMPLATE not in names:
        # ``create``: one that somebody makes meanwhile is never overwritten; the 400 says that it is there.
        await store.transport.perform_request(
            "PUT", f"/_component_template/{CUSTOM_TEMPLATE}", params={"create": "true"}, body=_EMPTY, ignore=(400,)
        )
        say(f"component template {CUSTOM_TEMPLATE}: made, empty, for settings of your own")
    return names | {CUSTOM_TEMPLATE}


async def _put_template(store: AsyncOpenSearch, index: Index, custom: Collection[str]) -> str:
    wanted = index.build_template(*(name for name in (CUSTOM_TEMPLATE, index.custom_template) if name in custom))
    path = f"/_index_template/{index.alias}"
    # 404: there is no template yet.
    answer = await store.transport.perform_request("GET", path, ignore=(404,))
    templates = answer.get("index_templates", [])
    before = templates[0]["index_template"].get("_meta", {}) if templates else {}
    # Also where `_meta` is the same: people may have edited it, or made a component template of the family. Indices
    # that exist keep what they were created with; only their mapping can follow, see `_upgrade`.
    await store.transport.perform_request("PUT", path, body=wanted)
    if not templates:
        return f"index template {index.alias}: made"
    same = before == wanted["_meta"]
    return f"index template {index.alias}: {'written again' if same else f'replaced, was {before}'}"


async def _upgrade(store: AsyncOpenSearch, name: str, index: Index, version: object) -> str:
    """Bring an existing index to the mapping of this version; return a line about it.

    A newer mapping only adds fields, which OpenSearch allows.
    """
    mapping = index.build_template()["template"]["mappings"]
    try:
        await store.transport.perform_request("PUT", f"/{name}/_mapping", body=mapping)
    # A field that exists keeps its type: the next day's index has the new one.
    except RequestError as error:
        return f"has mapping version {version}, which can't become {MAPPING_VERSION}: {error.error}; left so"
    return f"mapping version was {version}, is now {MAPPING_VERSION}"


async def _list_outdated(store: AsyncOpenSearch, index: Index) -> list[tuple[str, object]]:
    path = f"/{index.alias}-*/_mapping"
    mappings: dict[str, Any] = await store.transport.perform_request("GET", path, ignore=(404,))
    return sorted(_iterate_other_versions(mappings))


def _iterate_other_versions(mappings: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    for name, index in mappings.items():
        # A missing version counts as another one: such an index was created without the template.
        meta = index.get("mappings", {}).get("_meta", {}) if isinstance(index, Mapping) else {}
        version = meta.get("schedulerlog_mapping_version")
        if isinstance(index, Mapping) and "mappings" in index and version != MAPPING_VERSION:
            yield name, version
