{{- /* Labels that Kubernetes recommends, next to those by which objects select each other. */}}
{{- define "schedulerlog.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "schedulerlog.image" -}}
{{- $image := .Values.image }}
{{- if $image.digest }}
{{- printf "%s@%s" $image.repository $image.digest | quote }}
{{- else }}
{{- printf "%s:%s" $image.repository ($image.tag | default .Chart.AppVersion) | quote }}
{{- end }}
{{- end }}

{{- /* Of the version of the cluster, without what a distribution adds to it. */}}
{{- define "schedulerlog.kubeSchedulerImage" -}}
{{- $own := .Values.scheduler.kubeScheduler }}
{{- printf "%s:%s" $own.image ($own.tag | default (regexFind "v[0-9]+[.][0-9]+[.][0-9]+" .Capabilities.KubeVersion.Version)) | quote }}
{{- end }}

{{- /* Requests and limits. Arguments: the root, a process, what the manifests give it (size medium). */}}
{{- define "schedulerlog.resources" -}}
{{- $root := index . 0 }}
{{- $process := index . 1 }}
{{- $resources := index . 2 | fromJson }}
{{- $sizes := $root.Files.Get "files/sizes.yaml" | fromYaml }}
{{- with get (get $sizes $root.Values.size | default dict) $process }}
{{- $resources = mergeOverwrite $resources (deepCopy .) }}
{{- end }}
{{- mergeOverwrite $resources (get $root.Values.resources $process | default dict | deepCopy) | toJson }}
{{- end }}

{{- /* Number of pods, empty where somebody else sets it. Arguments: the root, a process, its number with high availability. */}}
{{- define "schedulerlog.replicas" -}}
{{- $root := index . 0 }}
{{- $process := index . 1 }}
{{- $values := $root.Values }}
{{- if not (or (eq $values.processes "one") (and $values.keda.enabled (has $process (list "worker" "index")))) }}
{{- if hasKey $values.replicas $process }}
{{- get $values.replicas $process }}
{{- else if $values.highAvailability }}
{{- index . 2 }}
{{- end }}
{{- end }}
{{- end }}

{{- /* A sum of the settings that a process reads, which starts it again when one changes; envFrom does not.
Arguments: the root, the command, more keys of the ConfigMap. */}}
{{- define "schedulerlog.podAnnotations" -}}
{{- $root := index . 0 }}
{{- $command := index . 1 }}
{{- $settings := include "schedulerlog.settings" $root | fromYaml }}
{{- $commands := $root.Files.Get "files/settings.json" | fromJson }}
{{- $used := dict }}
{{- range $name := concat (get $commands $command | default list) (slice . 2) }}
{{- if hasKey $settings $name }}
{{- $_ := set $used $name (get $settings $name) }}
{{- end }}
{{- end }}
{{- $annotations := dict "checksum/settings" ($used | toJson | sha256sum | trunc 16) }}
{{- if eq $command "scheduler serve" }}
{{- $_ := set $annotations "checksum/kube-scheduler" ($root.Files.Get "files/kube-scheduler.yaml" | sha256sum | trunc 16) }}
{{- end }}
{{- mergeOverwrite $annotations (deepCopy $root.Values.pods.annotations) | toJson }}
{{- end }}
