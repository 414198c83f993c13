"""What a Kubernetes cluster itself says about scheduling: events, conditions of pods and nodes, annotations of nodes.

    object ── pods, nodes ──▶ observations
    event ── happenings ──▶ Happening ── gather ──▶ attempts

It works with any scheduler that says why in an event: kube-scheduler (with extenders), HAMi, KAI, Volcano, Koordinator.
"""

from ingest.kube.reader import KubeEvents

__all__ = ["KubeEvents"]
