"""The list of nodes from objects of a live cluster or a file, with the pools of the setting that the API reads too."""

from datetime import datetime

from cli.client.problems import Problem, WrongRequest
from engine.cases.node_answers import CaseNodes
from engine.snapshot.case_objects import CaseObjects
from engine.summaries.node_pools import explain_unknown_pool, parse_pools
from runtime.errors import SettingError
from runtime.settings.node_pools import PoolSettings
from runtime.settings.settings import read
from schemas.json_types import Json


def list_nodes(objects: CaseObjects, now: datetime, pool: str) -> Json | Problem:
    """List all nodes, or those of a pool, as the API does. Pools are those of the environment, then those of labels."""
    try:
        nodes = CaseNodes(objects, now, parse_pools(read(PoolSettings).node_pools))
    except SettingError as error:
        return WrongRequest(str(error))
    if pool and pool not in (pools := nodes.list_pools()):
        return WrongRequest(*explain_unknown_pool(pool, pools))
    return nodes.list_nodes(pool).model_dump(mode="json", by_alias=True)
