"""The report of failures from the command line, read from OpenSearch."""

from datetime import UTC, datetime

import orjson

from api.answers.report_collector import ReportCollector
from api.http.report_query import ReportQuery
from api.index.reading.client import OpenSearch
from engine.fit import device_config
from page.report_file import written
from runtime.opensearch.client import new_client
from runtime.settings.opensearch_connection import OpenSearchConnection
from schemas.codec.records import encode_value


async def report_of(connection: OpenSearchConnection, cluster: str, query: ReportQuery) -> str:
    """The text of the report, in the format of the query. Raises as ``OpenSearch.search``."""
    client = new_client(connection)
    try:
        index = OpenSearch(client, lambda *_: None, connection.opensearch_timeout.total_seconds())
        collector = ReportCollector(index, device_config.shipped())
        # Who may read the index as a whole may see nodes.
        report = await collector.collect(cluster, query, datetime.now(UTC), sees_nodes=True)
    finally:
        await client.close()
    if query.format == "json":
        return orjson.dumps(orjson.loads(encode_value(report)), option=orjson.OPT_INDENT_2).decode() + "\n"
    return written(report, query.format)
