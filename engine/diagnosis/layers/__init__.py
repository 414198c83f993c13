"""Layers of a pod's way from its Job to its kubelet, each asked for what it holds back.

A waiting pod is most often not waiting for a device. Each module knows one layer, and finds its obstacles in the
objects of the cluster, in what schedulers wrote on the pod, and in events:

- ``gates``, ``kueue``, ``kueue_workloads``, ``kueue_messages``, ``kueue_quota``, ``kueue_checks``: scheduling gates,
  Kueue's Workload behind them, the words about it, its quota, its admission checks
- ``queues``, ``yunikorn``, ``volcano_queues``: quotas of Koordinator, the capacity plugin, KAI, YuniKorn and Volcano
- ``gangs``, ``group_members``, ``pod_makers``: pods that start only together, and what makes them
- ``kai_pools``: nodes of a pool of KAI
- ``webhooks``: webhooks of HAMi and Kueue that were not called for the pod
- ``volumes``, ``device_claims``: PersistentVolumeClaims and ResourceClaims
- ``components``: pods of schedulers and device plugins that do not run
- ``slurm``, ``chosen_nodes``, ``reservations``: failures after a node was chosen
- ``autoscalers``, ``scale_ups``: whether a node is coming, or has come and does not help
- ``kubelet``, ``evictions``: pods that their node refused, or that lost their place on it

``questions`` asks them in order; ``node_reasons`` reads the nodes' reasons in a text;
``statements`` collects the texts about a pod, and reads amounts in them.
``engine.diagnosis.tree`` asks nothing about nodes where a layer before the scheduler explains the wait.
"""
