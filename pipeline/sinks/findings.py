"""A finding as it is written: a document of the index and a record of its topic. Pure."""

from broker.record import Outgoing
from pipeline.sinks.bulk import Document, source
from schemas.codec.records import encode
from schemas.documents.findings import finding_document
from schemas.events import FindingReported
from schemas.indices import FINDINGS
from schemas.topics import FINDINGS as FINDINGS_TOPIC


def finding_write(
    event: FindingReported, version: int | None = None, origin: object = None
) -> tuple[Document, Outgoing]:
    """The document and the record. A finding that is reported again with other numbers needs a greater ``version``."""
    # The day of the attempt and not of the report: reported again, it replaces itself in the same index.
    document = Document(FINDINGS.name(event.started_at), event.id, source(finding_document(event)), version, origin)
    return document, Outgoing(FINDINGS_TOPIC.name, encode(event))
