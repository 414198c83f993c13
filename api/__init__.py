"""Serves schedulerlog over HTTP: the latest attempt of a pod, its history, search, findings, placements and nodes.

The latest attempts are answered from memory, which follows the attempts topic; older ones and all lists come from
OpenSearch. The layers, from the top; each imports only those below it (import-linter checks that):

===============  ==============================================================================
``__main__``     the command line: settings, socket, uvicorn
server           uvicorn with a certificate that may be replaced; readiness for a kubelet
own_certificate  makes a certificate for the API, where there is none
app              builds the application and runs the topic's consumer beside it
documents        what describes the API: the OpenAPI document and its page
ui               the web page below /ui
exported         what the metrics read at each scrape
routes           the list of routes: path, handler, answer, errors
operation        one of them with what the OpenAPI document says of it
handlers         one method for each route
ready_answers    answers that are kept as they were sent, and sent before the application is asked
watch            the changes of attempts as they happen
report_command   the report of failures, from the command line
answers          what an answer needs, collected from memory, the index and the API server
authority        who asks, and what they may read
aggregated       the same answers as an aggregated API of Kubernetes
objects          objects of the Kubernetes API server
index            queries to OpenSearch, and what their answers hold
memory           the attempts topic, the latest attempt of each pod
http             parameters, tokens, errors, the documentation page
metrics          the metrics of this process
settings         the settings, from environment variables
===============  ==============================================================================
"""
