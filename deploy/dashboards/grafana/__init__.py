"""Dashboards of Grafana, made from code.

==============  =====================================================================================
``panels``      a panel, rows of panels on the grid, a whole dashboard
``operating``   operating schedulerlog: from the spool to the API
``scheduling``  GPU scheduling: decisions, reasons, waits, and HAMi's metrics of devices
==============  =====================================================================================
"""

import orjson

from deploy.dashboards.grafana.operating import operating
from deploy.dashboards.grafana.scheduling import scheduling


def files() -> dict[str, str]:
    """Name to content of a JSON file for each dashboard."""
    found = (operating(), scheduling())
    return {f"{model['uid']}.json": orjson.dumps(model, option=orjson.OPT_INDENT_2).decode() + "\n" for model in found}
