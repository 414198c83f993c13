"""A cluster and a pod as Kubernetes' objects, on which what is suggested can be done; and random ones."""

import copy
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.judge.decide import decide
from engine.fit.judge.decision import Decision, SchedulingPolicy
from engine.hami.vendors import ONLY_NVIDIA
from engine.suggestions.acts import list_nodes_to_empty
from engine.suggestions.ask import Ask
from engine.suggestions.nodes import LastRegistration, UnregisteredNodes, build_unregistered_nodes
from engine.suggestions.suggest import suggest
from engine.suggestions.suggestion import Edit, Suggestion
from engine.suggestions.trial import Trial
from tests.support.builders.nodes_to_judge import a_device, a_node, a_pod, a_quota, a_running_pod, ask_for
from tests.support.harness.states_in_memory import build_states

POLICY = SchedulingPolicy()
CORDON = "hami.io/device-cordon"
REGISTER = "hami.io/node-nvidia-register"


@dataclass
class Objects:
    """A cluster and a pod as Kubernetes' objects, and which nodes kube-scheduler offers."""

    nodes: list[dict[str, Any]]
    pod: dict[str, Any]
    running: dict[str, dict[str, Any]] = field(default_factory=dict)
    quotas: list[dict[str, Any]] = field(default_factory=list)
    offered: tuple[str, ...] = ()
    lost: dict[str, str] = field(default_factory=dict)
    """Nodes that register nothing any more: what their annotation was."""
    ended: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Pods that held devices when the lost nodes were last registered, and have ended since."""
    begun: frozenset[str] = frozenset()
    """Running pods of which the last registration knows nothing."""

    def build_columns(self) -> ClusterColumns:
        columns = ClusterColumns(ONLY_NVIDIA)
        for quota in self.quotas:
            columns.apply_quota(quota)
        for node in self.nodes:
            columns.apply_node(node)
        for pod in self.running.values():
            columns.apply_pod(pod)
        return columns

    def list_suggestions(self) -> list[Suggestion]:
        columns = self.build_columns()
        trial, ask = self.build_trial(columns), Ask.from_pod(self.pod, ONLY_NVIDIA)
        uses = {uid: use for uid in self.running if (use := columns.get_pod_use(uid))}
        nodes = list_nodes_to_empty(trial, ask)
        holders = {node: {uid: use for uid, use in uses.items() if use.node == node} for node in nodes}
        return suggest(trial, ask, holders, self.list_unregistered())

    def list_unregistered(self) -> UnregisteredNodes:
        """Return the lost nodes as the records of the past have them."""
        then = copy.deepcopy(self)
        for node in self.lost:
            then.register(node)
        then.running = {uid: pod for uid, pod in self.running.items() if uid not in self.begun} | self.ended
        before, now = then.build_columns(), self.build_columns()
        last = [
            LastRegistration(
                state,
                [use for uid in self.ended if (use := before.get_pod_use(uid)) and use.node == state.node],
                [use for uid in self.begun if (use := now.get_pod_use(uid)) and use.node == state.node],
            )
            for state in build_states(before)
            if state.node in self.lost
        ]
        return build_unregistered_nodes(ONLY_NVIDIA, last, [])

    def register(self, node: str) -> None:
        (match,) = (candidate for candidate in self.nodes if candidate["metadata"]["name"] == node)
        match["metadata"]["annotations"][REGISTER] = self.lost.pop(node)

    def build_trial(self, columns: ClusterColumns | None = None) -> Trial:
        return Trial(columns or self.build_columns(), self.offered or self.all_nodes, POLICY)

    @property
    def all_nodes(self) -> tuple[str, ...]:
        return tuple(node["metadata"]["name"] for node in self.nodes)

    def decide(self) -> Decision | None:
        answer = decide(self.build_columns(), self.pod, self.offered or self.all_nodes, POLICY)
        return answer if isinstance(answer, Decision) and answer.chosen else None

    def copy_with(self, edits: Sequence[Edit]) -> "Objects":
        changed = copy.deepcopy(self)
        for edit in edits:
            changed.apply(edit)
        return changed

    def apply(self, edit: Edit) -> None:
        if edit.constraint in ("memory", "cores", "count"):
            name, _, resource = edit.where.partition(": ")
            (container,) = (candidate for candidate in self.pod["spec"]["containers"] if candidate["name"] == name)
            container["resources"]["limits"][resource] = int(edit.after)
        elif edit.constraint == "quota":
            for quota in self.quotas:
                if f"limits.{edit.where}" in quota["spec"]["hard"]:
                    assert str(quota["spec"]["hard"][f"limits.{edit.where}"]) == edit.before
                    quota["spec"]["hard"][f"limits.{edit.where}"] = int(edit.after)
        elif edit.constraint == "use":
            del self.running[edit.where]
        elif edit.constraint == "registration":
            self.register(edit.where)
        elif edit.constraint == "nodes":
            self.offered = ()
        elif edit.constraint == "cordon":
            for node in self.nodes:
                marks = node["metadata"]["annotations"]
                left = [uuid for uuid in marks.get(CORDON, "").split(",") if uuid != edit.where]
                marks[CORDON] = ",".join(left)
        elif edit.constraint == "health":
            for node in self.nodes:
                devices = json.loads(node["metadata"]["annotations"].get(REGISTER, "[]"))
                for device in devices:
                    device["health"] = device["health"] or device["id"] == edit.where
                if devices:
                    node["metadata"]["annotations"][REGISTER] = json.dumps(devices)
        else:
            del self.pod["metadata"]["annotations"][edit.where]


@st.composite
def clusters(draw: st.DrawFn) -> Objects:
    names = [f"n{number}" for number in range(draw(st.integers(1, 4)))]
    nodes, running = [], {}
    for name in names:
        devices = [
            a_device(
                f"{name}-{index}",
                numa=draw(st.integers(0, 1)),
                devmem=draw(st.sampled_from([1000, 4000])),
                type=draw(st.sampled_from(["NVIDIA A30", "NVIDIA T4"])),
                count=draw(st.integers(1, 3)),
                health=draw(st.sampled_from([True, True, False])),
            )
            for index in range(draw(st.integers(1, 4)))
        ]
        nodes.append(
            a_node(name, devices, device_cordon=draw(st.sampled_from(["", f"{name}-0", f"{name}-0,{name}-1"])))
        )
    for number in range(draw(st.integers(0, 6))):
        node, index = draw(st.sampled_from(names)), draw(st.integers(0, 3))
        memory, cores = draw(st.integers(0, 1500)), draw(st.sampled_from([0, 30, 100]))
        uid = f"uid-{number}"
        running[uid] = a_running_pod(f"{node}-{index},NVIDIA,{memory},{cores}:;", node, uid, namespace="other")
    quotas = (
        [a_quota(gpumem=draw(st.integers(0, 6000)), gpucores=draw(st.integers(0, 300)))] if draw(st.booleans()) else []
    )
    offered = tuple(draw(st.lists(st.sampled_from(names), unique=True, min_size=1)))
    lost = {}
    for item in nodes:
        if draw(st.sampled_from([False, False, False, True])):
            lost[item["metadata"]["name"]] = item["metadata"]["annotations"].pop(REGISTER)
    ended, begun = {}, set()
    for number, name in enumerate(lost):
        held = f"{name}-0,NVIDIA,{draw(st.integers(0, 1500))},{draw(st.sampled_from([0, 30]))}:;"
        if draw(st.booleans()):
            ended[f"ended-{number}"] = a_running_pod(held, name, f"ended-{number}", namespace="other")
        if draw(st.booleans()):
            running[f"begun-{number}"] = a_running_pod(held, name, f"begun-{number}", namespace="other")
            begun.add(f"begun-{number}")
    return Objects(nodes, draw(pods()), running, quotas, offered, lost, ended, frozenset(begun))


@st.composite
def pods(draw: st.DrawFn) -> dict[str, Any]:
    amounts = {"gpumem": st.integers(1, 5000), "gpucores": st.sampled_from([0, 30, 50, 100])}
    share = {"gpumem_percentage": st.integers(1, 100), "gpucores": st.sampled_from([0, 30])}
    containers = []
    for number in range(draw(st.integers(1, 2))):
        chosen = draw(st.sampled_from([amounts, share]))
        container = ask_for(draw(st.integers(1, 5)), **{name: draw(values) for name, values in chosen.items()})
        containers.append({**container, "name": f"c{number}"})
    marks = {
        "nvidia.com/numa-bind": st.just("true"),
        "nvidia.com/use-gputype": st.sampled_from(["A30", "T4", "H100"]),
        "nvidia.com/nouse-gpuuuid": st.just("n0-0,n1-1"),
        "hami.io/gpu-scheduler-policy": st.sampled_from(["mutex", "topology-aware", "spread"]),
    }
    return a_pod(*containers, annotations={key: draw(value) for key, value in marks.items() if draw(st.booleans())})
