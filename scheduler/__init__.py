"""A kube-scheduler extender that answers as HAMi v2.10.0 does and records every verdict it reaches.

The pure core, from values to values (no clock, no I/O):

    registration, request, allocation  read what Kubernetes objects say
    usage, quota, mig                  what running pods hold
    columns                            the whole cluster as numpy columns, kept up to date by increments
    order, fit, walk                   the rules: which device is tried when, and the first check it fails
    decide                             one pod against all offered nodes -> Decision
"""
