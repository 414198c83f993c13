"""Alerts for callers with different rights."""

from tests.support.builders.alerts import an_alert
from tests.support.fakes.reviews import Grant
from tests.support.harness.guarded_api import Guarded

PATH = "/api/v1/alerts"


async def test_a_tenant_sees_its_namespace_and_no_node(api: Guarded) -> None:
    api.publish(
        an_alert("Mine", 1, summary="llm/train-0 waits for a lock that other/secret holds"),
        an_alert("Theirs", 2, labels={"namespace": "other", "pod": "secret"}),
        an_alert("Node", 3, labels={"node": "node1"}, summary="node1 is broken"),
    )

    async def list_rules(*grants: Grant, query: str = "") -> list[str]:
        header = api.reviews.build_header(grants[0].user, *grants)
        return [alert["rule"] for alert in (await api.client.get(PATH + query, headers=header)).json()["items"]]

    lead, everywhere = Grant("lead", "list", "pods", "llm"), Grant("all", "list", "pods")
    assert await list_rules(lead, query="?namespace=llm") == ["Mine"]
    assert await list_rules(everywhere) == ["Mine", "Theirs"]
    admin = Grant("admin", "list", "pods"), Grant("admin", "list", "nodes")
    assert await list_rules(*admin) == ["Mine", "Theirs", "Node"]
    answer = await api.client.get(PATH + "?namespace=llm", headers=api.reviews.build_header("lead", lead))
    assert "secret" not in answer.text
