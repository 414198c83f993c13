"""Device configuration (`--device-config-file`): HAMi's own file, with additions of ours.

Sections are HAMi's (`nvidia`, `hygon`, `cambricon`, `metax`, lists of chips under `iluvatars` and `vnpus`), in its
spelling; a cluster's ConfigMap can be given as it is. Beyond HAMi, every section may name `annotations`, `typeWord` and
limits, and `vendors` is a list of vendors that HAMi does not know. The file is the whole table: vendors that it does
not name are not served.
"""

import functools
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

from engine.fit.device_config_keys import (
    ANNOTATIONS,
    FOR_DEVICE_PLUGINS,
    LISTED,
    SINGLE,
    ConfigMistakeError,
    Fields,
    describe_kind,
    expect_mapping,
    read_text,
)
from engine.hami.releases import LATEST, HamiRelease, choose_rules
from engine.hami.vendors import Family, Vendor, Vendors
from runtime.files.yaml_lines import Mapping, YamlError, parse_documents

SHIPPED: Final = Path(__file__).with_name("device-config.yaml")
"""HAMi's chart defaults for the vendors that we serve."""


class DeviceConfigError(ValueError):
    """Mistake in the file: its position, the problem, and what to write instead."""

    def __init__(self, file: str, line: int | None, problem: str) -> None:
        super().__init__(f"{file}, line {line}: {problem}" if line else f"{file} {problem}")


def read(path: Path) -> Vendors:
    """Read the table of vendors from a file. Raises DeviceConfigError."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise DeviceConfigError(str(path), None, f"can't be read: {error.strerror or error}") from None
    return parse(text, str(path))


@functools.cache
def read_shipped(release: HamiRelease = LATEST) -> Vendors:
    """Read the table of ``SHIPPED``, with the rules and names of a release."""
    rules = choose_rules(release)
    renamed = (
        replace(vendor, resources=replace(vendor.resources, **_rename_to_hcu(asdict(vendor.resources))))
        if rules.names_hcu and vendor.family is Family.HYGON
        else vendor
        for vendor in read(SHIPPED)
    )
    return follow_release(tuple(renamed), release)


def read_for(release: HamiRelease, path: Path | None) -> Vendors:
    """Read the table of a file, or ``SHIPPED``, for a release. Raises DeviceConfigError."""
    return follow_release(read(path), release) if path else read_shipped(release)


def follow_release(vendors: Vendors, release: HamiRelease) -> Vendors:
    """Give the table the rules of a release; the resources keep the names that the file has."""
    rules = choose_rules(release)
    return tuple(_follow(replace(vendor, rules=rules)) for vendor in vendors)


def _follow(vendor: Vendor) -> Vendor:
    if vendor.family is not Family.HYGON or not vendor.rules.names_hcu:
        return vendor
    node = vendor.node
    return replace(
        vendor,
        word=_to_hcu(vendor.word),
        model_word=_to_hcu(vendor.model_word),
        node=replace(node, register=_to_hcu(node.register), handshake=_to_hcu(node.handshake)),
        pod=replace(vendor.pod, **_rename_to_hcu(asdict(vendor.pod))),
    )


def _rename_to_hcu(texts: dict[str, str]) -> dict[str, str]:
    return {key: _to_hcu(text) for key, text in texts.items()}


def _to_hcu(text: str) -> str:
    return text.replace("dcu", "hcu").replace("DCU", "HCU")


def parse(text: bytes, file: str) -> Vendors:
    """Parse the table of vendors from a configuration. Raises DeviceConfigError."""
    try:
        vendors = tuple(_read_vendors(text))
        _check_words(vendors)
    except (ConfigMistakeError, YamlError) as error:
        raise DeviceConfigError(file, error.line, error.problem) from None
    return vendors


def _read_vendors(text: bytes) -> Iterator[Vendor]:
    parsed = [value for _, value in parse_documents(text) if value is not None]
    if len(parsed) != 1:
        raise ConfigMistakeError(1, f"holds {len(parsed)} documents, write one")
    sections = expect_mapping(parsed[0], 1)
    if "device-config.yaml" in expect_mapping(sections.get("data", Mapping(1)), 1):
        # The ConfigMap of HAMi's chart, as `kubectl get configmap -o yaml` prints it.
        yield from _read_vendors(read_text(sections["data"], "device-config.yaml").encode())
        return
    for name in sections:
        yield from _read_section(name, sections)


def _read_section(name: str, sections: Mapping) -> Iterator[Vendor]:
    line = sections.get_line(name)
    if name in SINGLE:
        for base, fields in SINGLE[name]:
            yield _read_vendor(base, expect_mapping(sections[name], line), fields)
    elif name in LISTED:
        word, base_of, fields = LISTED[name]
        for chip in _list_chips(name, sections):
            yield _apply_to_chips(_read_vendor(base_of(_read_word(chip, word)), chip, fields), sections[name], fields)
    else:
        names = ", ".join([*SINGLE, *LISTED])
        raise ConfigMistakeError(
            line, f"{name} is not a known vendor, write one of {names}; any other goes under vendors"
        )


def _list_chips(name: str, sections: Mapping) -> Iterator[Mapping]:
    value, line = sections[name], sections.get_line(name)
    if isinstance(value, dict):
        # HAMi's vnpus: the list stands under configs, beside what is for all chips.
        mapping = expect_mapping(value, line)
        value, line = mapping.get("configs"), mapping.get_line("configs")
    if not isinstance(value, list):
        raise ConfigMistakeError(line, f"{name} is {describe_kind(value)}, write a list")
    for item in value:
        yield expect_mapping(item, line)


def _apply_to_chips(vendor: Vendor, section: Any, fields: Fields) -> Vendor:
    """Apply `hamiVnpuCore`, which stands next to `configs` in HAMi's vnpus."""
    if not isinstance(section, Mapping) or "hamiVnpuCore" not in section:
        return vendor
    part, field, read_value = fields["hamiVnpuCore"]
    return _with(vendor, part, field, read_value(section, "hamiVnpuCore"))


def _read_word(chip: Mapping, key: str) -> str:
    if not chip.get(key):
        raise ConfigMistakeError(chip.line, f"{key} is missing, write the vendor's word")
    return read_text(chip, key)


def _read_vendor(base: Vendor, section: Mapping, fields: Fields) -> Vendor:
    vendor = base
    for key, value in section.items():
        if key == "annotations":
            vendor = _read_vendor(vendor, expect_mapping(value, section.get_line(key)), ANNOTATIONS)
        elif key in fields:
            part, field, read_value = fields[key]
            vendor = _with(vendor, part, field, read_value(section, key))
        elif key not in FOR_DEVICE_PLUGINS:
            raise ConfigMistakeError(
                section.get_line(key), f"{key} is not known here, write one of {', '.join(fields)}"
            )
    if not vendor.resources.count:
        raise ConfigMistakeError(section.line, f"resourceCountName is missing for {vendor.word}")
    return vendor


def _with(vendor: Vendor, part: str, field: str, value: Any) -> Vendor:
    # An empty part and field mark a key that is accepted and sets nothing, such as `commonWord`.
    if not field:
        return vendor
    if not part:
        return replace(vendor, **{field: value})
    return replace(vendor, **{part: replace(getattr(vendor, part), **{field: value})})


def _check_words(vendors: Vendors) -> None:
    seen: set[str] = set()
    for vendor in vendors:
        for name in (vendor.word, vendor.resources.count):
            if name in seen:
                raise ConfigMistakeError(1, f"{name} is used by two vendors, keep one of them")
            seen.add(name)
