"""Replaced names: one replacement everywhere, and nothing of what must not leave the house."""

import base64
import json

from engine.cases.anonymous_objects import replace_names
from schemas.json_types import Json

UID = "0b3f1f52-94c1-4ed0-8a5e-b7cbd2f4a111"
POD: Json = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "llama-0",
        "namespace": "secret-team",
        "uid": UID,
        "annotations": {"nvidia.com/use-gpuuuid": f"GPU-{UID}", "example.com/owner": "alice@example.com"},
        "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "llama", "uid": UID}],
    },
    "spec": {
        "nodeName": "rack7.example.com",
        "containers": [
            {
                "name": "trainer",
                "image": "registry.example.com/team/llama:1",
                "env": [{"name": "TOKEN", "value": "hunter2"}],
                "args": ["--password=hunter3"],
                "resources": {"limits": {"nvidia.com/gpu": "1"}},
            }
        ],
    },
    "status": {"podIP": "10.1.2.3", "message": "node rack7.example.com (192.168.7.9) refused secret-team/llama-0"},
}
EVENT: Json = {
    "apiVersion": "v1",
    "kind": "Event",
    "metadata": {"name": "llama-0.17c", "namespace": "secret-team"},
    "involvedObject": {"kind": "Pod", "name": "llama-0", "namespace": "secret-team", "uid": UID},
    "message": 'Pulling image "registry.example.com/team/llama:1": 1 Insufficient nvidia.com/gpu.',
}
SECRET: Json = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token"}, "data": {"k": "aHVudGVyNA=="}}


def test_a_name_has_one_replacement_everywhere() -> None:
    pod, event = replace_names([POD, EVENT])
    assert pod["metadata"]["name"] == event["involvedObject"]["name"] == "pod-1"
    assert event["metadata"]["name"] == "pod-1.17c"
    assert pod["metadata"]["namespace"] == event["metadata"]["namespace"] == "namespace-1"
    assert pod["metadata"]["ownerReferences"][0]["name"] == "job-1"
    assert pod["spec"]["nodeName"] == "node-1"
    assert pod["status"]["message"] == "node node-1 (10.0.0.1) refused namespace-1/pod-1"
    assert pod["metadata"]["uid"] == event["involvedObject"]["uid"]
    # A device keeps its form: what reads it recognises it.
    assert pod["metadata"]["annotations"]["nvidia.com/use-gpuuuid"] == f"GPU-{pod['metadata']['uid']}"
    assert event["message"] == 'Pulling image "image-1": 1 Insufficient nvidia.com/gpu.'
    assert pod["spec"]["containers"][0]["resources"] == {"limits": {"nvidia.com/gpu": "1"}}


def test_nothing_that_is_confidential_is_left() -> None:
    text = json.dumps(replace_names([POD, EVENT, SECRET, {"kind": "List", "items": [SECRET]}]))
    for word in ("llama", "secret-team", "rack7", "registry", "hunter", "alice", UID, "192.168", "10.1.2.3", "aHVud",
                 "Secret"):  # fmt: skip
        assert word not in text, word


def test_names_of_components_are_not_replaced() -> None:
    pod = {**POD, "metadata": {"name": "hami-scheduler", "namespace": "kube-system"}}
    (replaced,) = replace_names([pod])
    assert replaced["metadata"] == {"name": "hami-scheduler", "namespace": "kube-system"}
    assert (replaced["apiVersion"], replaced["kind"]) == ("v1", "Pod")


def test_an_image_that_is_a_short_word_is_not_replaced_within_words() -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "direct", "namespace": "inside"},
           "spec": {"containers": [{"name": "c", "image": "i"}]}}  # fmt: skip
    event = {**EVENT, "message": 'Pulling image "i": insufficient quota of inside'}
    replaced, notice = replace_names([pod, event])
    assert replaced["spec"]["containers"][0]["image"] == "image-1"
    assert notice["message"] == 'Pulling image "image-1": insufficient quota of namespace-1'


def test_names_in_encoded_texts_short_names_of_nodes_and_addresses_of_both_families_are_replaced() -> None:
    encoded = base64.b64encode(b"bound llama-0 to rack7.example.com").decode()
    pod = {
        **POD,
        "spec": {
            **POD["spec"],
            "hostname": "alpha-host",
            "volumes": [{"persistentVolumeClaim": {"claimName": "corpus"}}],
        },
        "status": {"message": f"rack7 answered from 2001:db8::7:1 and fe80:0:0:0:0:0:0:9 about corpus: {encoded}"},
    }
    (replaced,) = replace_names([pod])
    words = replaced["status"]["message"].split()
    assert words[:7] == ["node-1", "answered", "from", "fd00::1", "and", "fd00::2", "about"]
    assert base64.b64decode(words[-1]) == b"bound pod-1 to node-1"
    for word in ("rack7", "alpha-host", "corpus", "2001:db8", "fe80"):
        assert word not in json.dumps(replaced)


def test_times_and_addresses_of_devices_are_no_addresses_of_a_network() -> None:
    message = "0000:3b:00.0 failed at 10:11:12, 11:12:13:14"
    (event,) = replace_names([{**EVENT, "message": message}])
    assert event["message"] == message


def test_a_name_at_the_beginning_of_a_longer_one_is_replaced() -> None:
    """Pods that are gone have no object, and are called after the object that made them."""
    (_, event) = replace_names([POD, {**EVENT, "message": "llama-7 was deleted, secret-team-quota is used up"}])
    assert event["message"] == "job-1-7 was deleted, namespace-1-quota is used up"
