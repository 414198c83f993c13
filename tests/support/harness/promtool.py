"""The rules of the component ``prometheus``, checked and tested by Prometheus' own promtool, which is in the PATH:
``python -m tests.support.harness.promtool``."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import yaml

COMPONENT: Final = Path(__file__).parents[3] / "deploy" / "kustomize" / "components" / "prometheus"
RULES: Final = ("rules.yaml", "slo.yaml")
TESTS: Final = "rules_test.yaml"


def main() -> int:
    """Return the greater exit code of both calls."""
    with tempfile.TemporaryDirectory() as folder:
        for name in RULES:
            # The operator hands Prometheus the `spec` alone.
            spec = yaml.safe_load((COMPONENT / name).read_text("utf-8"))["spec"]
            Path(folder, name).write_text(yaml.safe_dump(spec), "utf-8")
        shutil.copy(COMPONENT / TESTS, folder)
        calls = (["check", "rules", "--lint=all", *RULES], ["test", "rules", TESTS])
        return max(subprocess.run(["promtool", *call], cwd=folder, check=False).returncode for call in calls)


if __name__ == "__main__":
    sys.exit(main())
