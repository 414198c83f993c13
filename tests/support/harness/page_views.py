"""The pages that a browser visits, on what ``page_records`` indexes."""

from typing import Final

from tests.support.harness.page_records import HOSTILE, LARGE, PLACED, REFUSED, build_earlier, get_refused_attempt

VIEWS: Final = {
    "home": "/ui",
    "pending": "/ui/pending",
    "pending by pod": "/ui/pending?by=pod",
    "changes for many": "/ui/pending/changes",
    "findings": "/ui/findings",
    "trends": "/ui/trends",
    "report": "/ui/report",
    "search": "/ui/search",
    "search in Chinese": "/ui/search?lang=zh",
    "nothing found": "/ui/search?q=nothing",
    "nodes": "/ui/nodes",
    "node": "/ui/nodes/node1?range=7d",
    "node that is held": "/ui/nodes/node9?range=6h",
    "simulate": "/ui/simulate",
    "simulated pod": "/ui/simulate?namespace={}&pod={}".format(*REFUSED.split("/")),
    "simulated pod in Chinese": "/ui/simulate?namespace={}&pod={}&lang=zh".format(*PLACED.split("/")),
    "about": "/ui/about",
    "refused pod": f"/ui/pods/{REFUSED}",
    "refused pod in Chinese": f"/ui/pods/{REFUSED}?lang=zh",
    "placed pod": f"/ui/pods/{PLACED}",
    "5,000 nodes": f"/ui/pods/{LARGE}",
    "changes": f"/ui/pods/{REFUSED}/changes",
    "history": f"/ui/pods/{REFUSED}/history",
    "records": f"/ui/pods/{PLACED}/records",
    "scores": f"/ui/pods/{PLACED}/scores",
    "comparison": f"/ui/pods/{REFUSED}/comparison?attempt={build_earlier().attempt_id}&with={get_refused_attempt()}",
    "one group": f"/ui/pods/{LARGE}/group?group=0.0.1",
    "hostile names": f"/ui/pods/{HOSTILE}",
    "pending in Chinese": "/ui/pending?lang=zh",
    "node in Chinese": "/ui/nodes/node9?range=6h&lang=zh",
    "trends in Chinese": "/ui/trends?lang=zh",
    "report in Chinese": "/ui/report?lang=zh",
    "about in Chinese": "/ui/about?lang=zh",
    "embedded": f"/embed/pod/{REFUSED}",
}
