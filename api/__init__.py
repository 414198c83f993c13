"""The REST API: the latest attempt of a pod, its history, search, findings, placements, nodes and the web page.

The API answers the latest attempts from memory, which follows the attempts topic; older ones and all lists come from
OpenSearch. The layers from the top; each imports only those below it, as an import contract checks:

===============  =================================================================================
``__main__``     the command line: settings, socket, uvicorn
server           uvicorn with a certificate that may be replaced; readiness for a kubelet
own_certificate  certificate for an API without one
app              the application with the consumers of its topics
ui               the web page below /ui
routes           the routes: path, handler, answer, errors
handlers         one method for each route
watch            changes of attempts as they happen
answers          facts of an answer from memory, index and API server; cache of ready answers
authority        authentication of callers, and their rights
index            queries to OpenSearch and their hits
memory           the attempts topic, and the latest attempt of each pod
http             parameters, tokens, errors, operations and their documentation
metrics          metrics of this process
settings         settings from environment variables
===============  =================================================================================
"""
