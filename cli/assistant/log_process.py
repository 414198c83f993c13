"""Explanation of a log in a process of its own, with a budget of CPU time.

A log of a few megabytes takes many seconds to read. In the server's process they would delay every other caller.
"""

import asyncio
import hashlib
import os
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import orjson
from mcp.types import CallToolResult

from cli.assistant import texts
from cli.assistant.answers import list_items, to_refusal, to_result, without_steps
from cli.client.problems import Unreachable, WrongRequest
from cli.terminal.log_rows import build_rows, write_pod

CPU_SECONDS: Final = 30
"""CPU time of one explanation; about 1.5 MB of HAMi's log."""
WALL_SECONDS: Final = 120.0
MAX_PROCESSES: Final = 2
"""Maximum number of explanations at once, of all callers."""
_PACKAGES: Final = Path(__file__).resolve().parent.parent.parent


class LogProcesses:
    """Processes that explain logs: one of each caller at a time, and ``MAX_PROCESSES`` in all."""

    def __init__(self, cpu_seconds: int = CPU_SECONDS) -> None:
        self._cpu_seconds = cpu_seconds
        self._callers: set[bytes] = set()

    async def explain(self, text: str, pod: str, caller: str) -> CallToolResult:
        """Explain a log; ``caller`` is the caller's token, or any text that stands for them."""
        digest = hashlib.sha256(caller.encode()).digest()
        if digest in self._callers or len(self._callers) >= MAX_PROCESSES:
            return to_refusal(Unreachable("another log is being explained", "Try again when its answer has arrived."))
        with self._occupy(digest):
            output = await self._run(orjson.dumps({"text": text, "pod": pod}))
        if output is None:
            cause = f"it takes more than {self._cpu_seconds} s of CPU time to explain this log"
            return to_refusal(WrongRequest(cause, "Send fewer lines, such as those about one pod."))
        return CallToolResult.model_validate_json(output)

    @contextmanager
    def _occupy(self, caller: bytes) -> Iterator[None]:
        self._callers.add(caller)
        try:
            yield
        finally:
            self._callers.discard(caller)

    async def _run(self, request: bytes) -> bytes | None:
        """Run the process and return its output; None if it ended otherwise than with an answer."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "cli.assistant.log_process", str(self._cpu_seconds)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(_PACKAGES)},
        )
        try:
            async with asyncio.timeout(WALL_SECONDS):
                output, _ = await process.communicate(request)
        except TimeoutError:
            return None
        finally:
            # A caller who hangs up takes the process along.
            if process.returncode is None:
                process.kill()
                await process.wait()
        return output if process.returncode == 0 else None


def explain(text: str, pod: str) -> CallToolResult:
    """Explain why the pods in a scheduler's log wait, from its lines only."""
    from ingest.cases.answers import diagnose_pods, explain_absence, select_pods
    from ingest.cases.read_case import read_case_text
    from ingest.errors import MistakeError

    try:
        case = read_case_text(text)
    except MistakeError as error:
        return to_refusal(WrongRequest(str(error)))
    names = select_pods(case, pod)
    if not names:
        return to_refusal(WrongRequest(explain_absence("the text", pod, case)))
    if len(names) == 1:
        answer = write_pod(build_rows(case, names, has_details=True)[0])
        return to_result(texts.describe_diagnosis(answer), without_steps(answer))
    diagnoses = [answer.diagnosis.model_dump(mode="json") for answer in diagnose_pods(case, names)]
    lines = (f"{item['namespace']}/{item['name']}: {item['state']}. {item['headline']['en']}" for item in diagnoses)
    return to_result(
        f"{len(diagnoses)} pods:\n{list_items(lines)}", {"items": [without_steps(item) for item in diagnoses]}
    )


def _answer_standard_input() -> None:
    seconds = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    sys.stdout.write(explain(**orjson.loads(sys.stdin.buffer.read())).model_dump_json())


if __name__ == "__main__":
    _answer_standard_input()
