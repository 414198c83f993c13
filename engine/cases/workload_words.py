"""Words that name kinds of workloads on a command line, and the kinds. A command that needs no engine reads them."""

from collections.abc import Mapping
from typing import Final

JOB: Final = "Job.batch"
VOLCANO_JOB: Final = "Job.batch.volcano.sh"
CRON_JOB: Final = "CronJob.batch"
DEPLOYMENT: Final = "Deployment.apps"
REPLICA_SET: Final = "ReplicaSet.apps"
KUEUE_WORKLOAD: Final = "Workload.kueue.x-k8s.io"
VOLCANO_GROUP: Final = "PodGroup.scheduling.volcano.sh"
GROUPS: Final = (
    "PodGroup.scheduling.k8s.io",
    VOLCANO_GROUP,
    "PodGroup.scheduling.run.ai",
    "PodGroup.scheduling.x-k8s.io",
    "PodGroup.scheduling.sigs.k8s.io",
)
HOLDERS: Final = (KUEUE_WORKLOAD, "Workload.scheduling.k8s.io", *GROUPS)
"""Kinds that hold back the pods of others."""
WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "job": (JOB, VOLCANO_JOB),
    "vcjob": (VOLCANO_JOB,),
    "cronjob": (CRON_JOB,),
    "cj": (CRON_JOB,),
    "deployment": (DEPLOYMENT,),
    "deploy": (DEPLOYMENT,),
    "replicaset": (REPLICA_SET,),
    "rs": (REPLICA_SET,),
    "statefulset": ("StatefulSet.apps",),
    "sts": ("StatefulSet.apps",),
    "daemonset": ("DaemonSet.apps",),
    "ds": ("DaemonSet.apps",),
    "replicationcontroller": ("ReplicationController",),
    "rc": ("ReplicationController",),
    "workload": (KUEUE_WORKLOAD, "Workload.scheduling.k8s.io"),
    "wl": (KUEUE_WORKLOAD,),
    "podgroup": GROUPS,
    "pg": GROUPS,
    "jobset": ("JobSet.jobset.x-k8s.io",),
    "leaderworkerset": ("LeaderWorkerSet.leaderworkerset.x-k8s.io",),
    "lws": ("LeaderWorkerSet.leaderworkerset.x-k8s.io",),
    "appwrapper": ("AppWrapper.workload.codeflare.dev",),
    "rayjob": ("RayJob.ray.io",),
    "raycluster": ("RayCluster.ray.io",),
    "pytorchjob": ("PyTorchJob.kubeflow.org",),
    "mpijob": ("MPIJob.kubeflow.org",),
    "tfjob": ("TFJob.kubeflow.org",),
    "trainjob": ("TrainJob.trainer.kubeflow.org",),
}
"""Kinds by the words that name them on a command line; ``kubectl`` has the same short names."""


def parse_word(word: str) -> tuple[str, ...]:
    """Parse the word that names a kind, also in the plural or with a group; empty for an unknown word."""
    singular = word.lower().partition(".")[0]
    named = WORDS.get(singular) or WORDS.get(singular.removesuffix("s")) or ()
    group = word.partition(".")[2].lower()
    return tuple(kind for kind in named if not group or kind.partition(".")[2].startswith(group))
