"""The rules of single vendors, as HAMi has them: which devices of a node a container gets. Pure.

asking           what a vendor's rules are asked, and steps that several share
ascend           soft split, network groups, pairs of Ascend910C
metax            whole devices, and shared ones: quality of service, classes, links
one_device       Metax' whole devices and Moore Threads: later containers get the device of the first
kunlun           Kunlun's wings of four devices, and their parts (XPU)
enflame          profiles of Enflame's devices, and whole ones (GCU)
neuron           AWS Neuron's rings of devices, and their cores
fits             which rules judge which family
node_scores      what vendors add to the score of a node
vendor_state     devices that containers took so far, for the rules of single vendors

Hygon, Cambricon and Iluvatar have NVIDIA's checks and are judged with them, all nodes at once
(`engine/fit/judge/checks/fit.py`). The others are judged node by node; equal nodes share a result.
"""
