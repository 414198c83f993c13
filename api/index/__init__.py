"""Reads from OpenSearch. The queries are pure; ``reading.client`` sends them, and the readers decode what comes back.

=================  ========================================================================================
reading            how OpenSearch is read: over HTTP, fairly between callers, in pages
attempts           attempts: of a pod, its episodes, and what a device refused
waiting            what waits now
nodes              nodes: their states, what their devices hold, and what they registered
trend_counts       counts over time, from the rows of minutes
trend_reader       reads them
report_queries     what a report of failures asks beside them
findings           the list of findings
schedulers         the schedulers with their settings, and how these changed
pod_circumstances  a pod as it was observed last, registrations, schedulers, findings: facts of a diagnosis
observations       the list of pod observations, and the state of a node at one time
=================  ========================================================================================
"""
