"""The web page below ``/ui``: thin handlers that show the API's own answers to the same caller.

===============  ===================================================================================
page_routes      routes of the pages, which the OpenAPI document omits, and their static files
page_session     ASGI middleware: cookie, forms, origin of what is sent, headers, errors as pages
cookies          cookie of the token, and the addresses and origins of this API; pure
answers          requests to the API's own routes, with the rights of the page's caller
page_shell       context, rendering and missing parts, for the handlers of all pages
login_pages      login and logout
pending_pages    waiting pods: by obstacle, by workload, one by one
pod_pages        a pod: why it waits, its nodes by identical refusal, their devices; its slower parts
node_pages       nodes, and one node over time
home_pages       first page, search field, a workload
plan_pages       plans: drain of a node, moves for a pod, nodes to add
list_pages       search, findings, and the state of the system
report_pages     counts over time, and the report of failures
simulation_page  simulation of a pasted pod
===============  ===================================================================================
"""
