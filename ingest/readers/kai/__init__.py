"""KAI-Scheduler's log: console lines of v0.13, JSON lines of v0.17, and the six tags of one operator's patch.

    line ── framing ──▶ LogMessage ── grammar ──▶ ParsedMessage ── open_attempts ──▶ Attempt ── events ──▶ events

- ``reader``: the entry; routes each line to the module that understands it
- ``framing``: time, file, session and text of a line, console or JSON
- ``grammar`` (``grammar.toml``): the messages that matter, and their parts
- ``tags``: the lines of the patch, which have a form of their own
- ``open_attempts``: the sessions that are not over yet, and when one is
- ``session``: applies one message to one session and its attempts
- ``devices``: memory of shared GPUs, rebuilt from the lines about them; KAI's fit errors don't print it
- ``attempt``: one pod in one session
- ``fit_errors``: KAI's texts on why nothing fits, also read from Kubernetes events by ``ingest.readers.kube``
- ``states``: the devices of nodes as KAI looked at them, by a revision of their content
- ``verdicts``: the verdict on each node and device of an attempt
- ``node_labels``: memory and pools of nodes, and whether a node is in the pool that the scheduler serves
- ``findings``: contradictions in the numbers of placements and devices
- ``placements``: memory that sessions gave to pods, compared with later sessions
- ``events``: an attempt as schedulerlog's events
"""

from ingest.readers.kai.reader import KaiLog

__all__ = ["KaiLog"]
