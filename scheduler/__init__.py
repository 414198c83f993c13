"""A kube-scheduler extender that answers as HAMi v2.10.0 does and records every verdict it reaches.

The pure core, from values to values (no clock, no I/O):

    devices/                           what nodes register and pods hold, as numpy columns
    judge/                             one pod against all offered nodes -> Decision
    events                             a Decision -> the contract's events
    extender, node_lock, durations     bodies, locks and error texts as HAMi writes them

The edges, named for what they touch:

    spool/                             the disk between an answer and Kafka
    publish                            Kafka
    cluster/                           what a cluster must offer, and one played from a YAML file
    bind                               the cluster, when a pod is bound
    observe, service                   what changes, and what is asked: the two ways into the columns
    http, listen, tls                  sockets, and what is asked over them
    klog/, profiling/                  HAMi's log lines, and where time and memory go
    check_nodes                        what is wrong with how nodes register, as time passes
    metrics, serve, settings           everything put together, and counted
    simulate                           one attempt without any of it
"""
