"""SchedulingGates: gates keep a pod from the queue; it is not tried while it has any."""

from typing import Final

from engine.filters.cycle import SchedulingCycle
from engine.filters.verdicts import PluginRefusal, StatusCode
from engine.snapshot.fields import read_items, read_text

NAME: Final = "SchedulingGates"


def check_pre_enqueue(cycle: SchedulingCycle) -> PluginRefusal | None:
    """Refuse a pod with gates."""
    gates = [read_text(gate, "name", location) for location, gate in read_items(cycle.spec, "schedulingGates", "spec")]
    if not gates:
        return None
    return PluginRefusal(NAME, StatusCode.UNRESOLVABLE, (f"waiting for scheduling gates: [{' '.join(gates)}]",))
