"""Files of credentials that change while a process reads from Kafka."""

import asyncio
from pathlib import Path

from runtime.kafka.security import wait_until_changed


async def test_a_change_of_one_of_several_files_is_noticed(tmp_path: Path) -> None:
    paths = [tmp_path / "tls.crt", tmp_path / "tls.key"]
    for path in paths:
        path.write_text("old")
    waiting = asyncio.create_task(wait_until_changed(paths, 0.01))
    await asyncio.sleep(0.05)
    assert not waiting.done()
    paths[1].unlink()
    await asyncio.sleep(0.05)
    assert not waiting.done()
    paths[1].write_text("another")
    await asyncio.wait_for(waiting, 5)
