"""Fit errors as events and conditions carry them, in both versions."""

import pytest

from ingest.readers.kai.fit_errors import parse_fit_error

MEMORY = "node(s) didn't have enough resources: GPU memory"
GPUS = "node(s) didn't have enough resources: GPUs"


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        (f"no nodes with enough resources were found: 2 {MEMORY}.", {MEMORY: 2}),
        (f"no nodes with enough resources were found: 1 {GPUS}. \n2 {MEMORY}.", {GPUS: 1, MEMORY: 2}),
        (
            (
                "PodSchedulingErrors: Resources were not found for pod team-a/infer-0 due to: "
                f"no nodes with enough resources were found: 2 {MEMORY}.."
            ),
            {MEMORY: 2},
        ),
        (f"Node-Pool 'a100': no nodes with enough resources were found: 3 {GPUS}.", {GPUS: 3}),
    ],
)
def test_nodes_are_counted_by_reason(text: str, counts: dict[str, int]) -> None:
    assert parse_fit_error(text).counts == counts


def test_a_gang_has_the_number_of_pods_that_fit_and_that_are_needed() -> None:
    error = parse_fit_error(
        "Node-Pool 'a100': PodSchedulingErrors: Resources were found for 3 pods while 4 are required for gang"
        " scheduling. Additional pods cannot be scheduled due to: no nodes with enough resources were found:"
        f" 3 {GPUS}.."
    )
    assert (error.node_pool, error.code, error.gang, error.counts) == ("a100", "PodSchedulingErrors", (3, 4), {GPUS: 3})


def test_the_detailed_form_names_nodes_and_their_numbers() -> None:
    error = parse_fit_error(
        "\n<gpu-0>: Node didn't have enough resources: GPUs, requested: 2.45, used: 0, capacity: 2, Node didn't have"
        " enough resources: Each gpu on the node has a gpu memory capacity of 40900 Mib. 100000 Mib of gpu memory has"
        " been requested..\n<gpu-1>: Node didn't have enough resources: GPUs, requested: 0.7, used: 2, capacity: 2.\n"
        "no nodes with enough resources were found."
    )
    assert (error.nodes["gpu-0"].memory_total_mib, error.nodes["gpu-0"].memory_requested_mib) == (40900, 100000)
    assert error.nodes["gpu-1"].detail == "requested: 0.7, used: 2, capacity: 2"
    assert error.counts == {}


@pytest.mark.parametrize("code", ["OverLimit", "NonPreemptibleOverQuota"])
@pytest.mark.parametrize("form", ["{}: team-a quota", "\n{}.\nteam-a quota"])
def test_a_refusal_of_the_queue_has_its_code(code: str, form: str) -> None:
    error = parse_fit_error(form.format(code))
    assert (error.code, error.is_about_nodes) == (code, False)


def test_unable_to_schedule_explains_nothing() -> None:
    assert parse_fit_error(
        "PodSchedulingErrors: Resources were not found for pod a/b due to: Unable to schedule pod."
    ).is_unexplained


@pytest.mark.parametrize(
    "text", ["", ".", "<>: x", "no nodes with enough resources were found: ", "9" * 5000, "<a>: \n" * 50]
)
def test_other_texts_are_kept_as_they_are(text: str) -> None:
    assert parse_fit_error(text).text == text.strip()
