"""A kube-scheduler extender that answers as HAMi v2.10.0 does and records every verdict it reaches.

It decides with `fit/`. What a decision passes through:

    http/                  sockets, certificates, routes
    extender_protocol      bodies of kube-scheduler's extender protocol (pure)
    parsed_json            JSON of callers, in linear time
    service                answers filter and bind calls; filter_replies says how
    bind_calls             answers a bind call in time, whatever the bind takes
    pod_guard              which calls about a pod wait or are refused
    records                where the scheduler records what it does
    bind/                  binds a pod, recovers binds that were cut off
    publish/               its events into the spool on disk, and from there to Kafka
    klog/                  a decision as HAMi's log lines
    cluster/               what a cluster must offer: an API server, or a YAML file
    webhook/               HAMi's admission webhook

Beside it:

    observe                changes of the cluster into the columns, events about them
    node_check_task        problems in how nodes register, as time passes
    metrics                every metric by name
    hami_metrics           the metrics that HAMi has, under its names
    malloc                 keeps freed memory for the next decision

Put together:

    settings               flags and environment, checked
    own_settings           what is in force, as an event
    hami_arguments         the arguments of HAMi's scheduler as ours
    serve                  runs everything
    serve_parts            opens what it runs on: spool, certificate, log
    serve_command          its command line
    simulate_command       the command line of `fit.simulate`: one attempt without any of this
"""
