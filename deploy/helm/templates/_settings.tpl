{{- /* Address of Kafka: of the values, else of the store or operator that they name. */}}
{{- define "schedulerlog.kafka" -}}
{{- $kafka := .Values.kafka }}
{{- if $kafka.bootstrapServers }}
{{- $kafka.bootstrapServers }}
{{- else if $kafka.strimzi.enabled }}
{{- $kafka.strimzi.cluster }}-kafka-bootstrap:9093
{{- else if .Values.stores.enabled }}
{{- "kafka:9092" }}
{{- end }}
{{- end }}

{{- define "schedulerlog.kafkaProtocol" -}}
{{- ternary "ssl" .Values.kafka.securityProtocol .Values.kafka.strimzi.enabled }}
{{- end }}

{{- /* What follows from the values, with the settings of deploy/kustomize in the same places. */}}
{{- define "schedulerlog.derivedSettings" -}}
{{- $kafka := .Values.kafka }}
{{- $opensearch := .Values.opensearch }}
{{- $isOne := eq .Values.processes "one" }}
{{- $protocol := include "schedulerlog.kafkaProtocol" . }}
{{- $url := $opensearch.url | default (ternary "http://opensearch:9200" "" .Values.stores.enabled) }}
SCHEDULERLOG_CLUSTER_NAME: {{ .Values.clusterName | quote }}
SCHEDULERLOG_METRICS_ADDRESS: 0.0.0.0:8080
SCHEDULERLOG_API_LISTEN: 0.0.0.0:9090
SCHEDULERLOG_API_AUTHENTICATION: kubernetes
SCHEDULERLOG_API_CERT_FILE: /etc/schedulerlog/api/tls.crt
SCHEDULERLOG_API_KEY_FILE: /etc/schedulerlog/api/tls.key
SCHEDULERLOG_LOG_FORMAT: json
SCHEDULERLOG_KAFKA_BOOTSTRAP_SERVERS: {{ include "schedulerlog.kafka" . | quote }}
{{- if ne $protocol "plaintext" }}
SCHEDULERLOG_KAFKA_SECURITY_PROTOCOL: {{ $protocol }}
{{- end }}
{{- if and (hasSuffix "ssl" $protocol) (or $kafka.privateAuthority $kafka.strimzi.enabled) }}
SCHEDULERLOG_KAFKA_CA_FILE: /etc/schedulerlog/kafka/ca.crt
{{- end }}
{{- if and (eq $protocol "ssl") (or $kafka.clientCertificate $kafka.strimzi.enabled) }}
SCHEDULERLOG_KAFKA_CERT_FILE: /etc/schedulerlog/kafka/tls.crt
SCHEDULERLOG_KAFKA_KEY_FILE: /etc/schedulerlog/kafka/tls.key
{{- end }}
{{- if hasPrefix "sasl" $protocol }}
SCHEDULERLOG_KAFKA_SASL_MECHANISM: {{ $kafka.sasl.mechanism }}
SCHEDULERLOG_KAFKA_USERNAME: {{ $kafka.sasl.username | quote }}
SCHEDULERLOG_KAFKA_PASSWORD_FILE: /etc/schedulerlog/kafka/password
{{- end }}
{{- if $url }}
SCHEDULERLOG_OPENSEARCH_URL: {{ $url | quote }}
{{- if and (contains "https://" $url) $opensearch.privateAuthority }}
SCHEDULERLOG_OPENSEARCH_CA_FILE: /etc/schedulerlog/opensearch/ca.crt
{{- end }}
{{- if or (eq $opensearch.authentication "password") $opensearch.roles.enabled }}
SCHEDULERLOG_OPENSEARCH_PASSWORD_FILE: /etc/schedulerlog/opensearch/password
{{- end }}
{{- if eq $opensearch.authentication "password" }}
SCHEDULERLOG_OPENSEARCH_USERNAME: {{ $opensearch.username | quote }}
{{- end }}
{{- end }}
{{- if $opensearch.roles.enabled }}
OPENSEARCH_WRITER: schedulerlog-writer
OPENSEARCH_READER: schedulerlog-reader
OPENSEARCH_PROVISIONER: schedulerlog-provisioner
{{- end }}
{{- with $kafka.replicationFactor | default (ternary 3 0 .Values.highAvailability) }}
SCHEDULERLOG_REPLICATION_FACTOR: {{ . | quote }}
{{- end }}
{{- with $kafka.partitions | default (ternary 3 0 $isOne) }}
SCHEDULERLOG_TOPIC_PARTITIONS: {{ . | quote }}
{{- end }}
{{- if ge (int $opensearch.replicas) 0 }}
SCHEDULERLOG_INDEX_REPLICAS: {{ $opensearch.replicas | quote }}
{{- else if .Values.highAvailability }}
SCHEDULERLOG_INDEX_REPLICAS: "1"
{{- end }}
{{- with .Values.api.proxy }}
{{- if .enabled }}
SCHEDULERLOG_API_PROXY_CA_FILE: /etc/schedulerlog/proxy/ca.crt
SCHEDULERLOG_API_PROXY_NAMES: {{ join "," .names | quote }}
SCHEDULERLOG_API_PROXY_USER_HEADER: {{ .userHeader | quote }}
SCHEDULERLOG_API_PROXY_GROUPS_HEADER: {{ .groupsHeader | quote }}
{{- end }}
{{- end }}
{{- if .Values.api.aggregated }}
SCHEDULERLOG_API_AGGREGATED: "true"
{{- end }}
{{- if $isOne }}
SCHEDULERLOG_INDEX_LINGER: 2s
SCHEDULERLOG_API_CACHE_SIZE: 32Mi
SCHEDULERLOG_SUMMARY_CACHE_SIZE: 16Mi
{{- end }}
{{- end }}

{{- /* The settings of all processes: those of the values' own `settings` come last. */}}
{{- define "schedulerlog.settings" -}}
{{- $settings := include "schedulerlog.derivedSettings" . | fromYaml }}
{{- range $name, $value := .Values.settings }}
{{- /* A number is a float64 here, and would be written 1e+06. */}}
{{- $_ := set $settings $name (ternary (int64 $value) $value (kindIs "float64" $value) | toString) }}
{{- end }}
{{- toYaml $settings }}
{{- end }}
