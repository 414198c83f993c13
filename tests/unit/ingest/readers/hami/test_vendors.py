"""The lines that HAMi prints about other vendors' devices, by the format strings of its pkg/device/metax and ascend."""

from ingest.readers.hami.reader import HamiLog
from tests.support.builders.hami_lines import (
    a_line,
    list_devices,
    read,
    summarize_attempts,
    write_failure,
    write_start,
    write_unfit,
)

REQUEST = '{"Metax-SGPU":{"Nums":1,"Type":"Metax-SGPU","Memreq":16384,"MemPercentagereq":101,"Coresreq":40}}'

ASCEND = '{"Ascend910B3":{"Nums":1,"Type":"Ascend910B3","Memreq":16384,"MemPercentagereq":101,"Coresreq":0}}'
METAX = (
    write_start(),
    a_line(f'"Resource requirements collected" pod="ml/trainer" requests=[{REQUEST}]', seconds=0.01),
    a_line("node[metax-node] metax sdevice information: [GPU-mx-0 GPU-mx-1 GPU-mx-2]", seconds=0.012),
    a_line("pod[ml/trainer] container request[{1 Metax-SGPU 16384 101 40}] devices fit", seconds=0.013),
    a_line('"CardUnhealthy" pod="ml/trainer" device="GPU-mx-0" health=false', seconds=0.014),
    a_line("device[GPU-mx-1]: devQos [best-effort], reqQos [fixed-share]", seconds=0.015),
    a_line('"CardQosPolicyMismatch" pod="ml/trainer" device="GPU-mx-1" qos request="fixed-share"', seconds=0.015),
    a_line("device[GPU-mx-2]: devClass [online: 1, offline: 0], requestClass [online]", seconds=0.016),
    a_line('"CardAppClassMismatch" pod="ml/trainer" device="GPU-mx-2" appClass request="online"', seconds=0.016),
    a_line("pod[ml/trainer] fit devices Insufficient: request[1], fit[0]", seconds=0.017),
    write_unfit("metax-node", "1/3 CardAppClassMismatch, 1/3 CardQosPolicyMismatch, 1/3 CardUnhealthy"),
    write_failure(1),
)


def test_the_refusals_of_a_metax_sgpu_have_their_own_codes() -> None:
    reader = HamiLog()
    events = read(*METAX, reader=reader)
    assert {row.uuid: row.verdict for row in list_devices(events)} == {
        "GPU-mx-0": "CardUnhealthy",
        "GPU-mx-1": "CardQosPolicyMismatch",
        "GPU-mx-2": "CardAppClassMismatch",
    }
    (summary,) = summarize_attempts(events)
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
        write_start(),
        a_line(f'"Resource requirements collected" pod="ml/trainer" requests=[{ASCEND}]', seconds=0.01),
        a_line('"Node filtered: pod requests hami-core but node does not support it" pod="ml/trainer"', seconds=0.015),
        write_unfit("ascend-node", "1/8 ModeNotFit"),
        write_failure(1),
        reader=reader,
    )
    (summary,) = summarize_attempts(events)
    assert [refusal.counts for refusal in summary.refusals] == [{"ModeNotFit": 1}]
    assert reader.counts.lines["unknown"] == 0
