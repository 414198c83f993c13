"""Everything that goes into a cluster next to the services: manifests, a Helm chart, images, dashboards.

``dashboards`` makes the dashboards of OpenSearch and the rules of SLOs from code, ``managed_resources`` lists what
kube-scheduler leaves to our extender, ``helm_from_kustomize`` makes the chart in ``helm/``. Grafana's dashboards are
files in ``kustomize/components/grafana``; ``kustomize/``, ``image/``, ``images/``, ``k9s/`` and ``krew/`` are files.
"""
