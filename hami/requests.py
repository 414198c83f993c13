"""Values in HAMi's request of a container (`ContainerDeviceRequest`)."""

from typing import Final

UNSET_PERCENT: Final = 101
"""`MemPercentagereq` of a container that does not request a share of a device's memory."""
