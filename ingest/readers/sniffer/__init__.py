"""scheduler-sniffer: the JSON lines of its watcher, and the gRPC calls of its scheduler.

- ``message``: the fields of a line or of a request
- ``reader``: messages in, observations of pods and nodes out
- ``service``: the gRPC service that the sniffer sends to
- ``credentials``: the service's certificate, and its clients'
"""

from ingest.readers.sniffer.reader import SnifferLog

__all__ = ["SnifferLog"]
