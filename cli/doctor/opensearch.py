"""OpenSearch: reachability, health, the templates of this version, and the clock."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from opensearchpy.exceptions import AuthorizationException, OpenSearchException

from cli.doctor.findings import PROVISION, Fault, check_clock
from runtime.errors import SettingError
from runtime.opensearch.client import create_client
from runtime.opensearch.refusals import explain_alert, explain_distrust, explain_refusal, suggest_next_step
from runtime.opensearch.roles import PROVISIONER
from runtime.settings.opensearch_connection import OpenSearchConnection
from schemas.index_family import MAPPING_VERSION
from schemas.indices import INDICES

_Check = Callable[[Any], Iterable[Fault]]
LARGEST_SHARD: Final = 50 * 10**9
"""Bytes of a shard that is still moved and recovered in minutes (docs/sizing.md)."""
MINIMUM: Final = 2
_PARTS: Final = {
    "version": "/", "health": "/_cluster/health", "index templates": "/_index_template/schedulerlog-*",
    "shards": "/_cat/indices/schedulerlog-*?format=json&bytes=b&h=index,pri,pri.store.size",
    "clock": "/_cluster/stats",
}  # fmt: skip
"""Paths of the parts; a user may have the right to some of them only."""


async def check(connection: OpenSearchConnection) -> tuple[list[Fault], list[str]]:
    """Check OpenSearch; return faults, and what this user may not see."""
    url = connection.opensearch_url
    try:
        client = create_client(connection)
    except SettingError as error:
        return [Fault("opensearch", url, str(error), "Correct the setting.")], []
    answers, refused = dict[str, Any](), dict[str, AuthorizationException]()
    try:
        for part, path in _PARTS.items():
            sent_at = datetime.now(UTC)
            try:
                answers[part] = await client.transport.perform_request("GET", path, ignore=(404,))
            except AuthorizationException as error:
                refused[part] = error
    except (OpenSearchException, OSError) as error:
        return [Fault("opensearch", url, *_describe_problem(error))], []
    finally:
        await client.close()
    if not answers:
        return [Fault("opensearch", url, *_describe_problem(refused["version"]))], []
    checks: dict[str, _Check] = {
        "version": partial(_check_version, url),
        "health": partial(_check_health, url),
        "index templates": check_templates,
        "shards": check_shards,
        # It is the last request: `sent_at` is its time.
        "clock": partial(_check_clock, url, sent_at),
    }
    unseen = [f"OpenSearch: its {part}: a user with the role {PROVISIONER} may see it" for part in refused]
    return [fault for part, answer in answers.items() for fault in checks[part](answer)], unseen


def _check_clock(url: str, sent_at: datetime, stats: Mapping[str, Any]) -> Iterator[Fault]:
    # A store without a clock of its own in its answers would have no answer here.
    server_time = datetime.fromtimestamp(int(stats.get("timestamp", 0)) / 1000, UTC)
    yield from check_clock(f"OpenSearch at {url}", server_time, sent_at, datetime.now(UTC))


def _check_version(url: str, info: Mapping[str, Any]) -> Iterator[Fault]:
    number = str(info.get("version", {}).get("number", ""))
    if info.get("version", {}).get("distribution") != "opensearch":
        yield Fault("opensearch", url, f"is not OpenSearch ({number})", "Name an OpenSearch of version 2 or 3.")
    elif number and int(number.partition(".")[0]) < MINIMUM:
        yield Fault("opensearch", url, f"is version {number}", "Upgrade it to version 2 or 3.")


def _check_health(url: str, health: Mapping[str, Any]) -> Iterator[Fault]:
    if health["status"] == "red":
        yield Fault("opensearch", url, "the cluster is red", "Ask it why: GET _cluster/allocation/explain.")


def check_templates(answer: Mapping[str, Any]) -> Iterator[Fault]:
    """Check the answer to ``GET /_index_template``. Pure."""
    metadata = {
        template["name"]: template["index_template"].get("_meta", {}) for template in answer.get("index_templates", ())
    }
    if not metadata:
        problem = f"none of the {len(INDICES)} is there"
        yield Fault("opensearch", "index templates", problem, f"To make them, {PROVISION}.")
        return
    for index in INDICES:
        version = metadata.get(index.alias, {}).get("schedulerlog_mapping_version")
        if index.alias not in metadata:
            yield Fault("opensearch", index.alias, "the index template is missing", f"To make it, {PROVISION}.")
        elif version != MAPPING_VERSION:
            problem = f"the index template has mapping version {version}, this program needs {MAPPING_VERSION}"
            yield Fault("opensearch", index.alias, problem, f"With the version that is to run, {PROVISION}.")


def check_shards(rows: Iterable[Mapping[str, str | None]]) -> Iterator[Fault]:
    """Check the answer to ``GET /_cat/indices``: the primary shards of each index. Pure."""
    for row in rows:
        # A closed index has no size there.
        shards, size = int(row.get("pri") or 1), int(row.get("pri.store.size") or 0)
        if size > shards * LARGEST_SHARD:
            problem = f"a shard has {size / shards / 1e9:.0f} GB, more than {LARGEST_SHARD // 10**9}"
            needed = -(-size // LARGEST_SHARD)
            remedy = f"Set SCHEDULERLOG_INDEX_SHARDS to {needed}, for indices made later, and {PROVISION}."
            yield Fault("opensearch", str(row["index"]), problem, remedy)


def _describe_problem(error: Exception) -> tuple[str, str]:
    """Describe an error and its remedy."""
    role = f"the role {PROVISIONER}"
    message, remedy = str(error), ""
    if isinstance(error, OpenSearchException):
        message, remedy = explain_refusal(error, role), suggest_next_step(error, role).removeprefix(": ")
    if not remedy:
        return (
            f"does not answer ({message})",
            "Is the address right (https:// with TLS), and is it reached from here (network policies)?",
        )
    reason = explain_distrust(error)
    problem = f"its certificate is not trusted ({reason})" if reason else f"refuses us ({error})"
    if alert := explain_alert(error):
        problem = f"refuses our certificate ({alert})"
    return problem, f"{remedy[0].upper()}{remedy[1:]}."
