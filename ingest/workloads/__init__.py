"""Pods that wait on a live cluster, and workloads without pods: suspended or queued Jobs, owners of refused pods.

    object ── watches ──▶ object_store ─┬─ waiting ────▶ WorkloadObserved
                              │         └─ pod_waits ──▶ PodObserved with what holds the pod
                          pod_store

- ``watches``: watches the kinds that make pods or hold them back, where the cluster has them
- ``object_store``: their objects, reduced to what a diagnosis reads, and the owners of the pods that exist
- ``pod_store``: waiting pods and members of groups, with their events and the names that they mention
- ``waiting``: finds the workloads without pods, and observes why each waits and when it no longer does
- ``pod_waits``: looks at waiting pods again when what holds them may have changed, and observes what holds them now
"""
