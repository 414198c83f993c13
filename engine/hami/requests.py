"""Values in HAMi's request of a container (`ContainerDeviceRequest`)."""

from typing import Final

BY_SPECIFICATION: Final = -1
"""`MemPercentagereq` of an Enflame container that names memory or cores instead of slices."""
UNSET_PERCENT: Final = 101
"""`MemPercentagereq` of a container that does not request a share of a device's memory."""
