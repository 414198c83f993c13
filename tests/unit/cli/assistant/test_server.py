"""The arguments that tools take."""

from typing import Any, cast

import pytest
from mcp.server.mcpserver.exceptions import ToolError

from cli.assistant.callers import Callers
from cli.assistant.server import create_server


class _NoCaller:
    """No tool of these tests gets as far as asking."""


@pytest.fixture
def server() -> Any:
    return create_server(cast("Callers", _NoCaller()))


async def test_a_misspelt_argument_is_refused_instead_of_left_out(server: Any) -> None:
    with pytest.raises(ToolError, match="Extra inputs are not permitted"):
        await server.call_tool("search", {"text": "lock"})


async def test_the_schema_of_each_tool_says_that_it_takes_no_other_arguments(server: Any) -> None:
    tools = await server.list_tools()
    assert len(tools) == 14
    assert all(tool.input_schema["additionalProperties"] is False for tool in tools)
