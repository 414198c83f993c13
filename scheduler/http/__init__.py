"""The HTTP side, for kube-scheduler, Prometheus and probes.

app                  the routes, and the callers that may filter and bind
server               the socket and uvicorn on it
"""
