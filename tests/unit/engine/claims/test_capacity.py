"""Amounts that a share takes of a capacity.

Expected values: the rules of ``requestPolicy`` in the API reference of resource.k8s.io/v1 (CapacityRequestPolicy), by
hand: without an amount the default counts; an amount below the least is raised to it, and one between two steps to the
next; of listed amounts the least that is enough.
"""

import pytest

from engine.claims.capacity import CapacityUnjudgedError, Shortage, find_shortage, format_nano, take_amount
from engine.claims.device_details import Capacity, RequestPolicy
from engine.claims.quantity import NANO, parse_quantity


def build_policy(
    default: str = "", minimum: str = "", maximum: str = "", step: str = "", values: str = ""
) -> RequestPolicy:
    """Build a policy; values: the amounts that it lists."""
    least, limit, width = (parse_quantity(text) if text else None for text in (minimum, maximum, step))
    return RequestPolicy(
        default=parse_quantity(default) if default else None,
        minimum=least,
        maximum=limit,
        step=width,
        has_range=bool(minimum or maximum or step),
        values=tuple(map(parse_quantity, values.split())),
    )


STEPS = build_policy(default="1Gi", minimum="2Gi", maximum="8Gi", step="2Gi")
LISTED = build_policy(default="1Gi", values="2Gi 4Gi 8Gi")


@pytest.mark.parametrize(
    ("policy", "amount", "taken"),
    [
        (None, None, "40Gi"),
        (None, "3Gi", "3Gi"),
        (build_policy(minimum="2Gi"), None, "40Gi"),
        (STEPS, None, "1Gi"),
        (STEPS, "1", "2Gi"),
        (STEPS, "2Gi", "2Gi"),
        (STEPS, "2147483649", "4Gi"),
        (STEPS, "4Gi", "4Gi"),
        (build_policy(minimum="2Gi"), "3", "2Gi"),
        (build_policy(minimum="2Gi"), "3Gi", "3Gi"),
        (build_policy(minimum="1", step="3"), "5", "7"),
        (build_policy(maximum="8Gi"), "3Gi", "3Gi"),
        (LISTED, None, "1Gi"),
        (LISTED, "2Gi", "2Gi"),
        (LISTED, "3Gi", "4Gi"),
        (LISTED, "9Gi", "9Gi"),
    ],
)
def test_an_amount_is_raised_to_one_that_the_device_hands_out(
    policy: RequestPolicy | None, amount: str | None, taken: str
) -> None:
    capacity = Capacity(parse_quantity("40Gi"), policy)
    assert take_amount(parse_quantity(amount) if amount else None, capacity).nano == parse_quantity(taken).nano


GI = 2**30 * NANO


@pytest.mark.parametrize(
    ("policy", "amount", "used", "searching", "shortage"),
    [
        (None, "10Gi", 0, 0, None),
        (None, "40Gi", 0, 0, None),
        (None, "41Gi", 0, 0, Shortage("memory", amount=41 * GI, left=40 * GI, total=40 * GI)),
        (None, "30Gi", 10, 0, None),
        (None, "30Gi", 6, 4, None),
        (None, "30Gi", 6, 5, Shortage("memory", amount=30 * GI, left=29 * GI, total=40 * GI)),
        (STEPS, "8Gi", 0, 0, None),
        (STEPS, None, 0, 0, None),
        (STEPS, "9Gi", 10, 0, Shortage("memory", False, 10 * GI, 30 * GI, 40 * GI, breaks_policy=True)),
        (build_policy(maximum="8Gi"), "8Gi", 0, 0, None),
        (build_policy(maximum="8Gi"), "9Gi", 0, 0, Shortage("memory", False, 9 * GI, 40 * GI, 40 * GI, True)),
        # Steps without a least amount count from zero.
        (build_policy(step="2Gi"), "4Gi", 0, 0, None),
        (build_policy(step="2Gi"), "3Gi", 0, 0, Shortage("memory", False, 3 * GI, 40 * GI, 40 * GI, True)),
        (LISTED, "4Gi", 0, 0, None),
        (LISTED, "9Gi", 0, 0, Shortage("memory", False, 9 * GI, 40 * GI, 40 * GI, True)),
        # The default need not be listed.
        (LISTED, None, 0, 0, None),
        (build_policy(default="1Gi"), "3Gi", 0, 0, None),
    ],
)
def test_a_shortage_has_the_amounts_behind_it(
    policy: RequestPolicy | None, amount: str | None, used: int, searching: int, shortage: Shortage | None
) -> None:
    capacity = {"memory": Capacity(parse_quantity("40Gi"), policy)}
    requested = {"memory": parse_quantity(amount)} if amount else None
    taken = [{"memory": amount * GI} if amount else {} for amount in (used, searching)]
    assert find_shortage(capacity, requested, *taken) == shortage


def test_a_capacity_that_the_device_lacks_comes_before_amounts() -> None:
    capacity = {"memory": Capacity(parse_quantity("1Gi"), None)}
    requested = {"memory": parse_quantity("2Gi"), "cores": parse_quantity("1")}
    assert find_shortage(capacity, requested, {}, {}) == Shortage("cores", is_undefined=True)


@pytest.mark.parametrize(
    ("policy", "amount", "cause"),
    [
        (build_policy(minimum="1", step="0"), "2", "a step of 0"),
        (build_policy(minimum="1", step="1"), "80E", "beyond 64 bits"),
        # The least amount that reaches 2^63 - 1 in steps of 4 from 1 is 2^63 + 1.
        (build_policy(minimum="1", step="4"), "9223372036854775807", "9223372036854775809 is beyond 64 bits"),
    ],
)
def test_amounts_that_kubernetes_wraps_around_are_left_open(policy: RequestPolicy, amount: str, cause: str) -> None:
    with pytest.raises(CapacityUnjudgedError, match=cause):
        take_amount(parse_quantity(amount), Capacity(parse_quantity("90E"), policy))


def test_a_step_of_nothing_is_left_open_without_a_least_amount() -> None:
    capacity = {"memory": Capacity(parse_quantity("8"), build_policy(step="0"))}
    with pytest.raises(CapacityUnjudgedError, match="a step of 0"):
        find_shortage(capacity, {"memory": parse_quantity("2")}, {}, {})


@pytest.mark.parametrize(
    ("nano", "text"), [(GI, "1Gi"), (1536 * 2**20 * NANO, "1536Mi"), (1000 * NANO, "1k"), (NANO // 2, "500m"), (0, "0")]
)
def test_an_amount_has_a_binary_suffix_where_that_is_exact(nano: int, text: str) -> None:
    assert format_nano(nano) == text
