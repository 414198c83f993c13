"""MIG instances: NVIDIA's placements of an A100 of 40 GB, and HAMi's choice among them."""

import pytest

from engine.hami.mig import MigProfile, Placement, choose_instance

# As `nvidia-smi mig -lgipp` lists them: {starts}:size.
SMALL = MigProfile("1g.5gb", 4864, 14, 1, tuple(Placement(start, 1) for start in range(7)))
MEDIUM = MigProfile("2g.10gb", 9856, 28, 2, tuple(Placement(start, 2) for start in (0, 2, 4)))
LARGE = MigProfile("3g.20gb", 19968, 42, 3, (Placement(0, 4), Placement(4, 4)))
LARGEST = MigProfile("7g.40gb", 40192, 100, 7, (Placement(0, 8),))
PROFILES = (LARGEST, LARGE, MEDIUM, SMALL)


@pytest.mark.parametrize(
    ("memory_mib", "taken", "name", "start"),
    [
        (1, (), "1g.5gb", 6),
        (4864, (Placement(6, 1),), "1g.5gb", 5),
        (4865, (), "2g.10gb", 0),
        (9856, (Placement(0, 1),), "2g.10gb", 2),
        (9857, (), "3g.20gb", 4),
        (9857, (Placement(4, 2),), "3g.20gb", 0),
        # The medium one has no place left, and the next larger one has.
        (9000, (Placement(0, 1), Placement(2, 1)), "2g.10gb", 4),
        (9000, (Placement(0, 2), Placement(2, 2)), "2g.10gb", 4),
        (20000, (), "7g.40gb", 0),
    ],
)
def test_the_smallest_profile_with_enough_memory_gets_its_first_free_place(
    memory_mib: int, taken: tuple[Placement, ...], name: str, start: int
) -> None:
    choice = choose_instance(PROFILES, memory_mib, taken)
    assert choice is not None
    assert (choice.profile.name, choice.placement.start) == (name, start)


@pytest.mark.parametrize(
    ("memory_mib", "taken"), [(40193, ()), (20000, (Placement(7, 1),)), (9857, (Placement(3, 1), Placement(4, 1)))]
)
def test_without_memory_or_place_there_is_no_instance(memory_mib: int, taken: tuple[Placement, ...]) -> None:
    assert choose_instance(PROFILES, memory_mib, taken) is None


def test_spans_that_only_touch_do_not_overlap() -> None:
    assert not Placement(0, 4).overlaps(Placement(4, 4))
    assert not Placement(4, 4).overlaps(Placement(0, 4))
    assert Placement(0, 4).overlaps(Placement(3, 1))
    assert Placement(3, 1).overlaps(Placement(0, 4))


def test_of_profiles_with_equal_memory_the_one_of_fewer_slices_is_tried_first() -> None:
    wide, narrow = (MigProfile(f"{slices}g.20gb", 20096, 14, slices, (Placement(0, 2),)) for slices in (2, 1))
    choice = choose_instance((wide, narrow), 20000, ())
    assert choice is not None
    assert choice.profile is narrow


def test_fields_that_a_device_plugin_left_out_are_zero() -> None:
    assert Placement() == (0, 0)
    assert MigProfile() == ("", 0, 0, 0, ())
