"""The web page below ``/ui``: thin handlers that show what the API's own routes answer to the same caller.

===============  ================================================================================
page_routes      the list of the pages' routes; none of them stands in the OpenAPI document
page_session     ASGI middleware: cookie, origin of what is sent, headers, errors as pages
cookies          pure: the token's cookie, and which addresses and origins count as our own
answers          asks the API's own routes, with the rights of the page's caller
page_shell       what the handlers of all pages share: context, rendering, parts that may be missing
forms            the fields of a form that a browser sends
login_pages      logging in and out
home_pages       the first page, and the way from a pod's name to its page
pending_pages    pods that wait: by obstacle, by workload, one by one
pod_pages        a pod: why it waits, its nodes by identical refusal, their devices
pod_parts        changes, scores, history, records and comparison of a pod
node_pages       nodes, and one node over time
list_pages       search, findings, what is behind
report_pages     counts over time, and the report of failures
simulation_page  where a pod would go that somebody pastes
static_files     style sheet, scripts and icon
===============  ================================================================================
"""
