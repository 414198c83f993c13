"""Names of annotations, labels and resources are written out in engine/hami/ only."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
NAME = re.compile(r"(hami\.io|nvidia\.com)/[\w.-]+")
# Benchmarks describe whole clusters, as tests do.
PACKAGES = sorted(path.parent.name for path in ROOT.glob("*/__init__.py"))
LEFT_OUT = (ROOT / "engine" / "hami", ROOT / "dev" / "bench")


@pytest.mark.parametrize("package", PACKAGES)
def test_no_other_package_writes_a_name_of_hami_out(package: str) -> None:
    written = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.value!r}"
        for path in sorted((ROOT / package).rglob("*.py"))
        if not any(path.is_relative_to(folder) for folder in LEFT_OUT)
        # Few modules hold such a name at all, and parsing takes most of the time.
        if NAME.search(text := path.read_text())
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and NAME.fullmatch(node.value)
    ]
    # Labels of NVIDIA's GPU feature discovery, which HAMi does not read.
    discovered = ("'nvidia.com/gpu.memory'", "'nvidia.com/gpu.product'")
    assert [line for line in written if not line.endswith(discovered)] == [], "use engine.hami.annotations"
