"""Names of annotations, labels and resources are written out in hami/ only."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
NAME = re.compile(r"(hami\.io|nvidia\.com)/[\w.-]+")


@pytest.mark.parametrize("package", ["api", "demo", "ingest", "kube", "pipeline", "scheduler", "summaries"])
def test_no_other_package_writes_a_name_of_hami_out(package: str) -> None:
    written = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.value!r}"
        for path in sorted((ROOT / package).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and NAME.fullmatch(node.value)
    ]
    # A label of NVIDIA's GPU feature discovery, which only KAI reads.
    assert [line for line in written if "'nvidia.com/gpu.memory'" not in line] == [], "use hami.annotations"
