"""The usual changes of docs/changing.md, made as an example each: what is edited by hand, and where.

A change is a list of edits; an edit replaces a text that occurs once in its file, or makes a new file.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

NEW_FILE: Final = ""
"""Text that an edit replaces in a file that does not exist yet."""


class Edit(NamedTuple):
    old: str
    new: str


Change = Mapping[str, tuple[Edit, ...]]
"""Path to its edits."""

_TEXTS: Final = """
[DeviceTooHot]
scope = "device"
en.meaning = "The device is hotter than it may be."
en.likely_cause = "Its node reports a temperature above the limit."
en.remedy = "Look at the fans of the node: `nvidia-smi`."
zh.meaning = "这个设备的温度过高。"
zh.likely_cause = "节点上报的温度超过上限。"
zh.remedy = "检查节点的风扇：`nvidia-smi`。"

[NodeInsufficientDevice]
"""
REASON: Final[Change] = {
    "engine/hami/reason_codes.py": (
        Edit("\n    # Verdicts about a node\n", '    DEVICE_TOO_HOT = "DeviceTooHot"\n\n    # Verdicts about a node\n'),
    ),
    "schemas/reasons.toml": (Edit("\n[NodeInsufficientDevice]\n", _TEXTS),),
}

_VENDOR: Final = """ACME: Final = Vendor(
    "Acme",
    Resources("example.com/card", memory="example.com/card-memory"),
    NodeKeys("hami.io/node-acme-register", handshake="hami.io/node-handshake-acme"),
    PodKeys("hami.io/acme-devices-to-allocate", "hami.io/acme-devices-allocated"),
    model_word="ACME",
)


def build_custom_vendor(word: str)"""
VENDOR: Final[Change] = {
    "engine/hami/vendor_catalog.py": (Edit("def build_custom_vendor(word: str)", _VENDOR),),
    "engine/fit/device_config_keys.py": (
        Edit(
            '    "awsneuron": ((vendor_catalog.NEURON,',
            '    "acme": ((vendor_catalog.ACME, _COMMON),),\n    "awsneuron": ((vendor_catalog.NEURON,',
        ),
    ),
    "engine/fit/device-config.yaml": (
        Edit("\niluvatars:\n", "\nacme:\n  resourceCountName: example.com/card\niluvatars:\n"),
    ),
}

_HANDLER: Final = '''
    async def list_node_names(self, request: Request, cluster: Cluster, _: NoQuery) -> Response:
        """List the names of the nodes that registered devices."""
        await get_access(request).require(cluster, LIST_NODES)
        answer = await self.index.search(OBSERVATIONS.alias, node_list.build_nodes_query(cluster.name, None, 1_000))
        return to_json_response(200, NodeNames(items=list(node_list.parse_nodes(answer, datetime.now(UTC)))))

    async def list_schedulers('''
ENDPOINT: Final[Change] = {
    "api/routes.py": (
        Edit("answers.nodes import Clusters, Names, Nodes", "answers.nodes import Clusters, Names, NodeNames, Nodes"),
        Edit(
            '        Operation("/nodes", clusters',
            '        Operation("/node-names", clusters.list_node_names, NodeNames, "Names of nodes", {}, (400, 503)),\n'
            '        Operation("/nodes", clusters',
        ),
    ),
    "api/handlers/clusters.py": (
        Edit("answers.nodes import Clusters, NodeListed", "answers.nodes import Clusters, NodeListed, NodeNames"),
        Edit("\n    async def list_schedulers(", _HANDLER),
    ),
    "schemas/answers/nodes.py": (
        Edit(
            "class NodeListed(Answer):", "class NodeNames(Answer):\n    items: list[str]\n\n\nclass NodeListed(Answer):"
        ),
        Edit("ANSWERS: Final = (Clusters, ", "ANSWERS: Final = (Clusters, NodeNames, "),
    ),
}

FIELD: Final[Change] = {
    "schemas/answers/nodes.py": (
        Edit(
            "    pods: int = Field(",
            '    device_models: list[str] = Field(description="Models of its devices.")\n    pods: int = Field(',
        ),
    ),
    "api/index/nodes/node_list.py": (
        Edit(
            "        pods=len(records.placements),",
            "        device_models=sorted({model for event in registrations for model in event.model}),\n"
            "        pods=len(records.placements),",
        ),
    ),
}

_READER: Final = '''"""The reader of a scheduler that writes a line for each pod that it looks at."""

from collections.abc import Iterable

from ingest.lines.blocks import Lines
from ingest.reading.protocol import EVENT, Counts
from schemas.events import DEFAULT_CLUSTER, Event, PodObserved, PodRef

BEGIN = b"plain-scheduler: pending "


class PlainLog:
    """Reads ``plain-scheduler: pending NAMESPACE/NAME``. See ``ingest.reading.protocol.LogReader``."""

    def __init__(self, *, cluster: str = DEFAULT_CLUSTER) -> None:
        self.counts = Counts()
        self._cluster = cluster

    def feed(self, lines: Lines) -> Iterable[Event]:
        for line in lines.texts:
            namespace, _, name = line.removeprefix(BEGIN).decode().partition("/")
            if not line.startswith(BEGIN) or not name:
                self.counts.count_unknown(line)
                continue
            self.counts.add(EVENT)
            yield PodObserved(
                cluster=self._cluster,
                pod=PodRef(namespace=namespace, name=name, uid=""),
                observed_at=lines.origin.reference,
                phase="Pending",
            )

    def close(self) -> Iterable[Event]:
        return ()

    def save(self) -> bytes:
        return b""

    def restore(self, saved: bytes) -> None:
        """Continue: each line stands for itself."""

    def list_unfinished(self) -> set[str]:
        return set()
'''
_CREATE: Final = """def _create_plain_reader(cluster: str, facts: LogFacts) -> WaitingReader:
    from ingest.readers.plain import PlainLog

    return PlainLog(cluster=cluster)


LOG_SOURCES: Final = (
    LogSource("plain-log", _create_plain_reader, lambda line: line.startswith(b"plain-scheduler: ")),
"""
LOG_SOURCE: Final[Change] = {
    "ingest/readers/plain.py": (Edit(NEW_FILE, _READER),),
    "ingest/readers/registry.py": (Edit("LOG_SOURCES: Final = (\n", _CREATE),),
    "docs/sources.md": (
        Edit("\n## Reading of logs\n", "\nThe plain scheduler: its pods that wait.\n\n## Reading of logs\n"),
    ),
}

CHANGES: Final[dict[str, Change]] = {
    "A reason code": REASON,
    "A vendor": VENDOR,
    "An API endpoint": ENDPOINT,
    "A field of an answer": FIELD,
    "A log source": LOG_SOURCE,
}
"""Section of the page to its example."""


def make(change: Change, root: Path) -> None:
    """Make the change in the checkout at ``root``. Raises ``ValueError`` for an edit that no longer fits its file."""
    for name, edits in change.items():
        path = root / name
        for edit in edits:
            text = "" if edit.old == NEW_FILE else path.read_text("utf-8")
            if (edit.old == NEW_FILE and path.exists()) or (edit.old != NEW_FILE and text.count(edit.old) != 1):
                raise ValueError(f"{name} does not have {edit.old!r:.60} once: bring the example up to date")
            path.write_text(text.replace(edit.old, edit.new) if edit.old else edit.new, "utf-8")
