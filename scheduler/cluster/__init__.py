"""Sources of nodes and pods: an API server, or a YAML file that stands in for one.

cluster_api     the scheduler's interface to a cluster
claims          our decisions about unbound pods, against their annotations (pure)
kubernetes      the cluster behind an API server
file_cluster    the cluster that a YAML file describes
watch_file      follows that file
"""
