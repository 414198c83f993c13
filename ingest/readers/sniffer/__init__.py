"""scheduler-sniffer: what its watcher writes in JSON lines, and what its scheduler sends over gRPC.

- ``message``: the fields of a line or of a request
- ``reader``: messages in, observations of pods and nodes out
- ``service``: the gRPC service that the sniffer sends to
- ``credentials``: its certificate, and those of its clients
"""

from ingest.readers.sniffer.reader import SnifferLog

__all__ = ["SnifferLog"]
