"""Requests of the containers of a pod, as HAMi prints them in JSON."""

from typing import Any, Final, NamedTuple

from engine.hami.quantities import UNSET_PERCENT


class ContainerRequest(NamedTuple):
    """The request of one container, in HAMi's terms: 0 MiB or 101 percent mean that it is not set."""

    vendor: str
    devices: int
    memory_mib: int
    memory_percent: int
    cores_percent: int


NO_REQUEST: Final = ContainerRequest("", 0, 0, UNSET_PERCENT, 0)


def parse_requests(parsed: Any) -> list[ContainerRequest] | None:
    """Parse the JSON of ``requests=…``: per container, an object by vendor. None for anything else.

    Of a container with requests to two vendors only the first counts; HAMi finds no node for such a pod.
    """
    if not isinstance(parsed, list):
        return None
    return [_parse_container(by_vendor) for by_vendor in parsed]


def _parse_container(by_vendor: Any) -> ContainerRequest:
    for vendor, numbers in by_vendor.items() if isinstance(by_vendor, dict) else ():
        if isinstance(numbers, dict):
            # The fields of HAMi's ``ContainerDeviceRequest``; 101 percent is its mark for "no share requested".
            keys = {"Nums": 0, "Memreq": 0, "MemPercentagereq": UNSET_PERCENT, "Coresreq": 0}
            values = [numbers.get(key, unset) for key, unset in keys.items()]
            # type(), not isinstance(): JSON's true is an int for Python.
            if all(type(value) is int and abs(value) < 2**31 for value in values) and values[0] > 0:
                return ContainerRequest(str(vendor), *values)
    return NO_REQUEST
