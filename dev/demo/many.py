"""Answers about more than one pod: a Job whose pods are tried one after the other, and the plan of a node's drain."""

import uuid
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

import yaml

from dev.demo.kube_scheduler import Pod
from dev.demo.reader import Reader, until
from dev.demo.stack import Stack
from schemas.json_types import Json

JOB: Final = "sweep"
DRAINED_NODE: Final = "node2"
_FILE: Final = Path(__file__).parents[2] / "examples" / "jobs" / f"{JOB}.yaml"


def try_job(running: Stack) -> Json:
    """Let each pod of the Job be tried once, and return the answer about the Job."""
    job: Json = yaml.safe_load(_FILE.read_text())
    running.api_server.put_object(job | {"status": {"active": job["spec"]["parallelism"]}})
    nodes = [node["metadata"]["name"] for node in running.cluster.read_objects() if node["kind"] == "Node"]
    namespace = job["metadata"]["namespace"]
    for pod in iterate_pods(job):
        node = running.kube_scheduler.schedule_once(pod, nodes)
        until(
            partial(running.reader.get_status, f"{namespace}/{pod['metadata']['name']}"),
            "succeeded" if node else "failed",
        )
    answer: Json = running.reader.get(f"/api/v1/namespaces/{namespace}/workloads/job/{JOB}")
    return answer


def iterate_pods(job: Json) -> Iterator[Pod]:
    """Make the pods of a Job, as its controller does."""
    metadata, template = job["metadata"], job["spec"]["template"]
    owner = {"apiVersion": job["apiVersion"], "kind": "Job", "name": metadata["name"], "uid": metadata["uid"]}
    for index in range(job["spec"]["parallelism"]):
        name = f"{metadata['name']}-{index}"
        uid = str(uuid.uuid5(uuid.UUID(metadata["uid"]), name))
        identity = {"namespace": metadata["namespace"], "name": name, "uid": uid}
        references = [owner | {"controller": True}]
        yield {
            "apiVersion": "v1", "kind": "Pod", "spec": template["spec"],
            "metadata": template["metadata"] | identity | {"ownerReferences": references},
        }  # fmt: skip


def plan_drain(reader: Reader) -> Json:
    """Read the plan of the node's drain."""
    return reader.get(f"/api/v1/nodes/{DRAINED_NODE}/drain")
