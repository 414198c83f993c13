"""The cluster as the scheduler sees it through an API server. Only this package and `serve` use `kube`'s client.

connect    from settings to a cluster that is kept up to date, with its metrics
cluster    the cluster: what is known comes from watches, writes go to the API server
slim       the fields of nodes and pods that stay in memory (pure)

What its service account must be allowed (cluster-wide unless stated otherwise):

    ""                   nodes                    get list watch patch
    ""                   pods                     get list watch patch
    ""                   pods/binding             create
    ""                   resourcequotas           list watch
    coordination.k8s.io  leases                   get create update     (in the lease's namespace)
"""
