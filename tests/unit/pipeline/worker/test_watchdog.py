from pipeline.worker.watchdog import Watchdog, lag


def test_lag_counts_the_records_that_are_not_committed() -> None:
    assert lag({0: (5, 9), 1: (3, 3), 2: (7, 0)}) == 4


def test_a_committed_offset_that_does_not_move_while_records_wait_is_reported_after_the_time() -> None:
    watchdog = Watchdog(stuck_after_seconds=10)
    assert watchdog.check({0: (5, 9)}, 0.0, is_excused=False) == ""
    assert watchdog.check({0: (5, 9)}, 10.0, is_excused=False) == ""
    problem = watchdog.check({0: (5, 12)}, 11.0, is_excused=False)
    assert problem == "partition 0: 7 records to read, committed offset 5 for 11 s"


def test_a_moving_offset_an_empty_partition_and_a_store_that_is_down_are_not_reported() -> None:
    watchdog = Watchdog(stuck_after_seconds=10)
    for now in range(0, 100, 5):
        assert watchdog.check({0: (now, 1_000), 1: (7, 7)}, float(now), is_excused=False) == ""
    for now in range(100, 200, 5):
        assert watchdog.check({0: (3, 9)}, float(now), is_excused=True) == ""
    assert watchdog.check({0: (3, 9)}, 204.0, is_excused=False) == ""


def test_a_partition_that_another_worker_has_now_is_forgotten() -> None:
    watchdog = Watchdog(stuck_after_seconds=10)
    watchdog.check({0: (5, 9)}, 0.0, is_excused=False)
    assert watchdog.check({}, 50.0, is_excused=False) == ""
    assert watchdog.check({0: (5, 9)}, 60.0, is_excused=False) == ""
