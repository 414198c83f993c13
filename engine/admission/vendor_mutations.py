"""Changes of HAMi's webhook to a container for vendors other than NVIDIA (`MutateAdmission` of each).

Every function returns whether the container requests the vendor's devices, and raises InvalidRequestError with HAMi's
words for what the vendor can't give. Quantities are written as text, as Kubernetes does.
"""

from collections.abc import Callable, Mapping
from typing import Final

from engine.admission.container_quantities import (
    InvalidRequestError,
    annotate,
    append_variable,
    get_amounts,
    get_annotation,
    get_quantity,
    set_quantity,
)
from engine.fit.judge.request.vendor_requests import round_xpu_size, split_cores
from engine.hami import vendor_annotations as keys
from engine.hami.quantities import format_quantity, parse_whole, round_up
from engine.hami.vendors import Family, Vendor
from schemas.json_types import Json

Mutate = Callable[[Json, Json, Vendor], bool]

_CONTAINER_NAME: Final = "SOL_CONTINER_NAME"
"""HAMi's spelling, which Iluvatar's runtime reads."""
_MTHREADS_CORES: Final = 16
_MTHREADS_MEMORY: Final = 96
_MTHREADS_SIZES: Final = (2, 4, 8, 16, 32, 64, 96)
_INT32_MAX: Final = 2**31 - 1


def mutate_vendor(pod: Json, container: Json, vendor: Vendor) -> bool:
    """Complete one container for one vendor; whether it requests the vendor's devices."""
    return _MUTATIONS.get(vendor.family, _is_named)(pod, container, vendor)


def _is_named(_: Json, container: Json, vendor: Vendor) -> bool:
    return vendor.resources.count in get_amounts(container, "limits")


def _mutate_ascend(pod: Json, container: Json, vendor: Vendor) -> bool:
    limits, names = get_amounts(container, "limits"), vendor.resources
    if names.count not in limits:
        if vendor.admission.overwrites_env:
            append_variable(container, "ASCEND_VISIBLE_DEVICES", "")
        return False
    count = round_up(limits[names.count])
    _fill_pairs(container, vendor, count)
    is_soft = get_annotation(pod, keys.ASCEND_MODE) == keys.ASCEND_SOFT
    cores = get_quantity(container, names.cores)
    if not is_soft and cores is not None and round_up(cores) > 0:
        raise InvalidRequestError(f"{names.cores} is only supported in hami-core (soft split) mode")
    memory = vendor.amounts.whole_mib
    if names.memory in limits:
        requested = round_up(limits[names.memory])
        memory = requested if is_soft else _find_template_size(vendor, requested)
        if not is_soft and memory <= 0:
            raise InvalidRequestError(f"{names.memory} {requested} is invalid")
    if count > 1 and not is_soft and memory != vendor.amounts.whole_mib:
        raise InvalidRequestError("vNPU not supported for multiple devices")
    # Kubernetes refuses an extended resource whose request and limit differ.
    for field in ("limits", "requests"):
        set_quantity(container, field, names.memory, format_quantity(memory))
    if vendor.admission.runtime_class and pod["spec"].get("runtimeClassName") is None:
        pod["spec"]["runtimeClassName"] = vendor.admission.runtime_class
    return True


def _fill_pairs(container: Json, vendor: Vendor, count: int) -> None:
    """Fill up the devices of super pods, which come in pairs: one becomes two."""
    if vendor.word != "Ascend910C" or not vendor.chip.super_pod or count % 2 == 0:
        return
    if count != 1:
        raise InvalidRequestError(f"Ascend910C device request must be 1 or 2*n, got {count}")
    for field in ("limits", "requests"):
        if vendor.resources.count in get_amounts(container, field):
            set_quantity(container, field, vendor.resources.count, "2")


def _find_template_size(vendor: Vendor, memory_mib: int) -> int:
    whole_mib = vendor.amounts.whole_mib if memory_mib <= vendor.amounts.capacity_mib else 0
    return next((size for size, _ in vendor.chip.templates if memory_mib <= size), whole_mib)


def _mutate_iluvatar(_: Json, container: Json, vendor: Vendor) -> bool:
    limits, names = get_amounts(container, "limits"), vendor.resources
    if names.count not in limits:
        return False
    count = round_up(limits[names.count])
    if count > 1:
        set_quantity(container, "limits", names.cores, format_quantity(count * 100))
    is_set = any(variable.get("name") == _CONTAINER_NAME for variable in container.get("env") or ())
    if not is_set and container.get("name"):
        append_variable(container, _CONTAINER_NAME, container["name"])
    return True


def _mutate_metax_sgpu(pod: Json, container: Json, vendor: Vendor) -> bool:
    limits = get_amounts(container, "limits")
    if vendor.resources.count not in limits:
        return False
    app_class = get_annotation(pod, keys.METAX_CLASS)
    if app_class is not None:
        if app_class not in (keys.ONLINE, keys.OFFLINE):
            raise InvalidRequestError(f"{keys.METAX_CLASS} must be set one of [{keys.ONLINE}, {keys.OFFLINE}]")
        if round_up(limits[vendor.resources.count]) != 1:
            raise InvalidRequestError("app-class pod must request single device")
    if app_class != keys.ONLINE:
        policy = get_annotation(pod, keys.METAX_QOS)
        if policy is None:
            annotate(pod, keys.METAX_QOS, keys.QOS_POLICIES[0])
        elif policy not in keys.QOS_POLICIES:
            raise InvalidRequestError(f"{keys.METAX_QOS} must be set one of [{', '.join(keys.QOS_POLICIES)}]")
    return True


def _mutate_mthreads(pod: Json, container: Json, vendor: Vendor) -> bool:
    names = vendor.resources
    requested = get_quantity(container, names.count)
    if requested is None:
        return False
    count = round_up(requested)
    if count <= 0:
        raise InvalidRequestError(f"{names.count} must be greater than 0")
    memory = get_amounts(container, "limits").get(names.memory)
    if count > 1 or memory is None:
        set_quantity(container, "limits", names.cores, format_quantity(count * _MTHREADS_CORES))
        set_quantity(container, "limits", names.memory, format_quantity(count * _MTHREADS_MEMORY))
        if count > 1:
            annotate(pod, keys.MTHREADS_COUNT, str(count))
    elif (parse_whole(memory) or 0) not in _MTHREADS_SIZES:
        sizes = ", ".join(map(str, _MTHREADS_SIZES))
        raise InvalidRequestError(f"sGPU memory request value is invalid, valid values are [{sizes}]")
    return True


def _mutate_xpu(_: Json, container: Json, vendor: Vendor) -> bool:
    limits, names = get_amounts(container, "limits"), vendor.resources
    if names.count not in limits:
        return False
    if names.memory in limits:
        size = format_quantity(round_xpu_size(round_up(limits[names.memory])))
        for field in ("limits", "requests"):
            set_quantity(container, field, names.memory, size)
    return True


def _mutate_enflame(_: Json, container: Json, vendor: Vendor) -> bool:
    names = vendor.resources
    count = get_quantity(container, names.count)
    if count is not None:
        if round_up(count) <= 0:
            raise InvalidRequestError(f"{names.count} must be greater than 0")
        _name_in_both(container, names.count)
        return True
    memory, cores = get_quantity(container, names.memory), get_quantity(container, names.cores)
    if memory is not None and round_up(memory) <= 0:
        raise InvalidRequestError(f"{names.memory} must be greater than 0")
    if cores is not None and not 0 < round_up(cores) <= 100:
        raise InvalidRequestError(f"{names.cores} must be in range (0,100]")
    for name, quantity in ((names.memory, memory), (names.cores, cores)):
        if quantity is not None:
            _name_in_both(container, name)
    return memory is not None or cores is not None


def _name_in_both(container: Json, name: str) -> None:
    """Name the resource in both limits and requests, as HAMi completes it."""
    quantity = get_quantity(container, name)
    for field in ("limits", "requests"):
        if name not in get_amounts(container, field):
            set_quantity(container, field, name, quantity)


def _mutate_neuron(_: Json, container: Json, vendor: Vendor) -> bool:
    names = vendor.resources
    count, cores = get_quantity(container, names.count), get_quantity(container, names.cores)
    if count is not None:
        _check_range(count, names.count, _INT32_MAX)
        return True
    if cores is None:
        return False
    requested = _check_range(cores, names.cores, 2 * _INT32_MAX)
    if split_cores(requested, vendor) is None:
        device_cores = min(vendor.amounts.default_cores or 2, 2)
        if requested % device_cores:
            raise InvalidRequestError(f"{names.cores} must be 1 or a multiple of {device_cores}, got {requested}")
        raise InvalidRequestError(
            f"{names.cores} needs {requested // device_cores} devices, which exceeds the maximum of {_INT32_MAX}"
        )
    return True


def _check_range(quantity: object, name: str, highest: int) -> int:
    value = parse_whole(quantity)
    if value is None:
        raise InvalidRequestError(f"{name} must be an integer")
    if value <= 0:
        raise InvalidRequestError(f"{name} must be greater than 0")
    if value > highest:
        raise InvalidRequestError(f"{name} must not exceed {highest}")
    return value


def _mutate_amd(_: Json, container: Json, vendor: Vendor) -> bool:
    limits, names = get_amounts(container, "limits"), vendor.resources
    if names.count in limits and names.cores in limits:
        cores = parse_whole(limits[names.cores])
        if cores is None or not 1 <= cores <= 100:
            raise InvalidRequestError(f"{names.cores} must be an integer percentage between 1 and 100")
    return any(name in limits for name in (names.count, names.memory, names.cores) if name)


_MUTATIONS: Final[Mapping[Family, Mutate]] = {
    Family.ASCEND: _mutate_ascend,
    Family.ILUVATAR: _mutate_iluvatar,
    Family.METAX_SGPU: _mutate_metax_sgpu,
    Family.MTHREADS: _mutate_mthreads,
    Family.XPU: _mutate_xpu,
    Family.ENFLAME: _mutate_enflame,
    Family.NEURON: _mutate_neuron,
    Family.AMD: _mutate_amd,
}
