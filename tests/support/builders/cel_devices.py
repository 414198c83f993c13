"""A device as CEL expressions read it: a GPU of 46068Mi with attributes of every kind."""

from typing import Any

from engine.claims.cel.attributes import make_device
from engine.claims.cel.compiler import load_environment
from engine.claims.cel.frames import Frame
from engine.claims.cel.planner import plan_program
from engine.claims.cel.values import Value
from engine.claims.cel.wire import decode_checked
from engine.claims.quantity import parse_quantity
from engine.claims.version import parse_version

ATTRIBUTES = {
    "model": "A100",
    "index": 3,
    "mig": False,
    "driverVersion": parse_version("550.54.15"),
    "resource.kubernetes.io/pcieRoot": "pci0000:01",
}
GPU = "device.attributes['gpu.nvidia.com']"
MEMORY = "device.capacity['gpu.nvidia.com'].memory"


def build_device(**more: Any) -> Value:
    capacity = {"memory": parse_quantity("46068Mi")}
    return make_device("gpu.nvidia.com", ATTRIBUTES | more, capacity, is_shared=False)


def run_expression(expression: str) -> tuple[Value, int]:
    """Evaluate an expression of any type on the device; return its value, and what it costs in Kubernetes' units."""
    checked = decode_checked(load_environment(False).compile(expression).serialize(), expression)
    plan = plan_program(checked)
    frame = Frame(build_device(), plan.slots)
    return plan.step.evaluate(frame), frame.cost
