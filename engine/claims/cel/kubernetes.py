"""Kubernetes' functions of quantities, versions and named formats."""

import re
from collections.abc import Callable
from datetime import date
from typing import Final

from engine.claims.cel.functions import Functions, define, index, make_overload
from engine.claims.cel.urls import is_url
from engine.claims.cel.values import ABSENT, EvaluationError, NamedFormat, OptionalValue, wrap_int
from engine.claims.quantity import Quantity, QuantityTextError, make_integer, parse_quantity
from engine.claims.version import Version, VersionError, normalize_version, parse_version

_LABEL: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
_OLD_LABEL: Final = re.compile(r"[a-z](?:[-a-z0-9]*[a-z0-9])?")
_NAME: Final = re.compile(r"(?:[A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_UUID: Final = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE)
_BASE64: Final = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})")
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME: Final = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})")
_LABEL_LENGTH: Final = 63
_SUBDOMAIN_LENGTH: Final = 253


def _parse_quantity(text: str) -> Quantity:
    try:
        return parse_quantity(text)
    except QuantityTextError as error:
        raise EvaluationError(str(error)) from None


def _is_quantity(text: str) -> bool:
    try:
        parse_quantity(text)
    except QuantityTextError:
        return False
    return True


def _to_integer(quantity: Quantity) -> int:
    if quantity.integer is None:
        raise EvaluationError("cannot convert value to integer")
    return quantity.integer


def _compare(left: Quantity, right: Quantity) -> int:
    return (left.nano > right.nano) - (left.nano < right.nano)


def _parse_version(text: str, normalize: bool = False) -> Version:
    try:
        return parse_version(normalize_version(text) if normalize else text)
    except VersionError as error:
        raise EvaluationError(str(error)) from None


def _is_version(text: str, normalize: bool = False) -> bool:
    try:
        _parse_version(text, normalize)
    except EvaluationError:
        return False
    return True


def _mask_dash(name: str) -> str:
    """Replace a dash at the end of a prefix, which Kubernetes allows there."""
    return f"{name[:-2]}a" if len(name) > 1 and name.endswith("-") else name


def _is_label(name: str) -> bool:
    return len(name) <= _LABEL_LENGTH and _LABEL.fullmatch(name) is not None


def _is_old_label(name: str) -> bool:
    return len(name) <= _LABEL_LENGTH and _OLD_LABEL.fullmatch(name) is not None


def _is_subdomain(name: str) -> bool:
    return len(name) <= _SUBDOMAIN_LENGTH and _SUBDOMAIN.fullmatch(name) is not None


def _is_qualified_name(name: str) -> bool:
    prefix, slash, base = name.rpartition("/")
    if slash and not (prefix and _is_subdomain(prefix)):
        return False
    return len(base) <= _LABEL_LENGTH and _NAME.fullmatch(base) is not None


def _is_label_value(value: str) -> bool:
    return not value or (len(value) <= _LABEL_LENGTH and _NAME.fullmatch(value) is not None)


def _is_date(text: str) -> bool:
    try:
        return _DATE.fullmatch(text) is not None and bool(date.fromisoformat(text))
    except ValueError:
        return False


def _is_datetime(text: str) -> bool:
    day, separator, time = text.lower().partition("t")
    parts = _TIME.fullmatch(time)
    if not separator or not parts or not _is_date(day):
        return False
    return int(parts[1]) < 24 and int(parts[2]) < 60 and int(parts[3]) < 60


_FORMATS: Final[dict[str, Callable[[str], bool]]] = {
    "dns1123Label": _is_label,
    "dns1123Subdomain": _is_subdomain,
    "dns1035Label": _is_old_label,
    "qualifiedName": _is_qualified_name,
    "dns1123LabelPrefix": lambda name: _is_label(_mask_dash(name)),
    "dns1123SubdomainPrefix": lambda name: _is_subdomain(_mask_dash(name)),
    "dns1035LabelPrefix": lambda name: _is_old_label(_mask_dash(name)),
    "labelValue": _is_label_value,
    "uri": is_url,
    "uuid": lambda text: _UUID.fullmatch(text) is not None,
    "byte": lambda text: _BASE64.fullmatch(text) is not None,
    "date": _is_date,
    "datetime": _is_datetime,
}


def _validate(form: NamedFormat, text: str) -> OptionalValue:
    """Return what is wrong with a text; absent if it has the format. The words are not Kubernetes'."""
    if _FORMATS[form.name](text):
        return ABSENT
    return OptionalValue((f"must have the format {form.name}",), has_value=True)


def _name_format(name: str) -> OptionalValue:
    return OptionalValue(NamedFormat(name), has_value=True) if name in _FORMATS else ABSENT


KUBERNETES: Final[Functions] = index(
    define("quantity", make_overload(_parse_quantity, str)),
    define("isQuantity", make_overload(_is_quantity, str)),
    define("sign", make_overload(lambda quantity: (quantity.nano > 0) - (quantity.nano < 0), Quantity)),
    define(
        "isGreaterThan",
        make_overload(lambda left, right: left.nano > right.nano, Quantity, Quantity),
        make_overload(lambda left, right: left.compare(right) == 1, Version, Version),
    ),
    define(
        "isLessThan",
        make_overload(lambda left, right: left.nano < right.nano, Quantity, Quantity),
        make_overload(lambda left, right: left.compare(right) == -1, Version, Version),
    ),
    define("compareTo", make_overload(_compare, Quantity, Quantity), make_overload(Version.compare, Version, Version)),
    define("asApproximateFloat", make_overload(lambda quantity: quantity.nano / 1e9, Quantity)),
    define("asInteger", make_overload(_to_integer, Quantity)),
    define("isInteger", make_overload(lambda quantity: quantity.integer is not None, Quantity)),
    define(
        "add",
        make_overload(lambda left, right: left.add(right), Quantity, Quantity),
        make_overload(lambda left, right: left.add(make_integer(right, "DecimalExponent")), Quantity, int),
    ),
    define(
        "sub",
        make_overload(lambda left, right: left.add(right, -1), Quantity, Quantity),
        make_overload(lambda left, right: left.add(make_integer(right, "DecimalExponent"), -1), Quantity, int),
    ),
    define("semver", make_overload(_parse_version, str), make_overload(_parse_version, str, bool)),
    define("isSemver", make_overload(_is_version, str), make_overload(_is_version, str, bool)),
    # A part beyond the range of int wraps around in Kubernetes.
    define("major", make_overload(lambda version: wrap_int(version.major), Version)),
    define("minor", make_overload(lambda version: wrap_int(version.minor), Version)),
    define("patch", make_overload(lambda version: wrap_int(version.patch), Version)),
    define("format.named", make_overload(_name_format, str)),
    define("validate", make_overload(_validate, NamedFormat, str)),
    *(define(f"format.{name}", make_overload(lambda name=name: NamedFormat(name))) for name in _FORMATS),
)
"""Functions and methods by their names."""
