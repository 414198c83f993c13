"""Make installed packages smaller, in the build of the image: ``reduce.py SITE_PACKAGES``.

- Files that only tests, type checkers and C compilers read are deleted.
- Native modules lose the sections that only debuggers and linkers read: in some wheels ten times the code.
- Packages of only Python move, compiled, into one compressed file: a seventh of their size, and no slower to import.
  The generated code of ``kubernetes`` takes 74 MB.
"""

import compileall
import shutil
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from py_compile import PycInvalidationMode
from zipfile import ZIP_DEFLATED, ZipFile

UNUSED = frozenset({".pyi", ".pyx", ".pxd", ".h", ".c", ".cpp", ".a"})
UNUSED_FOLDERS = ("cel_expr_python/ext",)
"""Extensions of CEL as modules of their own; those that Kubernetes has are in the library itself."""
ARCHIVE = "packages.zip"
# A 64-bit ELF file's header, and of each segment's: offset and length in the file are the third and the sixth field.
HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
SEGMENT = struct.Struct("<IIQQQQQQ")


def main(site_packages: Path) -> None:
    before = count_bytes(site_packages)
    delete_unused(site_packages)
    for path in list_native_modules(site_packages):
        path.write_bytes(without_sections(path.read_bytes()))
    archive(site_packages)
    print(f"{before / 1e6:.0f} MB, reduced to {count_bytes(site_packages) / 1e6:.0f} MB")  # noqa: T201


def count_bytes(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())


def delete_unused(site_packages: Path) -> None:
    for folder in sorted(site_packages.rglob("tests")):
        if folder.is_dir():
            shutil.rmtree(folder)
    for name in UNUSED_FOLDERS:
        shutil.rmtree(site_packages / name, ignore_errors=True)
    for path in list(site_packages.rglob("*")):
        if (path.suffix in UNUSED or path.name.endswith("_test.py")) and path.is_file():
            path.unlink()


def list_native_modules(site_packages: Path) -> Iterator[Path]:
    return (path for path in site_packages.rglob("*.so*") if path.is_file() and not path.is_symlink())


def without_sections(elf: bytes) -> bytes:
    """Cut an ELF file after its last segment, because only segments are loaded; return anything else unchanged."""
    if elf[:6] != b"\x7fELF\x02\x01":  # 64 bits, little-endian
        return elf
    fields = list(HEADER.unpack_from(elf))
    first, count = fields[5], fields[10]
    segments = [SEGMENT.unpack_from(elf, first + number * SEGMENT.size) for number in range(count)]
    end = max(first + count * SEGMENT.size, *(segment[2] + segment[5] for segment in segments))
    fields[6] = fields[12] = fields[13] = 0  # where the section headers are, how many, and which one has the names
    return HEADER.pack(*fields) + elf[HEADER.size : end]


def archive(site_packages: Path) -> None:
    """Move packages of only Python files into an archive, which a ``.pth`` file adds to the path."""
    packages = sorted(folder for folder in site_packages.iterdir() if is_pure_python(folder))
    with ZipFile(site_packages / ARCHIVE, "w", ZIP_DEFLATED) as file:
        for package in packages:
            # Next to the sources, as archives have them, and unchecked, because nobody changes the sources.
            compileall.compile_dir(
                package, quiet=1, legacy=True, workers=0, invalidation_mode=PycInvalidationMode.UNCHECKED_HASH
            )
            for path in sorted(package.rglob("*.pyc")):
                file.write(path, path.relative_to(site_packages))
            shutil.rmtree(package)
    (site_packages / ARCHIVE).with_suffix(".pth").write_text(f"{ARCHIVE}\n", "utf-8")


def is_pure_python(folder: Path) -> bool:
    """Tell whether a folder is a package without native modules and data, which are read from a folder."""
    files = [path for path in folder.rglob("*") if path.is_file()] if (folder / "__init__.py").is_file() else []
    return bool(files) and all(path.suffix == ".py" or path.name == "py.typed" for path in files)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
