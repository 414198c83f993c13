"""Logs of HAMi's device plugin: the pods that it serves, by the annotations that it prints."""

from ingest.cases.answers import diagnose_pods
from ingest.cases.read_case import list_pod_names, read_case_text

LINE = (
    "I0405 06:07:08.000009    4242 server.go:380] Allocate pod name is llm/qwen-0, annotation is map[{phase} "
    "hami.io/bind-time:1712297228 hami.io/vgpu-devices-to-allocate:GPU-1a,NVIDIA,1000,30:GPU-2b,NVIDIA,1000,30:; "
    "hami.io/vgpu-node:gpu-7 note.example.com/text:two words hami.io/vgpu-time:1712297228]\n"
)


def test_a_pod_that_a_plugin_serves_has_its_node() -> None:
    text = LINE.format(phase="hami.io/bind-phase:allocating")
    case = read_case_text(text)
    (answer,) = diagnose_pods(case, list_pod_names(case))
    diagnosis = answer.diagnosis
    assert (diagnosis.namespace, diagnosis.name, diagnosis.state) == ("llm", "qwen-0", "placed")
    assert "gpu-7" in diagnosis.sentence.en


def test_annotations_end_where_the_next_key_begins() -> None:
    case = read_case_text(LINE.format(phase="hami.io/bind-phase:success"))
    annotations = case.objects.tables["Pod"]["llm", "qwen-0"]["metadata"]["annotations"]
    assert annotations == {
        "hami.io/bind-phase": "success",
        "hami.io/bind-time": "1712297228",
        "hami.io/vgpu-devices-to-allocate": "GPU-1a,NVIDIA,1000,30:GPU-2b,NVIDIA,1000,30:;",
        "hami.io/vgpu-node": "gpu-7",
        "note.example.com/text": "two words",
        "hami.io/vgpu-time": "1712297228",
    }
