"""Where nodes and pods come from: an API server, or a YAML file that stands in for one.

cluster_api     what the scheduler needs of a cluster
claims          which counts for an unbound pod: our decision or its annotations (pure)
kubernetes      the cluster behind an API server
file_cluster    the cluster that a YAML file describes
watch_file      follows that file
"""
