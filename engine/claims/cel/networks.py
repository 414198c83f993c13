"""IP addresses and networks."""

import re
from collections.abc import Callable
from ipaddress import IPv4Address, IPv4Interface, IPv6Address, IPv6Interface, ip_address
from typing import Final

from engine.claims.cel.functions import Functions, Parameter, define, index, make_overload, take
from engine.claims.cel.values import Address, EvaluationError, Network

_BITS: Final = re.compile(r"0|[1-9][0-9]{0,3}")
_ADDRESS: Final[Parameter] = take(IPv4Address, IPv6Address)
_NETWORK: Final[Parameter] = take(IPv4Interface, IPv6Interface)


def parse_address(text: str) -> Address:
    """Parse an address; raise EvaluationError for a zone or an IPv4 address written as IPv6 as well."""
    if "%" in text and ":" in text:
        raise EvaluationError(f'IP address "{text}" with zone value is not allowed')
    try:
        address = ip_address(text)
    except ValueError:
        cause = f'ParseAddr("{text}"): unable to parse IP'
        raise EvaluationError(f'IP Address "{text}" parse error during conversion from string: {cause}') from None
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        raise EvaluationError(f'IPv4-mapped IPv6 address "{text}" is not allowed')
    return address


def parse_network(text: str) -> Network:
    """Parse an address with the length of its prefix; raise EvaluationError for anything else."""
    try:
        address, bits = _split_network(text)
    except EvaluationError as error:
        cause = f"network address parse error during conversion from string: {error}"
        raise EvaluationError(f"network address parse error during conversion from string: {cause}") from None
    if isinstance(address, IPv4Address):
        return IPv4Interface((address, bits))
    return IPv6Interface((address, bits))


def _split_network(text: str) -> tuple[Address, int]:
    head, slash, bits = text.rpartition("/")
    if not slash:
        raise EvaluationError(f"netip.ParsePrefix(\"{text}\"): no '/'")
    address = parse_address(head)
    if not _BITS.fullmatch(bits):
        raise EvaluationError(f'netip.ParsePrefix("{text}"): bad bits after slash: "{bits}"')
    if int(bits) > address.max_prefixlen:
        raise EvaluationError(f'netip.ParsePrefix("{text}"): prefix length out of range')
    return address, int(bits)


def _make_test(parse: Callable[[str], object]) -> Callable[[str], bool]:
    def accepts(text: str) -> bool:
        try:
            parse(text)
        except EvaluationError:
            return False
        return True

    return accepts


def _is_global(address: Address) -> bool:
    """Return whether an address is a global unicast one in Go's sense, private ones included."""
    if address == IPv4Address("255.255.255.255"):
        return False
    return not (address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local)


def _is_local_multicast(address: Address) -> bool:
    if isinstance(address, IPv4Address):
        return address.packed[:3] == bytes((224, 0, 0))
    return address.packed[0] == 0xFF and address.packed[1] & 0x0F == 0x02


def _has_address(network: Network, address: Address) -> bool:
    return address.version == network.version and address in network.network


def _has_network(network: Network, other: Network) -> bool:
    if network.version != other.version or network.network.prefixlen > other.network.prefixlen:
        return False
    return _has_address(network, other.network.network_address)


def _mask(network: Network) -> Network:
    masked = network.network
    return type(network)((masked.network_address, masked.prefixlen))


NETWORKS: Final[Functions] = index(
    define("ip", make_overload(parse_address, str), make_overload(lambda network: network.ip, _NETWORK)),
    define("isIP", make_overload(_make_test(parse_address), str)),
    define("ip.isCanonical", make_overload(lambda text: str(parse_address(text)) == text, str)),
    define("family", make_overload(lambda address: address.version, _ADDRESS)),
    define("isUnspecified", make_overload(lambda address: address.is_unspecified, _ADDRESS)),
    define("isLoopback", make_overload(lambda address: address.is_loopback, _ADDRESS)),
    define("isLinkLocalMulticast", make_overload(_is_local_multicast, _ADDRESS)),
    define("isLinkLocalUnicast", make_overload(lambda address: address.is_link_local, _ADDRESS)),
    define("isGlobalUnicast", make_overload(_is_global, _ADDRESS)),
    define("cidr", make_overload(parse_network, str)),
    define("isCIDR", make_overload(_make_test(parse_network), str)),
    define(
        "containsIP",
        make_overload(lambda network, text: _has_address(network, parse_address(text)), _NETWORK, str),
        make_overload(_has_address, _NETWORK, _ADDRESS),
    ),
    define(
        "containsCIDR",
        make_overload(lambda network, text: _has_network(network, parse_network(text)), _NETWORK, str),
        make_overload(_has_network, _NETWORK, _NETWORK),
    ),
    define("prefixLength", make_overload(lambda network: network.network.prefixlen, _NETWORK)),
    define("masked", make_overload(_mask, _NETWORK)),
)
"""Functions and methods by their names."""
