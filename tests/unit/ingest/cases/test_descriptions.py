"""Descriptions and tables of events as kubectl prints them, read back as the objects that they describe."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from ingest.cases.answers import diagnose_pods
from ingest.cases.descriptions import has_descriptions, parse_descriptions
from ingest.cases.read_case import list_pod_names, read_case

WRITTEN = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)
POD = """\
Name:             infer-0
Namespace:        ml
Priority:         0
Service Account:  default
Node:             <none>
Labels:           app=infer
                  tier=gpu
Annotations:      example.com/note: a:b
Status:           Pending
IP:
Controlled By:    ReplicaSet/infer
Containers:
  main:
    Image:      example.com/infer:1
    Port:       <none>
    Limits:
      cpu:             2
      nvidia.com/gpu:  4
    Requests:
      cpu:             1
      nvidia.com/gpu:  4
    Environment:       <none>
Conditions:
  Type           Status
  PodScheduled   False
Volumes:
  data:
    Type:       PersistentVolumeClaim (a reference to a PersistentVolumeClaim in the same namespace)
    ClaimName:  models
    ReadOnly:   false
QoS Class:       Burstable
Node-Selectors:  pool=gpu
Tolerations:     dedicated=ml:NoSchedule
                 node.kubernetes.io/not-ready:NoExecute op=Exists for 300s
Events:
  Type     Reason            Age                  From               Message
  ----     ------            ----                 ----               -------
  Warning  FailedScheduling  2m (x3 over 10m)     default-scheduler  0/2 nodes are available: 2 Insufficient cpu.
"""
NODE = """\
Name:               n1
Roles:              <none>
Labels:             pool=gpu
Annotations:        <none>
CreationTimestamp:  Thu, 01 Jan 2026 10:00:00 +0000
Taints:             dedicated=ml:NoSchedule
Unschedulable:      true
Conditions:
  Type   Status  LastHeartbeatTime                 LastTransitionTime                Reason        Message
  ----   ------  -----------------                 ------------------                ------        -------
  Ready  True    Thu, 01 Jan 2026 10:00:00 +0000   Thu, 01 Jan 2026 10:00:00 +0000   KubeletReady  kubelet is ready
Capacity:
  cpu:             8
  nvidia.com/gpu:  2
Allocatable:
  cpu:             8
  nvidia.com/gpu:  1
Non-terminated Pods:          (1 in total)
  Namespace                   Name          CPU Requests  CPU Limits  Memory Requests  Memory Limits  Age
  ---------                   ----          ------------  ----------  ---------------  -------------  ---
  kube-system                 proxy-x       100m (1%)     0 (0%)      50Mi (0%)        0 (0%)         3d
Events:                       <none>
"""
TABLE = """\
NAMESPACE   LAST SEEN   TYPE      REASON             OBJECT        MESSAGE
ml          5m          Warning   FailedScheduling   pod/infer-0   0/2 nodes are available: 2 Insufficient cpu.
ml          1h          Normal    Pulled             pod/other     Container image already present
"""


def test_a_description_of_a_pod_is_read_back() -> None:
    assert has_descriptions(POD.encode())
    pod, event = parse_descriptions(POD, WRITTEN)
    assert pod["metadata"]["labels"] == {"app": "infer", "tier": "gpu"}
    assert pod["metadata"]["annotations"] == {"example.com/note": "a:b"}
    assert pod["metadata"]["ownerReferences"] == [{"kind": "ReplicaSet", "name": "infer", "controller": True}]
    (container,) = pod["spec"]["containers"]
    assert container["resources"]["limits"] == {"cpu": "2", "nvidia.com/gpu": "4"}
    assert container["resources"]["requests"] == {"cpu": "1", "nvidia.com/gpu": "4"}
    assert "nodeName" not in pod["spec"]
    assert pod["spec"]["nodeSelector"] == {"pool": "gpu"}
    assert pod["spec"]["volumes"] == [{"name": "data", "persistentVolumeClaim": {"claimName": "models"}}]
    assert pod["spec"]["tolerations"] == [
        {"key": "dedicated", "operator": "Equal", "value": "ml", "effect": "NoSchedule"},
        {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"},
    ]
    assert pod["status"]["phase"] == "Pending"
    assert event["message"] == "0/2 nodes are available: 2 Insufficient cpu."
    assert (event["count"], event["firstTimestamp"]) == (3, "2026-01-02T11:50:00Z")
    assert event["lastTimestamp"] == "2026-01-02T11:58:00Z"


def test_a_description_of_a_node_is_read_back_with_its_pods() -> None:
    node, pod = parse_descriptions(NODE, WRITTEN)
    assert node["spec"] == {
        "taints": [{"key": "dedicated", "value": "ml", "effect": "NoSchedule"}],
        "unschedulable": True,
    }
    assert node["status"]["capacity"]["nvidia.com/gpu"] == "2"
    assert node["status"]["allocatable"]["nvidia.com/gpu"] == "1"
    assert node["status"]["conditions"] == [{"type": "Ready", "status": "True"}]
    assert (pod["metadata"]["name"], pod["spec"]["nodeName"]) == ("proxy-x", "n1")
    assert pod["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "100m", "memory": "50Mi"}


def test_several_descriptions_follow_each_other() -> None:
    kinds = [entry["kind"] for entry in parse_descriptions(f"{POD}\n\n{NODE}", WRITTEN)]
    assert kinds == ["Pod", "Event", "Node", "Pod"]


def test_a_table_of_events_is_read_by_its_columns() -> None:
    assert has_descriptions(TABLE.encode())
    event, other = parse_descriptions(TABLE, WRITTEN)
    assert event["involvedObject"] == {"kind": "Pod", "namespace": "ml", "name": "infer-0"}
    assert event["message"] == "0/2 nodes are available: 2 Insufficient cpu."
    assert event["lastTimestamp"] == "2026-01-02T11:55:00Z"
    assert other["reason"] == "Pulled"
    # The usual table does not say who writes; the reason does.
    assert event["source"] == {"component": "the scheduler"}


@pytest.mark.parametrize("text", ["", "I1126 10:00:00.000000 1 a.go:1] Name: x\n", "Name: x\n", "kind: Pod\n"])
def test_other_texts_are_no_descriptions(text: str) -> None:
    assert not has_descriptions(text.encode())


BARE_NODE = """\
Name:               gpu-1
Roles:              <none>
Capacity:
  cpu:     8
Allocatable:
  cpu:     8
Non-terminated Pods:          (1 in total)
  Namespace                   Name    CPU Requests  CPU Limits  Memory Requests  Memory Limits  Age
  ---------                   ----    ------------  ----------  ---------------  -------------  ---
  ml                          a       0 (0%)        0 (0%)      0 (0%)           0 (0%)         1m
"""


def test_a_description_without_any_time_is_answered(tmp_path: Path) -> None:
    (tmp_path / "node.txt").write_text(BARE_NODE)
    case = read_case([tmp_path / "node.txt"])
    assert case.ended_at is None
    (answer,) = diagnose_pods(case, list_pod_names(case))
    assert (answer.diagnosis.name, answer.node) == ("a", "gpu-1")
