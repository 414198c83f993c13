"""NVIDIA's words in Kubernetes objects: the vendor in annotations, the resources that containers ask for."""

from typing import Final

VENDOR: Final = "NVIDIA"
COUNT: Final = "nvidia.com/gpu"
MEMORY: Final = "nvidia.com/gpumem"
MEMORY_PERCENTAGE: Final = "nvidia.com/gpumem-percentage"
CORES: Final = "nvidia.com/gpucores"
