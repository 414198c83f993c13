"""The main job, end to end, on this machine: real processes, a real broker, a real index.

The demo stands outside. It plays kube-scheduler towards the scheduler service (``kube_scheduler``), edits the file
that stands for the cluster (``cluster_file``), reads answers where a person would (``reader``), compares them with
those that docs/demo.md works out by hand (``scenarios``), and shows them (``show``).
"""
