"""Everything that goes into a cluster next to the services: manifests, images, dashboards.

``dashboards`` makes the dashboards of OpenSearch and the rules of SLOs from code, ``managed_resources`` lists what
kube-scheduler leaves to our extender. Grafana's dashboards are files in ``kustomize/components/grafana``;
``kustomize/``, ``image/``, ``images/``, ``k9s/`` and ``krew/`` are files.
"""
