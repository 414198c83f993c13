"""HTTP without the answers themselves: what requests may ask, how lists continue, and how errors look. No I/O.

================  =================================================================================
request_guard     ASGI middleware: refuses percent-encoded paths, counts and bounds every answer
request_spans     ASGI middleware: a span of each request, and of each request to OpenSearch below it
caller_wait       how long one caller waits for OpenSearch, over all reads
json_protocol     uvicorn's HTTP parser, with JSON for bytes that are not HTTP
cluster           which cluster a request is about, and the paths that lead to other answers about it
param_types       types of path and query parameters: names, times, whole numbers
endpoints         a handler as an endpoint: reads path, query and cluster
query_base        what every model of query parameters is based on
query_params      one model for the query of each endpoint
comparison_query  the query of comparisons
pending_query     the query of the list of pending pods
trends_query      the query of counts over time
report_query      the query of the report of failures
watch_query       the parameters of a watch, as Kubernetes names them
continue_token    opaque tokens that hold where the next page begins
pagination        the token of a request, and the headers that lead to the next page
tables            rows as CSV
errors            every error as JSON: the cause and the next step
openapi_document  the OpenAPI document, refined for programs
openapi_page      the OpenAPI document as an HTML page
================  =================================================================================
"""
