{{/* The settings of the daemon, and the Secrets that they need. */}}

{{/* How the sidecar reaches Kafka: bootstrap, tls, caSecret, clientSecret and sasl, as in the values. */}}
{{- define "throttle-sidecar.kafka" -}}
{{- $bootstrap := .Values.bootstrapServers -}}
{{- if kindIs "slice" $bootstrap }}{{ $bootstrap = join "," $bootstrap }}{{ end -}}
{{- with .Values.strimzi -}}
{{- if .cluster -}}
{{- $user := .user | default (include "throttle-sidecar.fullname" $) -}}
{{- $secret := .secret | default $user -}}
bootstrap: {{ $bootstrap | default (printf "%s-kafka-bootstrap:9093" .cluster) | quote }}
tls: true
{{- /* The whole folder: a CA that Strimzi replaced stays in it until brokers have new certificates. */}}
caSecret: {name: {{ .cluster }}-cluster-ca-cert, key: ""}
user: {{ $user | quote }}
{{- if eq .authentication "tls" }}
clientSecret: {name: {{ $secret | quote }}, certificate: user.crt, key: user.key}
sasl: {mechanism: "", secret: {name: ""}}
{{- else }}
clientSecret: {name: ""}
sasl: {mechanism: SCRAM-SHA-512, username: {{ $user | quote }}, secret: {name: {{ $secret | quote }}, key: password}}
{{- end }}
{{- else -}}
bootstrap: {{ $bootstrap | quote }}
tls: {{ $.Values.tls.enabled }}
caSecret: {{ toJson $.Values.tls.caSecret }}
clientSecret: {{ toJson $.Values.tls.clientSecret }}
sasl: {{ toJson $.Values.sasl }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The settings that the values name, each a text. */}}
{{- define "throttle-sidecar.ownSettings" -}}
{{- $kafka := include "throttle-sidecar.kafka" . | fromYaml -}}
{{- $files := "/etc/throttle-sidecar" -}}
{{- with $kafka.bootstrap }}
SIDECAR_KAFKA_ADMIN_BOOTSTRAP_SERVERS: {{ . | quote }}
{{- end }}
{{- if or $kafka.tls $kafka.sasl.mechanism }}
SIDECAR_KAFKA_ADMIN_SECURITY_PROTOCOL: {{ if $kafka.sasl.mechanism }}SASL_{{ end }}{{ if $kafka.tls }}SSL{{ else }}PLAINTEXT{{ end }}
{{- end }}
{{- with $kafka.caSecret }}
{{- if .name }}
SIDECAR_KAFKA_ADMIN_SSL_TRUSTSTORE_LOCATION: {{ $files }}/ca{{ with .key }}/{{ . }}{{ end }}
{{- end }}
{{- end }}
{{- with $kafka.clientSecret }}
{{- if .name }}
SIDECAR_KAFKA_ADMIN_SSL_KEYSTORE_LOCATION: {{ $files }}/client/{{ .certificate }}
SIDECAR_KAFKA_ADMIN_SSL_KEYSTORE_KEY_LOCATION: {{ $files }}/client/{{ .key }}
{{- end }}
{{- end }}
{{- with $kafka.sasl }}
{{- if .mechanism }}
SIDECAR_KAFKA_ADMIN_SASL_MECHANISM: {{ .mechanism }}
SIDECAR_KAFKA_ADMIN_SASL_USERNAME: {{ .username | quote }}
SIDECAR_KAFKA_ADMIN_SASL_PASSWORD_FILE: {{ $files }}/sasl/{{ .secret.key }}
{{- end }}
{{- end }}
{{- range $line, $of := dict "LIMIT" .Values.limit "SOFT_LIMIT" .Values.softLimit "STOP" .Values.stopLine }}
{{- with $of.minAvailableBytes }}
SIDECAR_STORAGE_PER_VOLUME_{{ $line }}_MIN_AVAILABLE_BYTES: {{ include "throttle-sidecar.text" . | quote }}
{{- end }}
{{- with $of.minAvailableRatio }}
SIDECAR_STORAGE_PER_VOLUME_{{ $line }}_MIN_AVAILABLE_RATIO: {{ include "throttle-sidecar.text" . | quote }}
{{- end }}
{{- end }}
SIDECAR_MODE: {{ .Values.throttle.mode }}
SIDECAR_THROTTLE_SCOPE: {{ .Values.throttle.scope }}
SIDECAR_ENFORCEMENT: {{ .Values.enforcement | default "callback" }}
{{- with .Values.clientQuotaFloor }}
SIDECAR_CLIENT_QUOTA_FLOOR: {{ include "throttle-sidecar.text" . | quote }}
{{- end }}
{{- if .Values.budgets }}
SIDECAR_BUDGETS_FILE: {{ $files }}/files/budgets.toml
{{- end }}
{{- with .Values.relief }}
{{- if .classes }}
SIDECAR_RELIEF_FILE: {{ $files }}/files/relief.toml
SIDECAR_RELIEF_MODE: {{ .mode | quote }}
{{- end }}
{{- end }}
{{- if or (eq .Values.mode "per-cluster") .Values.besideBroker.service }}
SIDECAR_HTTP_LISTEN: 0.0.0.0:7070
{{- end }}
SIDECAR_METRICS_LISTEN: 0.0.0.0:7071
SIDECAR_STATE_FILE: /var/lib/throttle-sidecar/state.json
SIDECAR_LOG_FORMAT: json
{{- if .Values.tokenSecret.name }}
SIDECAR_TOKEN_FILE: {{ $files }}/token/{{ .Values.tokenSecret.key }}
{{- end }}
{{- with .Values.apiTls }}
{{- if .secret.name }}
SIDECAR_HTTP_SSL_CERTIFICATE_FILE: {{ $files }}/api/{{ .secret.certificate }}
SIDECAR_HTTP_SSL_KEY_FILE: {{ $files }}/api/{{ .secret.key }}
{{- with .secret.ca }}
SIDECAR_HTTP_SSL_CA_FILE: {{ $files }}/api/{{ . }}
{{- end }}
SIDECAR_RUNBOOKS_URL: {{ $.Values.monitoring.runbooksUrl | default "https://127.0.0.1:7070/runbooks/" | quote }}
{{- else if $.Values.monitoring.runbooksUrl }}
SIDECAR_RUNBOOKS_URL: {{ $.Values.monitoring.runbooksUrl | quote }}
{{- end }}
{{- if .clientCaSecret.name }}
SIDECAR_HTTP_SSL_CLIENT_CA_FILE: {{ $files }}/client-ca/{{ .clientCaSecret.key }}
{{- end }}
{{- end }}
{{- end -}}

{{/* The files that the sidecar reads again when they change: name -> text. */}}
{{- define "throttle-sidecar.files" -}}
{{- with .Values.budgets }}
budgets.toml: {{ toJson . }}
{{- end }}
{{- with (.Values.relief).classes }}
relief.toml: {{ toJson . }}
{{- end }}
{{- end -}}

{{/* All settings. Those of .Values.settings take precedence. */}}
{{- define "throttle-sidecar.settings" -}}
{{- $settings := include "throttle-sidecar.ownSettings" . | fromYaml -}}
{{- range $name, $value := .Values.settings -}}
{{- $_ := set $settings $name (include "throttle-sidecar.text" $value) -}}
{{- end -}}
{{- toYaml $settings -}}
{{- end -}}

{{/* The Secrets that are mounted: folder below /etc/throttle-sidecar -> name. */}}
{{- define "throttle-sidecar.secrets" -}}
{{- $kafka := include "throttle-sidecar.kafka" . | fromYaml -}}
{{- $named := dict -}}
{{- range $folder, $name := dict
    "ca" $kafka.caSecret.name
    "client" $kafka.clientSecret.name
    "sasl" $kafka.sasl.secret.name
    "api" ((.Values.apiTls).secret).name
    "client-ca" ((.Values.apiTls).clientCaSecret).name
    "token" .Values.tokenSecret.name -}}
{{- if $name }}{{ $_ := set $named $folder $name }}{{ end -}}
{{- end -}}
{{- toYaml $named -}}
{{- end -}}
