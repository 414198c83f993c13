"""Reads from OpenSearch. The queries are pure; ``reading.client`` sends them, and the readers decode the answers.

=================  ========================================================================================
reading            reads over HTTP, shared fairly between callers, in pages
attempts           attempts of a pod, its episodes, and refusals by a device
waiting            pods that wait now
nodes              nodes: their states, the use of their devices, and their registrations
namespaces         namespaces with records, by which answers are redacted
clusters           clusters with records, their schedulers with settings and changes, and releases of HAMi
trend_counts       counts over time, from the rows of minutes
device_trends      devices that pods held or waited for over time
report_queries     further numbers of a report of failures
findings           list of findings
pod_circumstances  facts of a diagnosis: last observation of a pod, registrations, schedulers, findings
recordings         range of time to replay
start_outlook      when a waiting pod starts, and the pods before it
observations       list of pod observations, and the state of a node at one time
=================  ========================================================================================
"""
