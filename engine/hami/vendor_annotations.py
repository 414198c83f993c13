"""Annotations that only one vendor's rules or device plugin read, and their values."""

from typing import Final

# Ascend
ASCEND_MODE: Final = "huawei.com/vnpu-mode"
ASCEND_SOFT: Final = "hami-core"
"""Devices are shared in software and not cut into templates."""
ASCEND_NODE_SOFT: Final = "hami-vnpu-core"
"""On nodes: whether they share devices in software."""
PREDICATE_TIME: Final = "predicate-time"

# Cambricon
MLU_ASSIGNED: Final = "CAMBRICON_DSMLU_ASSIGNED"
MLU_PROFILE: Final = "CAMBRICON_DSMLU_PROFILE"

# Metax
METAX_QOS: Final = "metax-tech.com/sgpu-qos-policy"
METAX_LINKS: Final = "metax-tech.com/sgpu-topology-aware"
METAX_CLASS: Final = "metax-tech.com/sgpu-app-class"
METAX_DEVICES: Final = "metax-tech.com/gpu-devices-allocated"
METAX_TIME: Final = "metax-tech.com/predicate-time"
METAX_LOSSES: Final = "metax-tech.com/gpu.topology.losses"
"""On nodes: by number of devices, what the node loses by giving them; read under binpack."""
METAX_SCORES: Final = "metax-tech.com/gpu.topology.scores"
"""On nodes: by number of devices, what the node loses by giving them; read under spread."""
QOS_POLICIES: Final = ("best-effort", "fixed-share", "burst-share")
ONLINE: Final = "online"
OFFLINE: Final = "offline"

# Moore Threads
MTHREADS_COUNT: Final = "mthreads.com/request-gpu-num"
MTHREADS_INDEX: Final = "mthreads.com/gpu-index"
MTHREADS_NODE: Final = "mthreads.com/predicate-node"
MTHREADS_TIME: Final = "mthreads.com/predicate-time"

# Kunlun
KUNLUN_INDEX: Final = "BAIDU_COM_DEVICE_IDX"
XPU_USE_UUID: Final = "hami.io/use-xpu-uuid"
XPU_NO_USE_UUID: Final = "hami.io/no-use-xpu-uuid"

# Enflame
ENFLAME_SIZE: Final = "enflame.com/gcu-request-size"
ENFLAME_ID: Final = "enflame.com/gcu-assigned-id"
ENFLAME_ASSIGNED: Final = "enflame.com/gcu-assigned"
ENFLAME_INDEX: Final = "enflame.com/gcu-assigned-index"
ENFLAME_MINOR: Final = "enflame.com/gcu-assigned-minor"
ENFLAME_TIME: Final = "enflame.com/gcu-assigned-time"
ENFLAME_CONTAINERS: Final = "assigned-containers"

# AWS Neuron
NEURON_IDS: Final = "AWS_NEURON_IDS"
NEURON_NODE: Final = "aws.amazon.com/predicate-node"
NEURON_TIME: Final = "NEURON_ALLOC_TIME"
NEURON_TYPE: Final = "NEURON_RESOURCE_TYPE"
NEURON_ALLOCATED: Final = "NEURON_ALLOCATED"
