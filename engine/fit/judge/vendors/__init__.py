"""Rules of single vendors, as HAMi has them: which devices of a node a container gets. Pure.

    fits          which rules judge which family
    asking        the request that rules judge, and steps that several share
    ascend        soft split, network groups, pairs of Ascend910C
    metax         whole devices (also Moore Threads'), and shared ones: quality of service, classes, links
    kunlun        Kunlun's wings of four devices, and their parts (XPU)
    enflame       profiles of Enflame's devices, and whole ones (GCU)
    amd           AMD's memory, and percentages of its compute units
    vastai        Biren's and Vastai's whole devices, and the dies of a board
    neuron        AWS Neuron's rings of devices, and their cores
    node_scores   what vendors add to the score of a node
    vendor_state  devices that containers took so far

Hygon, Cambricon and Iluvatar have NVIDIA's checks and are judged with them, all nodes at once
(`engine/fit/judge/checks/fit.py`). The others are judged node by node; equal nodes share a result.
"""
