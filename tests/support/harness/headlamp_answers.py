"""Answers for the Headlamp plugin's own tests; ``python -m tests.support.harness.headlamp_answers`` writes them.

The answers of the application about the README's refused pod on the example cluster, and about a node of the golden
records, by the path of the aggregated API at which the plugin asks for them.
"""

import asyncio
from pathlib import Path
from typing import Any, Final

import orjson

from api.http.aggregated.translation import translate_path
from api.http.cluster import AGGREGATED
from engine.fit import manifests
from engine.fit.events.attempt import Identity
from engine.fit.judge.decision import SchedulingPolicy
from engine.fit.simulate import build_columns, simulate_on
from engine.summaries.fold import summarize
from tests.support.builders.events import STARTED
from tests.support.harness.api_app import Caller
from tests.support.harness.golden_index import answer_search

FILE: Final = Path("headlamp/src/answers.json")
_POD: Final = f"{AGGREGATED}/namespaces/default/pods/gpu-pod-default/schedulerlog"
_PATHS: Final = (
    f"{_POD}/diagnosis",
    f"{_POD}/suggestions",
    f"{_POD}/groups",
    f"{AGGREGATED}/schedulerlogs?node=node3&group_by=node&since=7d&limit=1",
)


def serve_refused_pod() -> Caller:
    """Serve the API with the example cluster's devices, after the pod was refused."""
    api = Caller(answer_search)
    columns = build_columns(manifests.read(Path("examples/cluster.yaml")))
    devices = api.app.state.devices
    devices.columns[api.app.state.default_cluster] = columns
    devices.is_caught_up = True
    pod = manifests.read_pod(Path("examples/pods/2-gpu-pod-default.yaml"))
    identity = Identity("default", "hami-scheduler")
    api.remember(summarize(simulate_on(columns, columns.node_names, pod, identity, SchedulingPolicy(), STARTED)))
    return api


async def collect_answers() -> dict[str, Any]:
    """Collect each path with its answer."""
    api = serve_refused_pod()
    collected = {path: await _answer(api, path) for path in _PATHS}
    for answer in collected.values():
        # The time of the request, and what has passed until then.
        answer |= {name: STARTED.isoformat() for name in {"at", "as_of"} & set(answer)}
        for wait in answer.get("waits", ()):
            wait["waited_seconds"] = 3600
    return collected


async def _answer(api: Caller, path: str) -> Any:
    plain, _, query = path.partition("?")
    plugin_path = translate_path(plain)
    assert plugin_path, path
    answer = await api.get(f"{plugin_path.path}?{query}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def write_document() -> bytes:
    """Write the content of the file."""
    return orjson.dumps(asyncio.run(collect_answers()), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


if __name__ == "__main__":
    FILE.write_bytes(write_document())
