"""A kube-scheduler extender that answers as HAMi v2.10.0 does and records every verdict it reaches.

It decides with `engine/fit/`. The path of a decision:

    http/                  sockets, certificates, routes
    answering/             answers to filter and bind calls
    bind/                  binds a pod, recovers binds that were cut off
    publish/               its events into the spool on disk, and from there to Kafka
    cluster/               the cluster: an API server, or a YAML file
    webhook/               HAMi's admission webhook
    hami_compat/           HAMi's log lines, metrics and arguments

Next to it:

    metrics                every metric by name
    log_fields             fields of log lines and spans about one attempt

Assembly:

    settings               flags and environment, checked
    assembly               opens what the scheduler runs on, and connects its parts
    serve                  runs the assembly
    serve_command          its command line
    simulate_command       the command line of `engine.fit.simulate`: one attempt without any of this
"""
