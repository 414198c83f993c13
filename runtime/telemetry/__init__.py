"""Logs, metrics, health, traces and profiles of a process.

==================  =====================================================================
``logs``            format of the log, and limit of libraries' repeated complaints
``health``          /metrics, /healthz and /readyz
``parts_health``    health and metrics of the parts of one process, shown by one server
``exposition``      metrics in Prometheus' text or as OpenMetrics, also those that other objects hold
``spans``           interface of spans, and an implementation that makes none
``tracing``         spans of OpenTelemetry, if the settings name a collector
``otlp``            creation and export of these spans, imported only then
==================  =====================================================================
"""
