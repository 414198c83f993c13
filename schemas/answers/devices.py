"""A device as an attempt judged it."""

from pydantic import Field

from .base import Answer


class DeviceLog(Answer):
    """One device as it stood when it was judged for one container; null is a number that its scheduler did not say.

    Where the state of its node is not known, uuid and model are empty and every number is null."""

    node: str
    container: str
    uuid: str
    verdict: str = Field(description="picked, fits, not reached, or the reason code it was refused for.")
    model: str
    numa: int | None
    memory_total_mib: int | None
    memory_used_mib: int | None = Field(
        description="Use before this attempt, as the other numbers of use; also for the pod's later containers, "
        "although the devices picked for earlier ones count for them too."
    )
    cores_total_percent: int | None
    cores_used_percent: int | None
    slots_total: int | None
    slots_used: int | None
    device_index: int | None = Field(
        description="The device's number on its node, or else the one that the log prints of it."
    )
    memory_requested_mib: int | None = Field(
        description="Memory requested of this device, where a log reports it for each device."
    )
    cores_requested_percent: int | None
    checks: dict[str, bool] = Field(description="Checks of the device by its scheduler, where a log reports them.")
