"""Words that name kinds of workloads on a command line, the kinds, and subjects of questions as people write them.

A command that needs no engine reads them.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

JOB: Final = "Job.batch"
VOLCANO_JOB: Final = "Job.batch.volcano.sh"
CRON_JOB: Final = "CronJob.batch"
DEPLOYMENT: Final = "Deployment.apps"
REPLICA_SET: Final = "ReplicaSet.apps"
KUEUE_WORKLOAD: Final = "Workload.kueue.x-k8s.io"
VOLCANO_GROUP: Final = "PodGroup.scheduling.volcano.sh"
_JOB_SET: Final = "JobSet.jobset.x-k8s.io"
_LEADER_WORKER_SET: Final = "LeaderWorkerSet.leaderworkerset.x-k8s.io"
_RAY_JOB: Final = "RayJob.ray.io"
_RAY_CLUSTER: Final = "RayCluster.ray.io"
_STATEFUL_SET: Final = "StatefulSet.apps"
CHILDREN: Final[Mapping[str, tuple[str, ...]]] = {
    DEPLOYMENT: (REPLICA_SET,),
    CRON_JOB: (JOB,),
    _JOB_SET: (JOB,),
    _LEADER_WORKER_SET: (_STATEFUL_SET,),
    _RAY_JOB: (_RAY_CLUSTER, JOB),
    "RayService.ray.io": (_RAY_CLUSTER,),
    "TrainJob.trainer.kubeflow.org": (_JOB_SET, JOB),
    "AppWrapper.workload.codeflare.dev": (DEPLOYMENT, REPLICA_SET, JOB, _JOB_SET, _RAY_JOB, _RAY_CLUSTER),
}
"""Kinds that stand between a workload and its pods."""
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
    "statefulset": (_STATEFUL_SET,),
    "sts": (_STATEFUL_SET,),
    "daemonset": ("DaemonSet.apps",),
    "ds": ("DaemonSet.apps",),
    "replicationcontroller": ("ReplicationController",),
    "rc": ("ReplicationController",),
    "workload": (KUEUE_WORKLOAD, "Workload.scheduling.k8s.io"),
    "wl": (KUEUE_WORKLOAD,),
    "podgroup": GROUPS,
    "pg": GROUPS,
    "jobset": (_JOB_SET,),
    "leaderworkerset": (_LEADER_WORKER_SET,),
    "lws": (_LEADER_WORKER_SET,),
    "appwrapper": ("AppWrapper.workload.codeflare.dev",),
    "workflow": ("Workflow.argoproj.io",),
    "wf": ("Workflow.argoproj.io",),
    "sparkapplication": ("SparkApplication.sparkoperator.k8s.io",),
    "sparkapp": ("SparkApplication.sparkoperator.k8s.io",),
    "rayjob": (_RAY_JOB,),
    "rayservice": ("RayService.ray.io",),
    "raycluster": (_RAY_CLUSTER,),
    "pytorchjob": ("PyTorchJob.kubeflow.org",),
    "mpijob": ("MPIJob.kubeflow.org",),
    "tfjob": ("TFJob.kubeflow.org",),
    "xgboostjob": ("XGBoostJob.kubeflow.org",),
    "paddlejob": ("PaddleJob.kubeflow.org",),
    "jaxjob": ("JAXJob.kubeflow.org",),
    "trainjob": ("TrainJob.trainer.kubeflow.org",),
}
"""Kinds by the words that name them on a command line; ``kubectl`` has the same short names."""
_POD_WORDS: Final = ("pod", "pods", "po")


def parse_word(word: str) -> tuple[str, ...]:
    """Parse the word that names a kind, also in the plural or with a group; empty for an unknown word."""
    singular = word.lower().partition(".")[0]
    named = WORDS.get(singular) or WORDS.get(singular.removesuffix("s")) or ()
    group = word.partition(".")[2].lower()
    return tuple(kind for kind in named if not group or kind.partition(".")[2].startswith(group))


class Subject(NamedTuple):
    """A pod or a workload."""

    namespace: str
    """Empty if the words name none."""
    word: str
    """Word that names the kind of a workload; empty for a pod."""
    name: str


def parse_subject(text: str) -> Subject:
    """Parse the words of a subject: what stands before the name is a kind if it is one, else a namespace."""
    before, _, name = text.rpartition("/")
    namespace, _, word = before.rpartition("/")
    if word in _POD_WORDS:
        return Subject(namespace, "", name)
    if parse_word(word):
        return Subject(namespace, word, name)
    return Subject(before, "", name)
