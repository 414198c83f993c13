"""The table of vendors of a case: NVIDIA's row with the case's values, or a whole device configuration of HAMi's."""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from engine.fit import device_config
from engine.hami.vendors import NVIDIA, Vendor, Vendors

CONFIGURATIONS: Final = Path(__file__).parent / "cases" / "second" / "configs"


def read_vendors(case: Mapping[str, Any]) -> Vendors:
    """Read the vendors that HAMi was configured with."""
    return (
        read_shipped_vendors(case["device_config"]) if "device_config" in case else (configure_nvidia(case["config"]),)
    )


@lru_cache
def read_shipped_vendors(name: str) -> Vendors:
    """Read the vendors of a device configuration in HAMi's form, by the name of its file."""
    return device_config.read(CONFIGURATIONS / f"{name}.yaml")


def configure_nvidia(config: Mapping[str, Any]) -> Vendor:
    """Build NVIDIA's row with the values that a case names."""
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
