"""Everything that goes into a cluster beside the services: manifests, images, dashboards.

``dashboards`` makes the dashboards of OpenSearch and Grafana and the rules of SLOs from code; ``kustomize/``,
``image/``, ``images/``, ``k9s/`` and ``krew/`` are files.
"""
