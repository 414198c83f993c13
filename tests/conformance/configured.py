"""HAMi's NVIDIA device configuration, as the cases give it, as a row of our vendor table."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hami.vendors import NVIDIA, Vendor


def configured(config: Mapping[str, Any]) -> Vendor:
    amounts = replace(
        NVIDIA.amounts,
        default_memory_mib=config["defaultMemory"],
        default_cores=config["defaultCores"],
        default_count=config["defaultGPUNum"],
        memory_unit_mib=config["memoryFactor"],
    )
    admission = replace(
        NVIDIA.admission,
        overwrites_env=config.get("overwriteEnv", False),
        core_policy=config.get("gpuCorePolicy", ""),
        runtime_class=config.get("runtimeClassName", ""),
    )
    return replace(NVIDIA, amounts=amounts, admission=admission)
