"""N8: what the explanation of a log may cost, and whom."""

import asyncio
from pathlib import Path

from cli.assistant.log_process import LogProcesses

LOG = Path("tests/conformance/cases/logs/042.log").read_text()


async def test_a_log_is_explained_with_its_evidence() -> None:
    done = await LogProcesses().explain(LOG, "train-2002", "ann")
    assert not done.is_error
    assert done.structured_content
    assert "b57f04dc5ad07005b00747e10a9174f6" in done.structured_content["evidence"]


async def test_a_mistake_is_answered_with_its_cause() -> None:
    done = await LogProcesses().explain(LOG, "nobody", "ann")
    assert done.is_error
    assert done.content[0].model_dump()["text"].startswith("WrongRequest: ")


async def test_n8_a_log_that_costs_too_much_ends_and_the_loop_turns_meanwhile() -> None:
    turns = 0
    explaining = asyncio.create_task(LogProcesses(cpu_seconds=1).explain(LOG * 150, "", "ann"))
    while not explaining.done():
        await asyncio.sleep(0.02)
        turns += 1
    done = await explaining
    assert done.is_error
    assert "more than 1 s of CPU time" in done.content[0].model_dump()["text"]
    # Fifty a second on an idle machine; a reader in this process would leave it a few.
    assert turns > 15


async def test_n8_a_caller_has_one_at_a_time_and_all_together_two() -> None:
    processes = LogProcesses()
    answers = await asyncio.gather(
        *(processes.explain(LOG, "train-2002", name) for name in ("ann", "ann", "ben", "cid"))
    )
    assert [bool(answer.is_error) for answer in answers] == [False, True, False, True]
    assert not (await processes.explain(LOG, "train-2002", "ann")).is_error
