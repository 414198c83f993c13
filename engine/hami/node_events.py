"""Events `node.registered` and `node.checked` of a node, the same for every source that observes the node."""

from collections.abc import Collection, Iterable, Iterator
from datetime import datetime
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from engine.hami.node_checks import RegistrationProblem
from engine.hami.registration import Registration
from schemas.events import NodeChecked, NodeProblem, NodeRegistered

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


_MAX_HANDSHAKE_CHARACTERS: Final = 200
"""Limit of a reported handshake: real ones are shorter, but an annotation may hold anything."""


def to_node_checked(
    cluster: str, node: str, observed_at: datetime, problems: Iterable[RegistrationProblem], *, scheduler: str = ""
) -> NodeChecked:
    """Convert the problems that the node has now to its event."""
    listed = list(map(_to_node_problem, problems))
    return NodeChecked(cluster=cluster, node=node, observed_at=observed_at, scheduler=scheduler, problems=listed)


def _to_node_problem(problem: RegistrationProblem) -> NodeProblem:
    fields: dict[str, Any] = {"code": problem.code, "vendor": problem.vendor, "message": problem.message}
    if problem.handshake:
        written_at = problem.handshake_at
        fields |= {
            "handshake": problem.handshake.text[:_MAX_HANDSHAKE_CHARACTERS],
            # The contract has no time before 1970.
            "handshake_at": written_at if written_at and written_at.year >= 1970 else None,
            "is_asked": problem.handshake.is_request,
        }
    if problem.allocatable is not None:
        fields["allocatable"] = max(problem.allocatable, 0)
    return NodeProblem(**fields)
