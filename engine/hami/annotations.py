"""Names of the annotations, labels and resources that HAMi uses on Kubernetes objects.

Only NVIDIA's and those that all vendors share; names of the other vendors are in `engine/hami/vendor_catalog.py`.
"""

from typing import Final

# On nodes
REGISTER: Final = "hami.io/node-nvidia-register"
PAIR_SCORES: Final = "hami.io/node-nvidia-score"
HANDSHAKE: Final = "hami.io/node-handshake"
CORDONED_DEVICES: Final = "hami.io/device-cordon"
NODE_LOCK: Final = "hami.io/mutex.lock"

# On pods, written by the filter
ASSIGNED_NODE: Final = "hami.io/vgpu-node"
"""An annotation, and a label with the same value."""
ASSIGNED_TIME: Final = "hami.io/vgpu-time"
"""Unix seconds."""
DEVICES_TO_ALLOCATE: Final = "hami.io/vgpu-devices-to-allocate"
DEVICES_ALLOCATED: Final = "hami.io/vgpu-devices-allocated"
MIG_ALLOCATIONS: Final = "hami.io/vgpu-mig-allocations"

# On pods, written by the bind and then by the device plugin
BIND_PHASE: Final = "hami.io/bind-phase"
BIND_TIME: Final = "hami.io/bind-time"
"""Unix seconds."""
PHASE_ALLOCATING: Final = "allocating"
PHASE_SUCCESS: Final = "success"

# On the pods of HAMi's scheduler
SCHEDULER_ROLE: Final = "hami.io/scheduler-role"
"""A label; the one that leads has the value `leader`."""

# On pods, written by users
NODE_POLICY: Final = "hami.io/node-scheduler-policy"
DEVICE_POLICY: Final = "hami.io/gpu-scheduler-policy"
SCORING_WEIGHTS: Final = "hami.io/device-scoring-weights"
USE_TYPE: Final = "nvidia.com/use-gputype"
NO_USE_TYPE: Final = "nvidia.com/nouse-gputype"
USE_UUID: Final = "nvidia.com/use-gpuuuid"
NO_USE_UUID: Final = "nvidia.com/nouse-gpuuuid"
NUMA_BIND: Final = "nvidia.com/numa-bind"
SHARING_MODE: Final = "nvidia.com/vgpu-mode"

# Labels of pods that are not HAMi's own
POD_GROUP: Final = "scheduling.x-k8s.io/pod-group"

# Resources of containers
GPU_COUNT: Final = "nvidia.com/gpu"
GPU_MEMORY: Final = "nvidia.com/gpumem"
GPU_MEMORY_PERCENT: Final = "nvidia.com/gpumem-percentage"
GPU_CORES: Final = "nvidia.com/gpucores"
GPU_PRIORITY: Final = "nvidia.com/priority"
