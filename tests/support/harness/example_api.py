"""The API over the examples' cluster: one pod of the examples was decided there, as ``make demo`` shows it."""

from datetime import UTC, datetime
from pathlib import Path

from engine.fit import manifests
from engine.fit.events.attempt import Identity
from engine.fit.events.state_builder import Life
from engine.fit.judge.decision import SchedulingPolicy
from engine.fit.simulate import build_columns, simulate
from engine.summaries.fold import summarize
from schemas.ids import count_microseconds
from tests.support.harness.api_app import Caller
from tests.support.harness.states_in_memory import build_states

EXAMPLES = Path(__file__).parents[3] / "examples"
STARTED = datetime(2026, 11, 23, 9, 30, tzinfo=UTC)


def build_caller(pod: str) -> Caller:
    """Build a caller for ``pod``, a file of examples/pods; its attempt and the state of every node are in memory."""
    cluster = manifests.read(EXAMPLES / "cluster.yaml")
    events = simulate(
        cluster, manifests.read_pod(EXAMPLES / "pods" / f"{pod}.yaml"), "hami-scheduler", SchedulingPolicy(), STARTED
    )
    caller = Caller()
    caller.remember(summarize(events))
    for state in build_states(
        build_columns(cluster), Life(Identity("default", "hami-scheduler"), count_microseconds(STARTED))
    ):
        caller.app.state.devices.take(state, state.observed_at)
    caller.app.state.devices.is_caught_up = True
    return caller
