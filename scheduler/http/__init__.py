"""The HTTP side: what kube-scheduler, Prometheus and probes ask.

app                  the routes
callers              who may filter and bind
server               the socket and uvicorn on it
"""
