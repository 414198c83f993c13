"""The lines that HAMi prints about other vendors' devices, by the format strings of its pkg/device/metax and ascend."""

from ingest.readers.hami.reader import HamiLog
from tests.support.builders.hami_lines import a_line, devices, failed, read, started, summaries, unfit

REQUEST = '{"Metax-SGPU":{"Nums":1,"Type":"Metax-SGPU","Memreq":16384,"MemPercentagereq":101,"Coresreq":40}}'

ASCEND = '{"Ascend910B3":{"Nums":1,"Type":"Ascend910B3","Memreq":16384,"MemPercentagereq":101,"Coresreq":0}}'
METAX = (
    started(),
    a_line(f'"Resource requirements collected" pod="ml/trainer" requests=[{REQUEST}]', at=0.01),
    a_line("node[metax-node] metax sdevice information: [GPU-mx-0 GPU-mx-1 GPU-mx-2]", at=0.012),
    a_line("pod[ml/trainer] container request[{1 Metax-SGPU 16384 101 40}] devices fit", at=0.013),
    a_line('"CardUnhealthy" pod="ml/trainer" device="GPU-mx-0" health=false', at=0.014),
    a_line("device[GPU-mx-1]: devQos [best-effort], reqQos [fixed-share]", at=0.015),
    a_line('"CardQosPolicyMismatch" pod="ml/trainer" device="GPU-mx-1" qos request="fixed-share"', at=0.015),
    a_line("device[GPU-mx-2]: devClass [online: 1, offline: 0], requestClass [online]", at=0.016),
    a_line('"CardAppClassMismatch" pod="ml/trainer" device="GPU-mx-2" appClass request="online"', at=0.016),
    a_line("pod[ml/trainer] fit devices Insufficient: request[1], fit[0]", at=0.017),
    unfit("metax-node", "1/3 CardAppClassMismatch, 1/3 CardQosPolicyMismatch, 1/3 CardUnhealthy"),
    failed(1),
)


def test_the_refusals_of_a_metax_sgpu_have_their_own_codes() -> None:
    reader = HamiLog()
    events = read(*METAX, reader=reader)
    assert {row.uuid: row.verdict for row in devices(events)} == {
        "GPU-mx-0": "CardUnhealthy",
        "GPU-mx-1": "CardQosPolicyMismatch",
        "GPU-mx-2": "CardAppClassMismatch",
    }
    (summary,) = summaries(events)
    (refusal,) = summary.refusals
    assert refusal.counts == {"CardAppClassMismatch": 1, "CardQosPolicyMismatch": 1, "CardUnhealthy": 1}
    assert refusal.devices == 3
    assert [(request.vendor, request.count, request.memory_mib) for request in summary.requests] == [
        ("Metax-SGPU", 1, 16384)
    ]
    assert reader.counts.lines["unknown"] == 0


def test_a_node_without_the_mode_that_an_ascend_pod_asks_for_is_refused_by_its_own_code() -> None:
    reader = HamiLog()
    events = read(
        started(),
        a_line(f'"Resource requirements collected" pod="ml/trainer" requests=[{ASCEND}]', at=0.01),
        a_line('"Node filtered: pod requests hami-core but node does not support it" pod="ml/trainer"', at=0.015),
        unfit("ascend-node", "1/8 ModeNotFit"),
        failed(1),
        reader=reader,
    )
    (summary,) = summaries(events)
    assert [refusal.counts for refusal in summary.refusals] == [{"ModeNotFit": 1}]
    assert reader.counts.lines["unknown"] == 0
