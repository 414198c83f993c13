"""Changes of HAMi's webhook to a container, vendor by vendor (`MutateAdmission`).

Functions change the pod they are given, a copy that `admit` owns. Quantities are written as text, as Kubernetes does.
"""

from typing import Final

from engine.admission.container_quantities import InvalidRequestError, append_variable, get_amounts, get_quantity
from engine.admission.vendor_mutations import mutate_vendor
from engine.hami.quantities import parse_whole, round_up
from engine.hami.vendors import Family, Vendor
from schemas.json_types import Json

PRIORITY_VARIABLE: Final = "CUDA_TASK_PRIORITY"
CORE_POLICY_VARIABLE: Final = "GPU_CORE_UTILIZATION_POLICY"
_WHOLE_DEVICE: Final = 100


def mutate(pod: Json, container: Json, vendor: Vendor) -> bool:
    """Complete one container for one vendor; whether it requests the vendor's devices. Raises InvalidRequestError."""
    if vendor.family not in (Family.NVIDIA, Family.CUSTOM):
        return mutate_vendor(pod, container, vendor)
    _check_percentage(container, vendor)
    _set_variables(container, vendor)
    is_ours = _complete(container, vendor)
    rules = vendor.admission
    spec = pod["spec"]
    if is_ours and rules.runtime_class and spec.get("runtimeClassName") is None:
        spec["runtimeClassName"] = rules.runtime_class
    # HAMi's `overwriteEnv`: NVIDIA_VISIBLE_DEVICES=none hides devices that the container did not ask for.
    if not is_ours and rules.overwrites_env and rules.hides_devices_by:
        append_variable(container, rules.hides_devices_by, rules.hidden_value)
    return is_ours


def _check_percentage(container: Json, vendor: Vendor) -> None:
    name = vendor.resources.percentage
    quantity = get_quantity(container, name)
    if quantity is not None and not 0 <= round_up(quantity) <= 100:
        raise InvalidRequestError(
            f"invalid {name} value {round_up(quantity)} in container {container.get('name', '')}: "
            "must be an integer between 0 and 100"
        )


def _set_variables(container: Json, vendor: Vendor) -> None:
    priority = _get_limits(container).get(vendor.resources.priority) if vendor.resources.priority else None
    if priority is not None:
        append_variable(container, PRIORITY_VARIABLE, str(round_up(priority)))
    if vendor.admission.core_policy not in ("", "default"):
        append_variable(container, CORE_POLICY_VARIABLE, vendor.admission.core_policy)


def _complete(container: Json, vendor: Vendor) -> bool:
    limits, names = _get_limits(container), vendor.resources
    is_named = names.count in limits
    if is_named:
        _check_count(container, vendor)
        _round_memory(container, vendor)
        _make_whole(container, vendor)
    # HAMi: a container that names only memory or cores gets `defaultGPUNum` devices.
    elif any(name in limits for name in (names.memory, names.percentage, names.cores) if name):
        is_named = vendor.amounts.default_count > 0
        if is_named:
            limits[names.count] = str(vendor.amounts.default_count)
    return _fill_cores(container, vendor) or is_named


def _fill_cores(container: Json, vendor: Vendor) -> bool:
    """Give all cores to a container that requests whole devices (limits or requests); whether it did."""
    names = vendor.resources
    asks = get_quantity(container, names.count) is not None and get_quantity(container, names.cores) is None
    if not (vendor.admission.fills_whole_cores and asks and _wants_whole_memory(container, vendor)):
        return False
    resources = container["resources"]
    resources["limits"] = {**_get_limits(container), names.cores: str(_WHOLE_DEVICE)}
    return True


def _wants_whole_memory(container: Json, vendor: Vendor) -> bool:
    percentage = get_quantity(container, vendor.resources.percentage)
    # HAMi: the whole memory is 100 percent, or neither form named; then the container gets all cores.
    if percentage is not None:
        return round_up(percentage) == _WHOLE_DEVICE
    return get_quantity(container, vendor.resources.memory) is None


def _check_count(container: Json, vendor: Vendor) -> None:
    """Check the count of devices that are allocated in packs: 1 becomes a pack, other non-multiples are refused."""
    step, name = vendor.admission.count_step, vendor.resources.count
    count = parse_whole(_get_limits(container)[name]) or 0
    if step == 1 or count % step == 0:
        return
    if count != 1:
        raise InvalidRequestError(f"{vendor.word} device request must be 1 or {step}*n, got {count}")
    for amounts in (_get_limits(container), get_amounts(container, "requests")):
        if name in amounts:
            amounts[name] = str(step)


def _round_memory(container: Json, vendor: Vendor) -> None:
    """Round up the memory of devices that can only be cut into certain sizes."""
    name, amounts, limits = vendor.resources.memory, vendor.amounts, _get_limits(container)
    if not amounts.shares_mib:
        return
    memory = amounts.whole_mib
    if name in limits:
        memory = amounts.round_up(round_up(limits[name]))
        if memory <= 0:
            raise InvalidRequestError(f"{name} {round_up(limits[name])} is invalid")
    count = parse_whole(limits[vendor.resources.count]) or 0
    if vendor.admission.shares_stand_alone and count > 1 and memory != amounts.whole_mib:
        raise InvalidRequestError(f"{name}: a part of a device can only be requested with one {vendor.resources.count}")
    limits[name] = str(memory)
    # Kubernetes refuses an extended resource whose request and limit differ.
    container["resources"].setdefault("requests", {})[name] = str(memory)


def _make_whole(container: Json, vendor: Vendor) -> None:
    """Make several devices whole ones: the container gets all their cores."""
    count = round_up(_get_limits(container)[vendor.resources.count])
    if vendor.admission.several_are_whole and count > 1:
        _get_limits(container)[vendor.resources.cores] = str(count * _WHOLE_DEVICE)


def _get_limits(container: Json) -> Json:
    return get_amounts(container, "limits")
