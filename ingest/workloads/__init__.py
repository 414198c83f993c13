"""Workloads without pods on a live cluster: suspended or queued Jobs, and owners whose pods are refused.

    object ── watches ──▶ object_store ── waiting ──▶ WorkloadObserved

- ``watches``: watches the kinds that make pods or hold them back, where the cluster has them
- ``object_store``: their objects, reduced to what a diagnosis reads, and the owners of the pods that exist
- ``waiting``: finds the workloads without pods, and observes why each waits and when it no longer does
"""
