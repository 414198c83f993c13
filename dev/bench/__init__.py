"""Measures speed as ratios, side by side in one run: ``python -m dev.bench [NAME ...]``.

Every benchmark names its comparison, prints a table and a JSON line, and runs both sides on the same work, the same
servers and the same machine within the same minute.

Benchmarks:

filter, wire             a filter call with and without its records; bytes of an attempt and of its states
filter_callers           64 callers of the filter at once
diagnosing               suggestions for a pod that no node takes
costs                    CPU of an attempt in worker and index writer, in process and next to its JSON
bound                    the worker up to each step: reading, sending, decoding and encoding, everything
worker, stages, retries  worker and index writer: together, stage by stage, at unchanged retries
backlog, away, takeover  catching up, also when OpenSearch was away; partitions of a killed worker
overrides                the worker without each override of Faust's internals
steady                   the delay at a steady rate
histories                memory of the pods that a worker knows
indices                  requests about thirty days over an index a day, a month and everything
footprint                memory and CPU of each process of a small cluster, separately and as one process
api, pending, watch      the API: a pod from memory, lists of waiting pods, a thousand watchers
page                     the page of a pod of 5,000 nodes: server, bytes, first paint
api_load                 200 readers of the API, with OpenSearch and while it is stopped
start                    commands that read a file, from start to end
judging, claims          kube-scheduler's filters and resource claims on a snapshot of a fleet
asking                   a question to a large cluster without the API, next to ``kubectl get``
plans                    pods that start now of twelve shapes, plans of a drain and of moves, and names of pods
replay                   a recorded week decided again, next to as many decisions alone
trends                   counts over time as minutes and as hours: documents, bytes and CPU of a question
refusals                 refused pods read from events and judged, with and without equal ones
anchor                   the same filters next to kube-scheduler's own in Go
ingest                   readers of HAMi's and KAI's logs
watcher                  the reader of a cluster's events, with many pods and workloads
soak                     memory of worker and index writer over a long run (``python -m dev.bench.soak``)
stack_soak               memory of every process over a long run (``python -m dev.bench.stack_soak``)
capacity                 CPUs, processes and disk of a fleet, by a model of the measured costs
installation             pods, CPUs, memory and disk of whole installations, quiet and busy

Programs and parts that they share:

cluster, fleet, hami_log, kai_log   generated clusters, pods and logs
held_devices                        placements that hold every device of a generated cluster
in_process                          worker and index writer without Kafka and index
backends, services                  servers, the processes of the pipeline
load, cpu, report                   an HTTP client, measuring, printing
mixed_readers                       readers side by side, with requests of several kinds
deciding, bodies, consumers, bare, bare_watch, reviews   programs that run in a process of their own, to be measured
watched_cluster          lists and watches of a generated cluster
watched_worker, peak                a process of the pipeline and an ingest command that measure their own memory
"""
