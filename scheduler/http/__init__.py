"""The HTTP side: what kube-scheduler, Prometheus and probes ask.

app                  the routes
server               the socket and uvicorn on it
"""
