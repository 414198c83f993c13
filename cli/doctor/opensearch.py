"""OpenSearch: reachability, health, the templates of this version, and the clock."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from opensearchpy.exceptions import OpenSearchException

from cli.doctor.findings import PROVISION, Fault, check_clock
from runtime.errors import SettingError
from runtime.opensearch.client import create_client
from runtime.opensearch.refusals import explain_distrust, explain_refusal, suggest_next_step
from runtime.opensearch.roles import PROVISIONER
from runtime.settings.opensearch_connection import OpenSearchConnection
from schemas.index_family import MAPPING_VERSION
from schemas.indices import INDICES

MINIMUM: Final = 2


async def check(connection: OpenSearchConnection) -> list[Fault]:
    url = connection.opensearch_url
    try:
        client = create_client(connection)
    except SettingError as error:
        return [Fault("opensearch", url, str(error), "Correct the setting.")]
    try:
        info = await client.info()
        health = await client.transport.perform_request("GET", "/_cluster/health")
        templates = await client.transport.perform_request("GET", "/_index_template/schedulerlog-*", ignore=(404,))
        sent_at = datetime.now(UTC)
        # A store without a clock of its own in its answers would have no answer here.
        stats = await client.transport.perform_request("GET", "/_cluster/stats")
    except (OpenSearchException, OSError) as error:
        return [Fault("opensearch", url, *_describe_problem(error))]
    finally:
        await client.close()
    server_time = datetime.fromtimestamp(int(stats.get("timestamp", 0)) / 1000, UTC)
    return [
        *_check_version(url, info), *_check_health(url, health), *check_templates(templates),
        *check_clock(f"OpenSearch at {url}", server_time, sent_at, datetime.now(UTC)),
    ]  # fmt: skip


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
    return problem, f"{remedy[0].upper()}{remedy[1:]}."
