"""An MCP server: the answers of the API as tools for assistants, over stdio or streamable HTTP. It only reads.

================  ==================================================================================
command           ``schedulerlog mcp``
server            the server with its tools and their annotations
tools             the tools: each asks the API, as its caller may, and answers briefly
texts             pure: the short texts of the API's answers
answers           pure: what a tool returns, a short text with the ids of its evidence
callers           whose rights a question has: those of the kubeconfig, or of the caller's bearer token
http_server       the server over HTTP
bounded_calls     what it takes of all callers together
================  ==================================================================================
"""
