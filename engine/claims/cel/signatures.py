"""Functions of Kubernetes' CEL environment for stored expressions, as the type checker has to know them.

A signature is ``(first, second) -> result``; the first type of a method is its receiver. Capital letters stand for
any type. What the CEL library declares itself (its standard functions, and the extensions that `compiler` loads) is
not repeated here.
"""

from typing import Final

QUANTITY: Final = "kubernetes.Quantity"
VERSION: Final = "kubernetes.Semver"
IP: Final = "net.IP"
CIDR: Final = "net.CIDR"
URL: Final = "kubernetes.URL"
FORMAT: Final = "kubernetes.NamedFormat"
DEVICE: Final = "kubernetes.DRADevice"

Signatures = dict[str, tuple[str, ...]]

_COMPARED: Final = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
_ADDED: Final = ("int", "uint", "double", "duration")

FORMATS: Final = (
    "dns1123Label", "dns1123Subdomain", "dns1035Label", "qualifiedName", "dns1123LabelPrefix",
    "dns1123SubdomainPrefix", "dns1035LabelPrefix", "labelValue", "uri", "uuid", "byte", "date", "datetime",
)  # fmt: skip

FUNCTIONS: Final[Signatures] = {
    "optional.unwrap": ("(list<optional<A>>) -> list<A>",),
    "quantity": ("(string) -> Quantity",),
    "isQuantity": ("(string) -> bool",),
    "sign": ("(Quantity) -> int",),
    "semver": ("(string) -> Semver", "(string, bool) -> Semver"),
    "isSemver": ("(string) -> bool", "(string, bool) -> bool"),
    "url": ("(string) -> URL",),
    "isURL": ("(string) -> bool",),
    "ip": ("(string) -> IP",),
    "isIP": ("(string) -> bool",),
    "ip.isCanonical": ("(string) -> bool",),
    "cidr": ("(string) -> CIDR",),
    "isCIDR": ("(string) -> bool",),
    "format.named": ("(string) -> optional<Format>",),
    **{f"format.{name}": ("() -> Format",) for name in FORMATS},
    "strings.quote": ("(string) -> string",),
    # Standard conversions and two more.
    "string": (
        *(f"({name}) -> string" for name in ("string", "bool", "bytes", "double", "duration", "int", "timestamp")),
        "(uint) -> string",
        "(IP) -> string",
        "(CIDR) -> string",
    ),
}

METHODS: Final[Signatures] = {
    "includes": ("(dyn, dyn) -> bool",),
    "unwrapOpt": ("(list<optional<A>>) -> list<A>",),
    "isGreaterThan": ("(Quantity, Quantity) -> bool", "(Semver, Semver) -> bool"),
    "isLessThan": ("(Quantity, Quantity) -> bool", "(Semver, Semver) -> bool"),
    "compareTo": ("(Quantity, Quantity) -> int", "(Semver, Semver) -> int"),
    "asApproximateFloat": ("(Quantity) -> double",),
    "asInteger": ("(Quantity) -> int",),
    "isInteger": ("(Quantity) -> bool",),
    "add": ("(Quantity, Quantity) -> Quantity", "(Quantity, int) -> Quantity"),
    "sub": ("(Quantity, Quantity) -> Quantity", "(Quantity, int) -> Quantity"),
    "major": ("(Semver) -> int",),
    "minor": ("(Semver) -> int",),
    "patch": ("(Semver) -> int",),
    "find": ("(string, string) -> string",),
    "findAll": ("(string, string) -> list<string>", "(string, string, int) -> list<string>"),
    "isSorted": tuple(f"(list<{name}>) -> bool" for name in _COMPARED),
    "min": tuple(f"(list<{name}>) -> {name}" for name in _COMPARED),
    "max": tuple(f"(list<{name}>) -> {name}" for name in _COMPARED),
    "sum": tuple(f"(list<{name}>) -> {name}" for name in _ADDED),
    "indexOf": ("(string, string) -> int", "(string, string, int) -> int", "(list<A>, A) -> int"),
    "lastIndexOf": ("(string, string) -> int", "(string, string, int) -> int", "(list<A>, A) -> int"),
    "charAt": ("(string, int) -> string",),
    "join": ("(list<string>) -> string", "(list<string>, string) -> string"),
    "lowerAscii": ("(string) -> string",),
    "upperAscii": ("(string) -> string",),
    "replace": ("(string, string, string) -> string", "(string, string, string, int) -> string"),
    "split": ("(string, string) -> list<string>", "(string, string, int) -> list<string>"),
    "substring": ("(string, int) -> string", "(string, int, int) -> string"),
    "trim": ("(string) -> string",),
    "format": ("(string, list<dyn>) -> string",),
    "getScheme": ("(URL) -> string",),
    "getHost": ("(URL) -> string",),
    "getHostname": ("(URL) -> string",),
    "getPort": ("(URL) -> string",),
    "getEscapedPath": ("(URL) -> string",),
    "getQuery": ("(URL) -> map<string, list<string>>",),
    "family": ("(IP) -> int",),
    "isUnspecified": ("(IP) -> bool",),
    "isLoopback": ("(IP) -> bool",),
    "isLinkLocalMulticast": ("(IP) -> bool",),
    "isLinkLocalUnicast": ("(IP) -> bool",),
    "isGlobalUnicast": ("(IP) -> bool",),
    "containsIP": ("(CIDR, string) -> bool", "(CIDR, IP) -> bool"),
    "containsCIDR": ("(CIDR, string) -> bool", "(CIDR, CIDR) -> bool"),
    "ip": ("(CIDR) -> IP",),
    "prefixLength": ("(CIDR) -> int",),
    "masked": ("(CIDR) -> CIDR",),
    "validate": ("(Format, string) -> optional<list<string>>",),
}

_NUMBERS: Final = ("int", "uint", "double")
_ORDERED: Final = ("bool", *_NUMBERS, "string", "bytes", "timestamp", "duration")
_COMPARISONS: Final = tuple(
    f"({left}, {right}) -> bool"
    for left in _ORDERED
    for right in _ORDERED
    if left == right or (left in _NUMBERS and right in _NUMBERS)
)

OPERATORS: Final[Signatures] = dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), _COMPARISONS)
"""Operators that Kubernetes declares for numbers of different types as well."""
