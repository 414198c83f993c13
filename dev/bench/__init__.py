"""Measures speed as ratios, side by side in one run: ``python -m dev.bench [NAME ...]``.

Every benchmark names what it compares with, prints a table and a JSON line, and runs what it compares on the same work,
the same servers and the same machine within the same minute.

Benchmarks:

filter, choosing, scheduling      the scheduler: a filter call, the choice of devices, a call with its records
filter_callers                    64 callers of the filter at once
diagnosing                        what would have to change for a pod that no node takes
wire                              bytes of an attempt and of the states that it refers to
worker, stages, retries           worker and index writer: as a whole, stage by stage, unchanged retries
capacity, planned                 what a fleet needs, and that model beside what is measured
backlog, away, takeover           catching up, also when OpenSearch was away; partitions of a killed worker
overrides                         the worker without each override of Faust's internals
refusals                          what finding refusals by node and reason costs in the index
steady                            the delay at a steady rate
api, pending, watch               the API: a pod from memory, lists of what waits, a thousand who watch
page                              the page of a pod of 5,000 nodes: server, bytes, first paint
api_load                          200 readers of the API, with OpenSearch and while it stands still
start                             commands that read a file, from start to end
server_start                      Kafka and OpenSearch, without and with Java's ahead-of-time cache
ingest                            readers of HAMi's and KAI's logs
soak                              memory of worker and index writer over a long run (``python -m dev.bench.soak``)

What they run and share:

cluster, fleet, hami_log, kai_log   generated clusters, pods and logs
backends, services                  servers, the processes of the pipeline
load, cpu, report                   an HTTP client, measuring, printing
mixed_readers                       readers side by side, with requests of several kinds
collector                           takes spans, and forgets them
deciding, bodies, consumers, bare, bare_watch, reviews   programs that run in a process of their own, to be measured
watched_worker, peak                a process of the pipeline and an ingest command that measure their own memory
"""
