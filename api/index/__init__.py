"""Reads from OpenSearch. The queries are pure functions; ``client`` sends them, and the readers decode what comes back.

==================  ===============================================================================
last_registrations  what unregistered nodes registered last
client              the reads over HTTP, and what OpenSearch's errors mean
circuit             refuses at once while OpenSearch hangs
probe               whether OpenSearch answers, for /readyz
turns               who asks next, of all callers that wait
coalescing          one request for all callers who ask the same while it waits
query_dsl           clauses of OpenSearch's query language
page_query          lists in pages: their definition, the position of a page, the body that reads it
pages               reads one page
decoding            decodes a document, or raises which one can't be read
attempt_queries     queries about attempts, and list items from their hits
attempt_reader      the latest attempt of a pod, retries with what they repeat, judged devices
waiting_pods        which pods wait now, with what keeps them out
waiting_groups      the same by workload, or by obstacle
waiting_requests    what the pods that wait ask for
blocked_workloads   which workloads could not make their pods
device_refusals     which attempts a device refused
trend_counts        counts over time, from the rows of minutes
trend_reader        reads them
report_queries      what a report of failures asks beside them
episodes            attempts in a row with the same verdicts
history             reads the episodes of one pod
findings            the list of findings
occupancy_queries   the list of pod placements, and the placements on a node at one time
node_list           the list of nodes, and what is free of their devices
cluster_states      the node states of a whole cluster, of an attempt or at a time
schedulers          the schedulers with their settings, and how these changed
clusters            which clusters the index has records of
pod_circumstances   a pod as it was observed last, registrations, schedulers, findings: facts of a diagnosis
holders             what the pods on some nodes hold, as the fit counts it
node_occupancy      which pods held how much of a node's devices at one time
observations        the list of pod observations, and the state of a node at one time
==================  ===============================================================================
"""
