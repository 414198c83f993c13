"""The clock of a process, set while it runs: ``set_clock.c`` is preloaded, and reads the offset from a file."""

import shutil
import struct
import subprocess
from pathlib import Path
from typing import Final

_SHIM: Final = Path(__file__).with_name("set_clock.c")


class SettableClock:
    """``environment`` gives it to a process. That may not be forked: what is preloaded comes before Python."""

    def __init__(self, folder: Path) -> None:
        """Compile the clock. Raises ``FileNotFoundError`` without a C compiler."""
        compiler = shutil.which("cc")
        if compiler is None:
            raise FileNotFoundError("a C compiler makes the clock that can be set")
        self._offset, shim = folder / "clock-offset", folder / "set_clock.so"
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", shim, _SHIM, "-ldl"], check=True)
        self.environment = {"LD_PRELOAD": str(shim), "CLOCK_OFFSET_FILE": str(self._offset)}
        self.set(0)

    def set(self, seconds: int) -> None:
        """Set the seconds off the machine's clock, at once."""
        with self._offset.open("r+b" if self._offset.exists() else "wb") as file:
            file.write(struct.pack("=q", seconds))
