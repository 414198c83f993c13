"""Plans of moves: the fewest pods that leave a node so that a waiting pod starts, each step as the judge decides it."""

from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.capacity.defragment import plan_defragmentation
from engine.capacity.shapes import Shape, build_template
from engine.fit import device_config
from engine.simulation.pod_placer import placing_pods
from engine.simulation.verdict import PodOutcome, judge_simulated
from schemas.answers.capacity import Defragmentation
from tests.support.builders.capacity import SETTING, a_budget, a_holder, a_replica
from tests.support.builders.simulations import a_gpu_node, a_gpu_pod, build_described

Object = dict[str, Any]
VENDORS = device_config.read_shipped()
EVICTION = '{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"namespace":"default","name":"a"}}'


def plan(shape: Shape, *objects: Object, wanted: int = 1) -> Defragmentation:
    cluster = build_described(*objects)
    uses = {use.name: use for use in cluster.columns.list_pod_uses()}
    answer = plan_defragmentation(cluster, build_template(shape, VENDORS), wanted, SETTING)
    assert {use.name: use for use in cluster.columns.list_pod_uses()} == uses
    return answer


def list_moves(answer: Defragmentation) -> list[tuple[str, str | None]]:
    return [(move.name, move.node) for opened in answer.nodes for move in opened.moves]


def test_one_pod_moves_so_that_a_whole_node_is_free() -> None:
    nodes = [a_gpu_node("n1", 2), a_gpu_node("n2", 2)]
    pods = [a_replica("a", "n1", {0: (9000, 0)}), a_replica("b", "n2", {0: (9000, 0)})]
    answer = plan(Shape(2, 20_000), *nodes, *pods)
    assert list_moves(answer) == [("a", "n2")]
    assert (answer.starts, answer.moves, answer.is_fewest) == (1, 1, True)
    assert (answer.nodes[0].node, answer.nodes[0].source) == ("n1", "n1")
    assert answer.sentence.en == "It starts after 1 pod has moved."
    assert answer.commands == [
        "kubectl cordon n1",
        f"""echo '{EVICTION}' | kubectl create --raw /api/v1/namespaces/default/pods/a/eviction -f -""",
        "kubectl wait --for=delete pod/a -n default --timeout=10m",
        "# ReplicaSet/web makes it again: wait until the new pod runs, by this plan on n2",
        "kubectl uncordon n1",
    ]


def test_a_pod_that_its_budget_keeps_is_left_where_it_is() -> None:
    nodes = [a_gpu_node("n1", 2), a_gpu_node("n2", 2)]
    pods = [a_replica("a", "n1", {0: (9000, 0)}), a_replica("b", "n2", {0: (9000, 0)}, "db")]
    assert list_moves(plan(Shape(2, 20_000), *nodes, *pods, a_budget("web", "web", 0))) == [("b", "n1")]
    answer = plan(Shape(2, 20_000), *nodes, *pods, a_budget("all", None, 0))
    assert (list_moves(answer), answer.starts, answer.commands) == ([], 0, [])
    assert answer.sentence.en == "No plan that moves up to 4 pods of one node lets it start."
    assert answer.obstacle is not None


def test_a_pod_that_nothing_makes_again_is_not_moved() -> None:
    nodes = [a_gpu_node("n1", 2), a_gpu_node("n2", 2)]
    pods = [a_holder("a", "n1", {0: (9000, 0)}), a_replica("b", "n2", {0: (9000, 0)})]
    assert list_moves(plan(Shape(2, 20_000), *nodes, *pods)) == [("b", "n1")]


def test_a_pod_that_starts_as_things_are_needs_no_move() -> None:
    answer = plan(Shape(1, 20_000), a_gpu_node("n1", 2), a_replica("a", "n1", {0: (9000, 0)}))
    assert (answer.starts, answer.moves, answer.is_fewest) == (1, 0, True)
    assert answer.sentence.en == "It starts now; no pod has to move."


def test_several_pods_are_planned_one_after_the_other() -> None:
    nodes = [a_gpu_node(name, 2) for name in ("n1", "n2", "n3")]
    pods = [a_replica(f"p{number}", f"n{number}", {0: (6000, 0)}) for number in (1, 2, 3)]
    answer = plan(Shape(2, 20_000), *nodes, *pods, wanted=2)
    assert (answer.starts, answer.moves, answer.is_fewest) == (2, 2, False)
    # Of the equal nodes n2 and n3 the first by name takes p1; then only n3 has a single pod.
    assert [opened.source for opened in answer.nodes] == ["n1", "n3"]
    assert list_moves(answer) == [("p1", "n2"), ("p3", "n2")]


_USES = st.dictionaries(st.integers(0, 1), st.tuples(st.sampled_from([6000, 12000, 20000]), st.just(0)), min_size=1)


@st.composite
def fragmented(draw: st.DrawFn) -> list[Object]:
    """Two or three nodes of two devices with up to three pods each, which a ReplicaSet makes again, or nothing."""
    objects: list[Object] = []
    for number in range(draw(st.integers(2, 3))):
        name = f"n{number}"
        objects.append(a_gpu_node(name, 2))
        for position, use in enumerate(draw(st.lists(_USES, max_size=3))):
            build = a_replica if draw(st.booleans()) else a_holder
            memory = min(amount for amount, _ in use.values())
            objects.append(build(f"{name}-p{position}", name, dict.fromkeys(use, (memory, 0))))
    return objects


def is_moved_and_placed(pods: Mapping[str, str | None], objects: Sequence[Object], shape: Shape) -> bool:
    """Tell whether pods leave their node one after the other, each to the named one, and the shape starts there.

    A second calculation: each step is judged on a cluster that is described again.
    """
    left = [item for item in objects if item["metadata"]["name"] not in pods]
    of_name = {item["metadata"]["name"]: item for item in objects}
    # In the order of the plan: a pod may take the place that another one would have had.
    moved = [of_name[name] for name in pods]
    (source,) = {item["spec"]["nodeName"] for item in moved}
    cordoned = [
        {**item, "spec": {**item["spec"], "unschedulable": True}} if item["metadata"]["name"] == source else item
        for item in left
    ]
    with placing_pods(build_described(*cordoned)) as placer:
        placements = []
        for item in moved:
            limits = item["spec"]["containers"][0]["resources"]["limits"]
            pod = a_gpu_pod(item["metadata"]["name"], gpu=limits["nvidia.com/gpu"], gpumem=limits["nvidia.com/gpumem"],
                            gpucores=limits["nvidia.com/gpucores"])  # fmt: skip
            verdict = judge_simulated(placer.cluster, pod, SETTING.identity, SETTING.policy, SETTING.now)
            if verdict.outcome is not PodOutcome.FITS:
                return False
            expected = pods[item["metadata"]["name"]]
            assert expected in (None, verdict.node)
            placer.bind(verdict)
            placements.append(verdict)
    with placing_pods(build_described(*left)) as placer:
        for verdict in placements:
            placer.bind(verdict)
        pod = build_template(shape, VENDORS).pod
        waiting = judge_simulated(placer.cluster, pod, SETTING.identity, SETTING.policy, SETTING.now)
    return waiting.outcome is PodOutcome.FITS


@settings(max_examples=40, deadline=None)
@given(fragmented(), st.sampled_from([Shape(2, 20_000), Shape(1, 20_000), Shape(2, 14_000)]))
def test_each_plan_is_proved_by_a_second_calculation_and_no_single_move_is_overlooked(
    objects: list[Object], shape: Shape
) -> None:
    answer = plan(shape, *objects)
    moves = dict(list_moves(answer))
    if moves:
        assert is_moved_and_placed(moves, objects, shape)
    if answer.moves == 1 or (answer.moves == 0 and answer.starts):
        return
    # Two moves, or no plan: then no pod that is made again may be enough by itself.
    for item in objects:
        if item["metadata"].get("ownerReferences"):
            assert not is_moved_and_placed({item["metadata"]["name"]: None}, objects, shape)
