"""scheduler-sniffer: what its watcher writes in JSON lines, and what its scheduler sends over gRPC.

line, or request ── datum ──▶ Datum ── reader ──▶ observations of pods and nodes
"""

from ingest.sniffer.reader import SnifferLog

__all__ = ["SnifferLog"]
