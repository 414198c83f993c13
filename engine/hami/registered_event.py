"""Event `node.registered` of a node's devices, the same for every source that observes the node."""

from collections.abc import Collection, Iterator
from datetime import datetime
from typing import Final

import numpy as np
from numpy.typing import NDArray

from engine.hami.registration import Registration
from schemas.events import NodeRegistered

_INT64_MAX: Final = 2**63 - 1


def to_node_registered(
    cluster: str,
    node: str,
    observed_at: datetime,
    registration: Registration | None,
    *,
    cause: str = "",
    handshake: str = "",
    scheduler: str = "",
    cordoned: Collection[str] = (),
) -> NodeRegistered:
    """Convert the devices that the node offers to its event.

    cause: which annotation can't be read, or why no device counts. cordoned: UUIDs that the node's annotation excludes;
    those that are not devices of the node are left out.
    """
    devices = registration.devices if registration else ()
    return NodeRegistered(
        cluster=cluster,
        node=node,
        observed_at=observed_at,
        scheduler=scheduler,
        # A node that lists no device is malformed for HAMi, so None and not an empty list means that it is not
        # registered.
        registered=registration is not None,
        cause=cause,
        handshake=handshake,
        uuid=[device.uuid for device in devices],
        model=[device.model for device in devices],
        mode=[device.mode for device in devices],
        index=_to_column(device.index for device in devices),
        memory_mib=_to_column(device.memory_mib for device in devices),
        cores_percent=_to_column(device.cores for device in devices),
        slots=_to_column(device.slots for device in devices),
        numa=_to_column(device.numa for device in devices),
        healthy=[device.is_healthy for device in devices],
        cordoned=[device.uuid for device in devices if device.uuid in cordoned],
    )


def _to_column(values: Iterator[int]) -> NDArray[np.int64]:
    # An index may have 64 bits without a sign.
    return np.fromiter((min(value, _INT64_MAX) for value in values), np.int64)
