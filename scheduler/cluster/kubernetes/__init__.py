"""The cluster as the scheduler sees it through an API server. Only this room and `serve` know `kube`'s edges.

What its service account must be allowed (cluster-wide unless said otherwise):

    ""                   nodes                    get list watch patch
    ""                   pods                     get list watch patch
    ""                   pods/binding             create
    ""                   resourcequotas           list watch
    coordination.k8s.io  leases                   get create update     (in the lease's namespace)
"""
