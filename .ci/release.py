"""Files that follow from pyproject.toml and the installed packages: `release.py` writes, `release.py check` compares.

- the version of pyproject.toml, where code and manifests name it;
- NOTICE: every package that the container image brings, with its licence.
"""

import re
import sys
import tomllib
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
_PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PROJECT = _PYPROJECT["project"]
LEFT_OUT = frozenset(_PYPROJECT["tool"]["uv"]["exclude-dependencies"])
EXTRA = "services"  # what the image is built with
# A file, and what stands before the version and after it.
VERSION_PLACES = (
    ("runtime/cli/installation.py", r'(?<=^VERSION: Final = ")[^"]+(?="$)'),
    ("headlamp/package.json", r'(?<=^  "version": ")[^"]+(?=",$)'),
    ("deploy/kustomize/components/pods/kustomization.yaml", r"(?<=schedulerlog/schedulerlog, newTag: )[^}]+(?=\}$)"),
    ("deploy/kustomize/components/labels/kustomization.yaml", r"(?<=~1version, value: )[^}]+(?=\}$)"),
    ("deploy/helm/Chart.yaml", r"(?<=^version: )\S+$"),
    ("deploy/helm/Chart.yaml", r"(?<=^appVersion: )\S+$"),
    ("deploy/kustomize/components/hami/deployment-in.yaml", r'(?<=ghcr.io/schedulerlog/schedulerlog:)[^"]+(?="\}$)'),
)
HEADING = """\
schedulerlog
Copyright the authors of schedulerlog

Licensed under the Apache License, Version 2.0 (LICENSE).

The container image brings the packages below, each under its own licence, whose text is beside it in
/opt/schedulerlog/lib/python3.*/site-packages/NAME-VERSION.dist-info. Versions and hashes: uv.lock, and in the image
/usr/share/doc/schedulerlog/sbom.cdx.json. The operating system and Python are those of the image's base.

This list is written by `make generate`.

"""
# Older metadata names a licence by a classifier or in a sentence.
LICENCES = {
    "Apache 2.0": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "Apache License Version 2.0": "Apache-2.0",
    "Apache License, Version 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD": "BSD",
    "BSD License": "BSD",
    "ISC": "ISC",
    "MIT License": "MIT",
    "MPL 2.0": "MPL-2.0",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}

# Metadata without a licence; the text of the file that it names was read.
UNSTATED = {"pysimdjson": "MIT"}


def main() -> None:
    different = {
        path: text for path, text in write_texts().items() if not path.exists() or path.read_text("utf-8") != text
    }
    for path, text in different.items():
        if sys.argv[1:] == ["check"]:
            print(f"{path.relative_to(ROOT)} differs: run `make generate`")
        else:
            path.write_text(text, "utf-8")
            print(f"wrote {path.relative_to(ROOT)}")
    sys.exit(bool(different) and sys.argv[1:] == ["check"])


def write_texts() -> dict[Path, str]:
    """Write the text of each file as it must be."""
    texts = {ROOT / "NOTICE": write_notice()}
    for name, pattern in VERSION_PLACES:
        text = texts.get(ROOT / name) or (ROOT / name).read_text("utf-8")
        text, count = re.subn(pattern, PROJECT["version"], text, flags=re.MULTILINE)
        if count != 1:
            sys.exit(f"{name}: the version is expected once, but occurs {count} times (.ci/release.py)")
        texts[ROOT / name] = text
    return texts


def write_notice() -> str:
    rows = [(package.metadata["Name"], derive_licence(package)) for _, package in sorted(list_packages().items())]
    width = max(len(name) for name, _ in rows)
    return HEADING + "".join(f"{name:<{width}}  {words}\n" for name, words in rows)


def list_packages() -> dict[str, Distribution]:
    """List the packages of the image by name: requirements of the image's extra, and theirs."""
    extras = PROJECT["optional-dependencies"]
    waiting = [Requirement(text) for text in (*PROJECT["dependencies"], *extras[EXTRA])]
    seen = {str(requirement) for requirement in waiting}
    packages: dict[str, Distribution] = {}
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        if name == PROJECT["name"]:
            more = [Requirement(text) for extra in requirement.extras for text in extras[extra]]
        else:
            packages[name] = distribution(name)
            more = [
                required
                for required in map(Requirement, packages[name].requires or ())
                if not required.marker
                or any(required.marker.evaluate({"extra": e}) for e in requirement.extras or {""})
            ]
        for required in more:
            if str(required) not in seen and required.name not in LEFT_OUT:
                seen.add(str(required))
                waiting.append(required)
    return packages


def derive_licence(package: Distribution) -> str:
    """Derive the licence from the SPDX expression of a package, its classifiers or the first line of its text."""
    if expression := package.metadata.get("License-Expression"):
        return str(expression)
    prefix = "License :: OSI Approved :: "
    classifiers = [text.removeprefix(prefix) for text in package.metadata.get_all("Classifier") or () if prefix in text]
    stated = (package.metadata.get("License") or "").strip().splitlines()
    words = [*classifiers, *stated[:1]]
    if not words and package.metadata["Name"] in UNSTATED:
        return UNSTATED[package.metadata["Name"]]
    if not words:
        sys.exit(f"{package.metadata['Name']} names no licence in its metadata: look it up for .ci/release.py")
    return LICENCES.get(words[0], words[0])


if __name__ == "__main__":
    main()
