"""An MCP server: the answers of the API as tools for assistants, over stdio or streamable HTTP. It only reads.

================  ==================================================================================
command           ``schedulerlog mcp``
server            the server with its tools and their annotations
tools             the tools: each asks the API with its caller's rights, and answers briefly
log_process       explanation of a log in a process of its own, with a budget of CPU time
texts             pure: the short texts of the API's answers
answers           pure: results of tools, a short text with the ids of its evidence
callers           rights of a question: the kubeconfig's, or those of the caller's bearer token
http_server       the server over HTTP
bounded_calls     limits on requests of all callers together
================  ==================================================================================
"""
