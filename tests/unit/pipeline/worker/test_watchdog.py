from pipeline.worker.watchdog import Watchdog, lag


def test_lag_counts_what_is_there_and_not_committed() -> None:
    assert lag({0: (5, 9), 1: (3, 3), 2: (7, 0)}) == 4


def test_a_committed_offset_that_stands_while_records_wait_is_told_after_the_time() -> None:
    progress = Watchdog(stuck_after_seconds=10)
    assert progress.look({0: (5, 9)}, 0.0, is_excused=False) == ""
    assert progress.look({0: (5, 9)}, 10.0, is_excused=False) == ""
    told = progress.look({0: (5, 12)}, 11.0, is_excused=False)
    assert told == "partition 0: 7 records to read, committed offset 5 for 11 s"


def test_movement_an_empty_partition_and_a_store_that_is_down_are_no_reason() -> None:
    progress = Watchdog(stuck_after_seconds=10)
    for now in range(0, 100, 5):
        assert progress.look({0: (now, 1_000), 1: (7, 7)}, float(now), is_excused=False) == ""
    for now in range(100, 200, 5):
        assert progress.look({0: (3, 9)}, float(now), is_excused=True) == ""
    assert progress.look({0: (3, 9)}, 204.0, is_excused=False) == ""


def test_a_partition_that_has_moved_away_is_forgotten() -> None:
    progress = Watchdog(stuck_after_seconds=10)
    progress.look({0: (5, 9)}, 0.0, is_excused=False)
    assert progress.look({}, 50.0, is_excused=False) == ""
    assert progress.look({0: (5, 9)}, 60.0, is_excused=False) == ""
