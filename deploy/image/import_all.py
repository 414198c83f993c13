"""Import every module of the services in the build of the image, so that each is compiled once, with all it imports."""

import pkgutil
import sys
from importlib import import_module
from pathlib import Path

import schedulerlog

FOLDER = Path(schedulerlog.__file__).parent / "packages"
# The image lacks the packages that these import: they are for a machine with Java.
LEFT_OUT = frozenset({"dev", "examples"})
# These need grpc, 18 MB: the extra `sniffer`, for installations that serve scheduler-sniffer's protocol.
WITHOUT_ITS_PACKAGES = frozenset({"ingest.readers.sniffer.service", "ingest.readers.sniffer.credentials"})

sys.path.insert(0, str(FOLDER))
for package in sorted(path.name for path in FOLDER.iterdir() if path.is_dir() and path.name not in LEFT_OUT):
    import_module(package)
    for module in pkgutil.walk_packages([str(FOLDER / package)], f"{package}."):
        if module.name not in WITHOUT_ITS_PACKAGES:
            import_module(module.name)
