{{- /* Values that contradict each other, or lack one; values.schema.json checks each by itself. */}}
{{- define "schedulerlog.validate" -}}
{{- $v := .Values }}
{{- $isOne := eq $v.processes "one" }}
{{- $hasApi := ne $v.processes "sources" }}
{{- if not $v.image.repository }}
{{- fail "image.repository: name the image in your registry; none is published. In a checkout `make push PREFIX=registry.example.com/gpu` builds and pushes registry.example.com/gpu/schedulerlog." }}
{{- end }}
{{- if $v.stores.enabled }}
{{- if not $hasApi }}
{{- fail "stores.enabled: the processes `sources` publish to the Kafka of a fleet; set stores.enabled=false and kafka.bootstrapServers." }}
{{- end }}
{{- if or $v.kafka.bootstrapServers $v.kafka.strimzi.enabled $v.opensearch.url }}
{{- fail "stores.enabled: kafka.bootstrapServers, kafka.strimzi or opensearch.url name stores of yours; set stores.enabled=false, and both addresses." }}
{{- end }}
{{- if or (ne $v.kafka.securityProtocol "plaintext") $v.opensearch.roles.enabled (eq $v.opensearch.authentication "password") }}
{{- fail "stores.enabled: these stores have neither TLS nor passwords; leave kafka.securityProtocol, opensearch.authentication and opensearch.roles as they are, or bring stores of yours." }}
{{- end }}
{{- if $v.highAvailability }}
{{- fail "highAvailability: it needs a Kafka and an OpenSearch of three nodes; set stores.enabled=false, kafka.bootstrapServers and opensearch.url." }}
{{- end }}
{{- else }}
{{- if not (include "schedulerlog.kafka" .) }}
{{- fail "kafka.bootstrapServers: name your Kafka, such as kafka-bootstrap.kafka:9093; or set stores.enabled=true or kafka.strimzi.enabled=true." }}
{{- end }}
{{- if and $hasApi (not $v.opensearch.url) }}
{{- fail "opensearch.url: name your OpenSearch, such as https://opensearch.opensearch:9200; or set stores.enabled=true." }}
{{- end }}
{{- end }}
{{- if and $v.kafka.strimzi.enabled (hasPrefix "sasl" $v.kafka.securityProtocol) }}
{{- fail "kafka.securityProtocol: with kafka.strimzi each process has a certificate; leave it, or set ssl." }}
{{- end }}
{{- if and $isOne (or $v.opensearch.roles.enabled $v.keda.enabled $v.replicas) }}
{{- fail "processes: one process has one user of OpenSearch and one pod; set processes=separate for opensearch.roles, keda or replicas." }}
{{- end }}
{{- if and $v.opensearch.stateManagement (not $v.opensearch.roles.enabled) }}
{{- fail "opensearch.stateManagement: an administrator makes the policies; set opensearch.roles.enabled=true." }}
{{- end }}
{{- if and (not $hasApi) (or $v.mcp.enabled $v.api.ingress.enabled $v.api.gateway.enabled $v.api.aggregated $v.dashboards.enabled) }}
{{- fail "processes: `sources` have no API; leave mcp, dashboards, api.ingress, api.gateway and api.aggregated to the release that has it." }}
{{- end }}
{{- if and $v.api.gateway.enabled (not $v.api.gateway.host) }}
{{- fail "api.gateway.host: name the host by which people reach the API, such as schedulerlog.example.com." }}
{{- end }}
{{- if and $v.api.ingress.enabled (not $v.api.ingress.host) }}
{{- fail "api.ingress.host: name the host by which people reach the API, such as schedulerlog.example.com." }}
{{- end }}
{{- end }}
