"""Findings about devices of claims in both languages."""

import re

import pytest

from engine.claims.cel.parts import FailedPart
from engine.claims.cel.selector import Truth
from engine.claims.findings import STATEMENTS, DeviceFinding, SelectorFailure
from engine.claims.judgement import DeviceReason
from engine.diagnosis.claim_devices import collect_request_devices
from engine.diagnosis.claim_findings import STATEMENTS_IN_CHINESE, write_finding
from engine.diagnosis.outcome import DeviceExample
from schemas.answers.diagnosis import InBothLanguages
from tests.support.builders.claims import (
    JudgedClaims,
    a_claim,
    a_class,
    a_device,
    a_pod_with,
    a_request,
    a_slice,
    an_allocation,
    judge_claims,
)
from tests.support.builders.cluster import Object, a_node

CHINESE = re.compile("[\u4e00-\u9fff]")


def list_examples(judged: JudgedClaims) -> dict[str, DeviceExample]:
    """List the examples of all reasons by the name of the device."""
    tallies = collect_request_devices(judged.judge, [info.node for info in judged.snapshot.nodes.values()])
    reasons = [of_reason for tally in tallies.values() for of_reason in tally.list_reasons()]
    return {example.device.rpartition("/")[2]: example for of_reason in reasons for example in of_reason.examples}


def write_selector(expression: str) -> InBothLanguages:
    """Write the finding about a device with 40Gi of memory that does not meet a selector."""
    judged = judge_claims(a_node(), a_class(), a_slice(a_device("a", "40Gi")), a_claim(a_request(expression)))
    (finding,) = judged.explain_request().devices[0].findings
    return write_finding(finding)


@pytest.mark.parametrize(
    ("expression", "chinese"),
    [
        ("device.capacity['gpu.nvidia.com'].memory", "无法编译：结果必须是 bool，而不是"),
        ("device.memory == 1", "无法编译：第 1 行第 7 列：没有字段 memory"),
        ("devic == 1", "无法编译：第 1 行第 1 列：未声明的名称 devic"),
        ("device.driver == 1", "无法编译：第 1 行第 15 列：函数 _==_ 不接受类型 (string, int)"),
        ("device.driver ==", "无法编译：第 1 行第 17 列：语法错误："),
        ("device.capacity['gpu.nvidia.com'].cores.compareTo(quantity('1')) > 0", "求值出错："),
        ("1 / 0 == 1", "除数为零"),
        ("device.attributes['gpu.nvidia.com'].model == 'x'", "未设置 model"),
        ("quantity('many').compareTo(quantity('1')) > 0", "数量的格式无效"),
    ],
)
def test_errors_of_selectors_are_in_chinese(expression: str, chinese: str) -> None:
    text = write_selector(expression)
    assert chinese in text.zh
    assert text.zh.startswith("声明 default/c0 的选择器 #0")
    assert not CHINESE.search(text.en)


def a_partitioned_cluster(*more: Object) -> JudgedClaims:
    """Judge a claim for one of two partitions of 40Gi of a device of 60Gi; another claim has the first."""
    consuming = [{"counterSet": "gpu", "counters": {"memory": {"value": "40Gi"}}}]
    devices = a_slice(a_device("a", consumesCounters=consuming), a_device("b", consumesCounters=consuming))
    counters = a_slice(name="counters", sharedCounters=[{"name": "gpu", "counters": {"memory": {"value": "60Gi"}}}])
    for slice_ in (devices, counters):
        slice_["spec"]["pool"]["resourceSliceCount"] = 2
    held = a_claim(name="held", status=an_allocation("a", pods=["train-0"]))
    return judge_claims(a_node(), a_class(), devices, counters, a_claim(), held, *more)


def test_a_counter_that_is_used_up_names_the_claim_of_the_other_partition() -> None:
    example = list_examples(a_partitioned_cluster())["b"]
    assert example.text.en == (
        "memory of gpu: 20Gi left, the device needs 40Gi; used by claim default/held, reserved for pod train-0"
    )
    assert example.text.zh == "gpu 的 memory：剩余 20Gi，设备需要 40Gi；被声明 default/held 占用，预留给 train-0"


def test_claims_of_other_pools_are_not_named() -> None:
    others = a_slice(a_device("a"), node="n2", name="others")
    elsewhere = a_claim(name="elsewhere", status=an_allocation("a", node="n2", pods=["other-0"]))
    example = list_examples(a_partitioned_cluster(a_node("n2"), others, elsewhere))["b"]
    assert "elsewhere" not in example.text.en


def test_every_statement_is_in_both_languages() -> None:
    slice_, both = a_slice(a_device("a"), a_device("b")), a_pod_with("c0", "c1")
    slice_["spec"]["pool"]["resourceSliceCount"] = 2
    clusters = (
        judge_claims(a_node(), a_class(), slice_, a_claim()),
        judge_claims(a_node(), a_class(), a_slice(a_device("a")), a_claim(a_request(count=2))),
        judge_claims(a_node(), a_class(), a_slice(a_device("a")), a_claim(), a_claim(name="c1"), pod=both),
    )
    texts = [
        write_finding(finding)
        for judged in clusters
        for request in judged.explain().requests
        for device in request.devices
        for finding in device.findings
    ]
    assert len(texts) == 4
    assert all(CHINESE.search(text.zh) and not CHINESE.search(text.en) for text in texts)


@pytest.mark.parametrize("code", STATEMENTS)
def test_a_statement_has_the_same_values_in_both_languages(code: str) -> None:
    values = re.compile(r"\{\w+\}")
    assert sorted(values.findall(STATEMENTS[code])) == sorted(values.findall(STATEMENTS_IN_CHINESE[code]))


@pytest.mark.parametrize(
    ("part", "chinese"),
    [
        (FailedPart("m >= q", "memory", "40Gi", ">=", "80Gi"), "memory 为 40Gi，要求至少 80Gi"),
        (FailedPart("has(model)", "model", "is not set"), "model 未设置：has(model) 不成立"),
        (FailedPart("!has(model)", "model", "is set"), "model 已设置：!has(model) 不成立"),
        (FailedPart("healthy", "healthy", "false"), "healthy 为 false"),
        (FailedPart("!shared", "shared", "true"), "shared 为 true"),
        (FailedPart("f(model)", "model", "A100"), "model 为 A100：f(model) 不成立"),
        (FailedPart("1 == 2"), "1 == 2 不成立"),
        (
            FailedPart("a || b", alternatives=(FailedPart("a", "a", "false"), FailedPart("b", "b", "false"))),
            "a 为 false；或 b 为 false",
        ),
    ],
)
def test_each_form_of_a_failed_part_has_its_chinese_text(part: FailedPart, chinese: str) -> None:
    failure = SelectorFailure("claim ml/c: selector #1", part.text, (part,), truth=Truth.FALSE)
    text = write_finding(DeviceFinding(next(iter(DeviceReason)), "as the selector says", failure)).zh
    assert text == f"声明 ml/c 的选择器 #1：{chinese}"
