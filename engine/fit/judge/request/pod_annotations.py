"""Requirements of devices and nodes in a pod's annotations (HAMi's `nvidia.com/use-gputype`, …)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from engine.hami.annotations import DEVICE_POLICY, NODE_POLICY, NUMA_BIND, SCORING_WEIGHTS
from engine.hami.go_values import parse_boolean, parse_integer
from engine.hami.releases import ReleaseRules
from engine.hami.vendors import Vendor, Vendors

NODE_POLICIES: Final = frozenset(("binpack", "spread"))
DEVICE_POLICIES: Final = frozenset(("binpack", "spread", "numa", "mutex", "topology-aware"))
MAX_CONSTRAINTS: Final = 4096
"""Limit of a pod's published constraints, in characters."""


class ScoringWeights(NamedTuple):
    """Weights of the shares (slots, cores, memory) in the score of a device."""

    slot: int = 1
    core: int = 1
    memory: int = 1


class WeightsError(ValueError):
    """Unreadable scoring weights. The text is HAMi's; the whole attempt fails with it."""


@dataclass(frozen=True, slots=True)
class PodAnnotations:
    """Annotations of a pod about one vendor's devices.

    sorts_by_numa: NVIDIA's annotation; HAMi sorts every vendor's devices by it. texts: all of them. use_types,
    no_use_types: in upper case. No list, or an empty mode, constrains nothing; a list without a word accepts no model.
    """

    use_types: tuple[str, ...] | None = None
    no_use_types: tuple[str, ...] = ()
    use_uuids: frozenset[str] = frozenset()
    no_use_uuids: frozenset[str] = frozenset()
    numa_bind: bool = False
    sorts_by_numa: bool = False
    mode: str = ""
    node_policy: str = "binpack"
    device_policy: str = "spread"
    weights: ScoringWeights = field(default_factory=ScoringWeights)
    texts: Mapping[str, str] = field(default_factory=dict, hash=False)

    def accepts_type(self, model: str) -> bool:
        """Tell whether the model is allowed: HAMi looks for each word anywhere in the name, in any case."""
        name = model.upper()
        if self.use_types is not None and not any(word in name for word in self.use_types):
            return False
        return not any(word in name for word in self.no_use_types)

    def accepts_mode(self, mode: str) -> bool:
        # As HAMi: the annotation has to contain the device's mode, so it may list several.
        return not self.mode or mode in self.mode

    def accepts_uuid(self, uuid: str) -> bool:
        return uuid not in self.no_use_uuids and (not self.use_uuids or uuid in self.use_uuids)

    @property
    def names_uuids(self) -> bool:
        return bool(self.use_uuids or self.no_use_uuids)


def read_pod_annotations(
    annotations: Mapping[str, Any], node_policy: str, device_policy: str, vendor: Vendor
) -> PodAnnotations:
    """Read the pod's annotations under the vendor's keys.

    node_policy, device_policy: the scheduler's own, used where the pod names none. Values that are not strings are
    ignored, since Kubernetes itself would not store them. Raises WeightsError.
    """
    texts = {key: value for key, value in annotations.items() if isinstance(value, str)}
    keys = vendor.pod
    return PodAnnotations(
        use_types=_split_words(texts, keys.use_type) if texts.get(keys.use_type, "").strip() else None,
        no_use_types=_split_words(texts, keys.no_use_type),
        use_uuids=_split_uuids(texts, keys.use_uuid),
        no_use_uuids=_split_uuids(texts, keys.no_use_uuid),
        numa_bind=parse_boolean(texts.get(keys.numa_bind, "")) is True,
        sorts_by_numa=parse_boolean(texts.get(NUMA_BIND, "")) is True,
        mode=texts.get(keys.mode, ""),
        texts=texts,
        node_policy=_choose_node_policy(texts.get(NODE_POLICY), node_policy, vendor.rules),
        device_policy=_choose_device_policy(texts.get(DEVICE_POLICY), device_policy, vendor.rules),
        weights=parse_weights(texts[SCORING_WEIGHTS]) if SCORING_WEIGHTS in texts else ScoringWeights(),
    )


def _choose_node_policy(text: str | None, configured: str, rules: ReleaseRules) -> str:
    if text is None or not rules.keeps_policies:
        return configured if text is None else text
    return text.strip() if text.strip() in NODE_POLICIES else configured


def _choose_device_policy(text: str | None, configured: str, rules: ReleaseRules) -> str:
    if text is None or not rules.keeps_policies:
        return configured if text is None else text
    return text if all(word.strip() in DEVICE_POLICIES for word in text.split(",")) else configured


def select_constraints(annotations: Mapping[str, Any], vendors: Vendors) -> dict[str, str] | None:
    """Select the annotations that `read_pod_annotations` reads for any of the vendors; None where they are too long."""
    names = {NODE_POLICY, DEVICE_POLICY, SCORING_WEIGHTS}
    for vendor in vendors:
        keys = vendor.pod
        names |= {keys.use_type, keys.no_use_type, keys.use_uuid, keys.no_use_uuid, keys.numa_bind, keys.mode}
    constraints = {name: text for name in sorted(names) if isinstance(text := annotations.get(name), str)}
    # A pod may have 256 KiB of annotations, and a part of a list would constrain something else.
    return constraints if sum(map(len, constraints.values())) <= MAX_CONSTRAINTS else None


def _split_words(texts: Mapping[str, str], key: str) -> tuple[str, ...]:
    """Split the words of a comma-separated list, in upper case."""
    return tuple(word.upper() for part in texts.get(key, "").split(",") if (word := part.strip()))


def _split_uuids(texts: Mapping[str, str], key: str) -> frozenset[str]:
    """Split the UUIDs of a comma-separated list; none where it holds only blanks.

    A list of blank entries (",") is not empty, as with HAMi: it names one device with the UUID "", which no node has.
    """
    listed = texts.get(key, "")
    return frozenset(part.strip() for part in listed.split(",")) if listed.strip() else frozenset()


def parse_weights(text: str) -> ScoringWeights:
    """Parse `slot=1,core=1,memory=3`: all three, whole numbers from 0, one above 0.

    Raises WeightsError with HAMi's text.
    """
    entries = text.split(",")
    if len(entries) != 3:
        raise _build_error(text, "expected slot, core, and memory weights")
    weights: dict[str, int] = {}
    for entry in entries:
        name, equals, digits = entry.partition("=")
        name = name.strip()
        if not equals:
            raise _build_error(text, "expected key=value entries")
        if name in weights:
            raise _build_error(text, f"duplicate {quote_as_go(name)} weight")
        weights[name] = _parse_weight(text, name, digits.strip())
    if not any(weights.values()):
        raise _build_error(text, "at least one weight must be positive")
    return ScoringWeights(**weights)


def _parse_weight(text: str, name: str, digits: str) -> int:
    """Parse the value first and then the name, as HAMi checks them."""
    value = parse_integer(digits, -(2**63), 2**63 - 1)
    if value is None:
        raise _build_error(text, f"{quote_as_go(name)} weight must be an integer")
    if value < 0:
        raise _build_error(text, f"{quote_as_go(name)} weight must not be negative")
    if name not in ("slot", "core", "memory"):
        raise _build_error(text, f"unknown weight {quote_as_go(name)}")
    return value


def _build_error(text: str, problem: str) -> WeightsError:
    return WeightsError(f"invalid {SCORING_WEIGHTS} annotation {quote_as_go(text)}: {problem}")


def quote_as_go(text: str) -> str:
    """Quote as Go's `%q` what an annotation may hold: quotes, backslashes and control characters are escaped."""
    escapes = {
        '"': '\\"',
        "\\": "\\\\",
        "\n": "\\n",
        "\t": "\\t",
        "\r": "\\r",
        "\a": "\\a",
        "\b": "\\b",
        "\f": "\\f",
        "\v": "\\v",
    }
    return '"' + "".join(escapes.get(c) or (c if c.isprintable() else _escape(c)) for c in text) + '"'


def _escape(character: str) -> str:
    point = ord(character)
    return f"\\x{point:02x}" if point < 0x80 else f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"
