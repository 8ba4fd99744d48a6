{{/* Values that contradict each other. Each message says what to do. */}}
{{- define "throttle-sidecar.validate" -}}
{{- $settings := include "throttle-sidecar.settings" . | fromYaml -}}
{{- $kafka := include "throttle-sidecar.kafka" . | fromYaml -}}
{{- $beside := eq .Values.mode "beside-broker" -}}
{{- $name := include "throttle-sidecar.fullname" . -}}

{{- if not $settings.SIDECAR_KAFKA_ADMIN_BOOTSTRAP_SERVERS -}}
{{- fail "bootstrapServers is not set: set it to the address of a broker, such as kafka:9092, or set strimzi.cluster" -}}
{{- end -}}

{{/* A factor source takes the place of limits. */}}
{{- range $value, $line := dict "limit" "LIMIT" "softLimit" "SOFT_LIMIT" "stopLine" "STOP" -}}
{{- $bytes := hasKey $settings (printf "SIDECAR_STORAGE_PER_VOLUME_%s_MIN_AVAILABLE_BYTES" $line) -}}
{{- $ratio := hasKey $settings (printf "SIDECAR_STORAGE_PER_VOLUME_%s_MIN_AVAILABLE_RATIO" $line) -}}
{{- if and $bytes $ratio -}}
{{- fail (printf "%s.minAvailableBytes and %s.minAvailableRatio are both set: remove one" $value $value) -}}
{{- end -}}
{{- $needed := and (eq $value "limit") (not $settings.SIDECAR_FACTOR_SOURCE) -}}
{{- if and $needed (not (or $bytes $ratio)) -}}
{{- fail "no limit is set: set limit.minAvailableBytes, such as 10Gi, or limit.minAvailableRatio, such as 0.1" -}}
{{- end -}}
{{- end -}}

{{- range tuple
    "SIDECAR_KAFKA_ADMIN_SASL_PASSWORD" "SIDECAR_KAFKA_ADMIN_SASL_JAAS_CONFIG"
    "SIDECAR_KAFKA_ADMIN_SASL_OAUTHBEARER_CLIENT_CREDENTIALS_CLIENT_SECRET"
    "SIDECAR_KAFKA_ADMIN_SSL_KEYSTORE_KEY" "SIDECAR_KAFKA_ADMIN_SSL_KEY_PASSWORD"
    "SIDECAR_KAFKA_ADMIN_SSL_KEYSTORE_PASSWORD" "SIDECAR_KAFKA_ADMIN_SSL_TRUSTSTORE_PASSWORD"
    "SIDECAR_WEBHOOK_URL" -}}
{{- if hasKey $settings . -}}
{{- fail (printf "settings.%s is secret, and a ConfigMap is not: put it into a Secret, and name that in settingsSecret" .) -}}
{{- end -}}
{{- end -}}

{{- if and $beside (hasKey $settings "SIDECAR_BROKER_ID") -}}
{{- fail "settings.SIDECAR_BROKER_ID would be the same beside every broker: set it in the StatefulSet, as docs/kubernetes.md says" -}}
{{- end -}}

{{- $enforcement := $settings.SIDECAR_ENFORCEMENT -}}
{{- if and $beside .Values.kubernetesEvents -}}
{{- fail "kubernetesEvents is for mode per-cluster, since beside a broker the service account is the broker's: set kubernetesEvents=false" -}}
{{- end -}}
{{- if and $beside (ne $enforcement "callback") -}}
{{- fail (printf "enforcement is %s, but the patch of mode beside-broker adds the quota callback: set mode=per-cluster" $enforcement) -}}
{{- end -}}
{{- if and .Values.strimzi.cluster (eq $enforcement "client-quotas") -}}
{{- fail "enforcement is client-quotas, but Strimzi's User Operator removes quotas that no KafkaUser has: remove enforcement" -}}
{{- end -}}
{{- if and (eq $enforcement "client-quotas") (eq $settings.SIDECAR_THROTTLE_SCOPE "volume") (not $settings.SIDECAR_REQUEST_LOG_FILE) -}}
{{- fail "throttle.scope is volume with client quotas, which need the request log of every broker: set settings.SIDECAR_REQUEST_LOG_FILE, or remove throttle.scope" -}}
{{- end -}}
{{- if and .Values.clientQuotaFloor (ne $enforcement "client-quotas") -}}
{{- fail "clientQuotaFloor is set, but the sidecar lowers no quotas: set enforcement=client-quotas" -}}
{{- end -}}
{{- if and (eq (.Values.relief).mode "delete") (not $settings.SIDECAR_RELIEF_FILE) -}}
{{- fail "relief.mode is delete, but no topic is declared: set relief.classes to the text of the file" -}}
{{- end -}}

{{- if .Values.strimzi.cluster -}}
{{- if $beside -}}
{{- fail "strimzi.cluster is set, but Strimzi adds no container to its brokers' pods: set mode=per-cluster" -}}
{{- end -}}
{{- if or .Values.tls.enabled .Values.sasl.mechanism -}}
{{- fail "strimzi.cluster brings its own TLS and login: remove tls and sasl, or remove strimzi.cluster and set bootstrapServers" -}}
{{- end -}}
{{- end -}}

{{- if not $kafka.tls -}}
{{- range $value, $secret := pick .Values.tls "caSecret" "clientSecret" -}}
{{- if $secret.name -}}
{{- fail (printf "tls.%s.name is set, but TLS is off: set tls.enabled=true" $value) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- with .Values.apiTls -}}
{{- if and $.Values.monitoring.tlsConfig (not .secret.name) -}}
{{- fail "monitoring.tlsConfig is set, but the metrics have no TLS: set apiTls.secret.name to the Secret with a certificate, or remove it" -}}
{{- end -}}
{{- if and ($.Values.callback.tlsSecret).name (not .secret.name) -}}
{{- fail "callback.tlsSecret.name is set, but the API has no TLS: set apiTls.secret.name to the Secret with its certificate, or remove it" -}}
{{- end -}}
{{- if and .clientCaSecret.name (not .secret.name) -}}
{{- fail "apiTls.clientCaSecret.name is set, but the API has no TLS: set apiTls.secret.name to the Secret with its certificate" -}}
{{- end -}}
{{- if and .clientCaSecret.name (not ($.Values.callback.tlsSecret).name) -}}
{{- fail "apiTls.clientCaSecret.name is set, and brokers would be refused: set callback.tlsSecret.name to a Secret with their certificate" -}}
{{- end -}}
{{- if and .clientCaSecret.name $.Values.monitoring.monitor (not (($.Values.monitoring.tlsConfig).cert)) -}}
{{- fail "apiTls.clientCaSecret.name is set, and Prometheus would be refused: set monitoring.tlsConfig.cert and .keySecret to its certificate and key" -}}
{{- end -}}
{{- end -}}

{{- with .Values.sasl -}}
{{- if and .mechanism (not (and .username .secret.name)) -}}
{{- fail "sasl.mechanism is set: set sasl.username, and sasl.secret.name to the Secret with the password" -}}
{{- end -}}
{{- if and (or .username .secret.name) (not .mechanism) -}}
{{- fail "sasl.username or sasl.secret.name is set: set sasl.mechanism, such as SCRAM-SHA-512" -}}
{{- end -}}
{{- end -}}

{{- if and $beside .Values.networkPolicy.enabled -}}
{{- fail "networkPolicy is for mode per-cluster, since it would shut out the clients of brokers: extend your own policy of the brokers, so that only brokers reach port 7070" -}}
{{- end -}}
{{- if and $beside .Values.besideBroker.service (hasPrefix "sidecar" $name) -}}
{{- fail (printf "a Service called %s gives the brokers' pods variables that begin as settings do, SIDECAR_: set fullnameOverride to a name that begins otherwise" $name) -}}
{{- end -}}

{{- if not $beside -}}
{{- if and .Values.state.existingClaim (not .Values.state.volumeClaim) -}}
{{- fail "state.existingClaim is set, but state.volumeClaim is false, which means no claim: remove one" -}}
{{- end -}}
{{- if gt (int .Values.replicas) 1 -}}
{{- if .Values.state.volumeClaim -}}
{{- fail (printf "replicas is %d, and they can't share a volume claim: set state.volumeClaim=false" (int .Values.replicas)) -}}
{{- end -}}
{{- else if .Values.podDisruptionBudget.enabled -}}
{{- fail "podDisruptionBudget protects nothing with one replica: set replicas above 1, or podDisruptionBudget.enabled=false" -}}
{{- end -}}
{{- end -}}

{{- if and .Values.monitoring.monitor (not (contains "throttle-sidecar" $name)) -}}
{{- fail (printf "the alert rules select sidecars by a job with throttle-sidecar in its name, and fullnameOverride is %s: add throttle-sidecar to it" $name) -}}
{{- end -}}
{{- end -}}
