"""A kube-scheduler extender that answers as HAMi v2.10.0 does and records every verdict it reaches.

The pure core, from values to values (no clock, no I/O):

    registration, request, allocation  read what Kubernetes objects say
    usage, quota, mig                  what running pods hold
    columns                            the whole cluster as numpy columns, kept up to date by increments
    order, fit, walk                   the rules: which device is tried when, and the first check it fails
    decide                             one pod against all offered nodes -> Decision

On its way out, still pure:

    events                             a Decision -> the contract's events
    frames, thinning                   how they lie in a spool file, and what is given up when there is no room
    extender, node_lock, durations     bodies, locks and error texts as HAMi writes them
    manifests, yaml_lines              a YAML file of Kubernetes objects, each mistake with its line

The edges, named for what they touch:

    spool (segment_log, segments, overflow, spool_folder)   the disk between an answer and Kafka
    publish                            Kafka
    cluster_api                        what a cluster must offer; file_cluster and watch_file play one from YAML
    bind                               the cluster, when a pod is bound
    observe, service                   what changes, and what is asked: the two ways into the columns
    http, metrics, serve, settings     sockets, and everything put together
    simulate                           one attempt without any of it
"""
