"""HTTP without the answers themselves: parameters of requests, pages of lists, errors, and the API's description.

================  =====================================================================================
request_guard     ASGI middleware: refuses percent-encoded paths, counts requests and bounds their waits
request_spans     ASGI middleware: a span of each request, and of each request to OpenSearch below it
caller_wait       time limit of one caller's wait for OpenSearch, over all reads
json_protocol     uvicorn's HTTP parser, with JSON for bytes that are not HTTP, and with ready answers
cluster           the cluster that a request is about, and the paths of other answers about it
param_types       types of path and query parameters: names, times, numbers; the base of their models
query_params      models of the queries of most endpoints
pending_query     query of the list of pending pods
trends_query      queries of counts over time and of the report of failures
watch_query       parameters of a watch, as Kubernetes names them
endpoints         a handler as an endpoint: reads path, query and cluster
pagination        tokens that continue a list, and the headers that lead to its next page
sealing           encryption of continue tokens and positions of watches
tables            rows as CSV
errors            every error as JSON: the cause and the next step
operation         a path with its handler and its description
openapi_document  the OpenAPI document, refined for programs
openapi_page      the OpenAPI document as an HTML page, and its routes
aggregated        the answers as an aggregated API of Kubernetes
================  =====================================================================================
"""
