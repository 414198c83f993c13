"""The HTTP side: what kube-scheduler, Prometheus and probes ask.

app                  the routes
bodies               reads requests, within the memory that all callers share
callers              who may filter and bind
server               the socket and uvicorn on it
"""
