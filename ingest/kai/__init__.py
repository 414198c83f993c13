"""KAI-Scheduler's log: console lines of v0.13, JSON lines of v0.17, and the six tags of one operator's patch.

    line ── framing ──▶ Message ── sentences ──▶ Sentence ── session, tags ──▶ Attempt ── tell ──▶ events

KAI prints no memory of a card in its fit errors. It is rebuilt (``cards``) from the lines about shared GPUs, so that
there is a reason for each card also where KAI says only "Unable to schedule pod".
"""

from ingest.kai.reader import KaiLog

__all__ = ["KaiLog"]
