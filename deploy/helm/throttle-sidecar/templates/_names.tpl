{{/* Names, labels and the image. */}}

{{/* Short enough for -brokers or -metrics after it, and without the dots that a Service may not have. */}}
{{- define "throttle-sidecar.fullname" -}}
{{- $release := .Release.Name | replace "." "-" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- $release | trunc 53 | trimSuffix "-" -}}
{{- else -}}
{{- /* As a part of another chart, it may have an alias, which is then the name of the chart. */ -}}
{{- printf "%s-%s" ($release | trunc 36 | trimSuffix "-") (kebabcase .Chart.Name) | trunc 53 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* The labels that select the pods of the Deployment. */}}
{{- define "throttle-sidecar.selectorLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{/* Flux adds a commit to the version after a plus sign, which no label may have. */}}
{{- define "throttle-sidecar.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimAll "-_." }}
{{ include "throttle-sidecar.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{/* With labels of the values, which take precedence, as (list $ labels). Flux refuses a key twice. */}}
{{- define "throttle-sidecar.labelsWith" -}}
{{- merge (deepCopy (last . | default dict)) (include "throttle-sidecar.labels" (first .) | fromYaml) | toYaml -}}
{{- end -}}

{{/* The labels of a pod: without the chart's version, since another chart alone needs no other pod. */}}
{{- define "throttle-sidecar.podLabels" -}}
{{- $selected := include "throttle-sidecar.selectorLabels" . | fromYaml -}}
{{- $others := omit (include "throttle-sidecar.labels" . | fromYaml) "helm.sh/chart" -}}
{{- merge $selected (.Values.podLabels | default dict) $others | toYaml -}}
{{- end -}}

{{/* The labels that select all sidecars. The patch adds its own to the pods of brokers. */}}
{{- define "throttle-sidecar.podSelector" -}}
{{- if eq .Values.mode "per-cluster" -}}
{{ include "throttle-sidecar.selectorLabels" . }}
{{- else -}}
throttle-sidecar/release: {{ include "throttle-sidecar.fullname" . | quote }}
{{- end -}}
{{- end -}}

{{- define "throttle-sidecar.serviceAccountName" -}}
{{- $default := ternary (include "throttle-sidecar.fullname" .) "default" .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default $default -}}
{{- end -}}

{{- define "throttle-sidecar.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "throttle-sidecar.scheme" -}}
{{ empty ((.Values.apiTls).secret).name | ternary "http" "https" }}
{{- end -}}

{{/* The address of the API, for brokers of other namespaces too. */}}
{{- define "throttle-sidecar.url" -}}
{{ include "throttle-sidecar.scheme" . }}://{{ include "throttle-sidecar.fullname" . }}.{{ .Release.Namespace }}.svc:7070
{{- end -}}

{{/* A value as text. YAML makes 10000000000 a float, which would become 1e+10. */}}
{{- define "throttle-sidecar.text" -}}
{{- if and (kindIs "float64" .) (eq . (floor .)) -}}
{{- printf "%.0f" . -}}
{{- else -}}
{{- toString . -}}
{{- end -}}
{{- end -}}
