"""Logs, metrics, health, traces and profiles of a process.

==================  =====================================================================
``logs``            the format of the log, and how often libraries may repeat a complaint
``health``          /metrics, /healthz and /readyz
``exposition``      the metrics of a process in Prometheus' text or as OpenMetrics
``read_at_scrape``  metrics whose values other objects hold
``spans``           the interface of spans, and the one that makes none
``tracing``         spans of OpenTelemetry, where the settings name a collector
``otlp``            makes and sends them, imported only then
==================  =====================================================================
"""
