{{/* The needs of brokers: properties, and a patch of the resource that makes their pods. */}}

{{/* What brokers mount for https: name and folder, and the keys of the Secret; empty without TLS. */}}
{{- define "throttle-sidecar.callbackTls" -}}
{{- $own := .Values.callback.tlsSecret -}}
{{- with .Values.apiTls -}}
{{- $ca := empty $own.name | ternary .secret.ca $own.ca -}}
{{- if and .secret.name (or $ca .clientCaSecret.name) -}}
name: {{ $own.name | default .secret.name | quote }}
ca: {{ $ca | quote }}
{{- /* Strimzi mounts volumes below /mnt. */}}
folder: {{ empty $.Values.strimzi.cluster | ternary "/etc" "/mnt" }}/throttle-sidecar-tls
{{- if .clientCaSecret.name }}
certificate: {{ $own.certificate | quote }}
key: {{ $own.key | quote }}
{{- end }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "throttle-sidecar.callbackTlsVolume" -}}
{{- with include "throttle-sidecar.callbackTls" . | fromYaml }}
{{- if .name }}
- name: throttle-sidecar-tls
  secret:
    secretName: {{ .name | quote }}
    items:
      {{- range compact (list .ca .certificate .key) }}
      - {key: {{ quote . }}, path: {{ quote . }}}
      {{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "throttle-sidecar.callbackTlsMount" -}}
{{- with include "throttle-sidecar.callbackTls" . | fromYaml }}
{{- if .name }}
- name: throttle-sidecar-tls
  mountPath: {{ .folder }}
  readOnly: true
{{- end }}
{{- end }}
{{- end -}}

{{- define "throttle-sidecar.brokerProperties" -}}
{{- $settings := include "throttle-sidecar.settings" . | fromYaml -}}
{{- $strimzi := .Values.strimzi.cluster -}}
{{- $excluded := .Values.callback.excludedPrincipals -}}
{{- if $strimzi -}}
{{/* The users of the brokers and of Cruise Control, as the plugin of Strimzi has it. */}}
{{- range tuple "cruise-control" "kafka" -}}
{{- $excluded = prepend $excluded (printf "User:CN=%s-%s,O=io.strimzi" $strimzi .) -}}
{{- end -}}
{{- end -}}
client.quota.callback.class: throttlesidecar.SidecarQuotaCallback
{{- if eq .Values.mode "per-cluster" }}
client.quota.callback.sidecar.url: {{ include "throttle-sidecar.url" . }}
{{- else }}
{{- $own := empty ((.Values.apiTls).secret).name | ternary "http://127.0.0.1:7070" "https://localhost:7070" }}
{{- if .Values.besideBroker.service }}
client.quota.callback.sidecar.url: {{ $own }},{{ include "throttle-sidecar.url" . }}
{{- else if ((.Values.apiTls).secret).name }}
client.quota.callback.sidecar.url: {{ $own }}
{{- end }}
{{- end }}
{{- with include "throttle-sidecar.callbackTls" . | fromYaml }}
{{- if .name }}
{{- if .ca }}
client.quota.callback.sidecar.ssl.ca.file: {{ .folder }}/{{ .ca }}
{{- end }}
{{- if .certificate }}
client.quota.callback.sidecar.ssl.certificate.file: {{ .folder }}/{{ .certificate }}
client.quota.callback.sidecar.ssl.key.file: {{ .folder }}/{{ .key }}
{{- end }}
{{- end }}
{{- end }}
{{- with $settings.SIDECAR_THROTTLE_FACTOR_FALLBACK }}
# The same without a sidecar as with one that cannot see.
client.quota.callback.sidecar.fallback: {{ . | quote }}
{{- end }}
{{- with $excluded }}
client.quota.callback.sidecar.excluded.principals: {{ join ";" . | quote }}
{{- end }}
{{- with .Values.callback.reserveBytes }}
client.quota.callback.sidecar.reserve.bytes: {{ include "throttle-sidecar.text" . | quote }}
# Releases the reserve before Kafka opens its metadata log.
kafka.metrics.reporters: throttlesidecar.ReserveReporter
{{- end }}
metric.reporters: org.apache.kafka.common.metrics.JmxReporter,throttlesidecar.SidecarMetricsReporter
{{- if and .Values.callback.authorizer (not $strimzi) }}
authorizer.class.name: throttlesidecar.SidecarAuthorizer
{{- end }}
{{- end -}}

{{/* For brokers outside Kubernetes, or of another operator. Java reads two backslashes as one. */}}
{{- define "throttle-sidecar.propertiesFile" -}}
{{- range $key, $value := include "throttle-sidecar.brokerProperties" . | fromYaml }}
{{ $key }}={{ $value | replace `\` `\\` }}
{{- end }}
{{- end -}}

{{/* A merge patch of the Kafka resource. Its lists replace those of the resource. */}}
{{- define "throttle-sidecar.kafkaPatch" -}}
{{- $jar := "throttle-sidecar-quota-callback.jar" -}}
apiVersion: kafka.strimzi.io/{{ .Values.strimzi.apiVersion }}
kind: Kafka
metadata:
  name: {{ .Values.strimzi.cluster | quote }}
spec:
  kafka:
    config:
      # Strimzi sets these on controllers, too. There the callback is off.
      {{- include "throttle-sidecar.brokerProperties" . | nindent 6 }}
    # The quotas plugin of Strimzi would take the place of the callback.
    quotas: null
    template:
      pod:
        metadata:
          labels:
            throttle-sidecar/reader: "true"
        {{- $tls := include "throttle-sidecar.callbackTlsVolume" . | trim }}
        {{- if or $tls (ne .Values.callback.jar "none") }}
        volumes:
        {{- with $tls }}
          {{- . | nindent 10 }}
        {{- end }}
        {{- end }}
        {{- if eq .Values.callback.jar "image" }}
          - name: throttle-sidecar
            image:
              reference: {{ include "throttle-sidecar.image" . }}
              pullPolicy: {{ .Values.image.pullPolicy }}
        {{- with include "throttle-sidecar.pullSecrets" . }}
        {{- . | nindent 8 }}
        {{- end }}
        {{- else if eq .Values.callback.jar "configMap" }}
          - name: throttle-sidecar
            configMap:
              name: {{ .Values.callback.configMap | quote }}
        {{- end }}
      {{- if or $tls (ne .Values.callback.jar "none") }}
      kafkaContainer:
        volumeMounts:
          {{- with include "throttle-sidecar.callbackTlsMount" . | trim }}
          {{- . | nindent 10 }}
          {{- end }}
      {{- end }}
      {{- if ne .Values.callback.jar "none" }}
          - name: throttle-sidecar
            mountPath: /mnt/throttle-sidecar
        env:
          # The start scripts of Kafka add the libs to it.
          - name: CLASSPATH
            {{- if eq .Values.callback.jar "image" }}
            value: /mnt/throttle-sidecar/opt/throttle-sidecar/lib/python3.11/site-packages/sidecar/{{ $jar }}
            {{- else }}
            value: /mnt/throttle-sidecar/{{ $jar }}
            {{- end }}
      {{- end }}
{{- end -}}

{{/*
A JSON patch, since a merge would replace any authorizer, and deny everything to everybody in a cluster
that has none. Without supportsAdminApi, Strimzi rejects each KafkaUser that has ACLs.
*/}}
{{- define "throttle-sidecar.authorizerPatch" -}}
- {op: test, path: /spec/kafka/authorization/type, value: simple}
- {op: replace, path: /spec/kafka/authorization/type, value: custom}
- {op: add, path: /spec/kafka/authorization/authorizerClass, value: throttlesidecar.SidecarAuthorizer}
- {op: add, path: /spec/kafka/authorization/supportsAdminApi, value: true}
{{- end -}}

{{/* A strategic merge patch: lists are merged by names. */}}
{{- define "throttle-sidecar.statefulSetPatch" -}}
{{- $image := include "throttle-sidecar.image" . -}}
{{/* The security context of the pod belongs to the broker, so our containers have all of theirs. */}}
{{- $user := pick (.Values.podSecurityContext | default dict) "runAsUser" "runAsGroup" "runAsNonRoot" "seccompProfile" -}}
{{- $restricted := merge (deepCopy (.Values.securityContext | default dict)) $user | toYaml -}}
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: {{ .Values.besideBroker.statefulSet | quote }}
spec:
  template:
    metadata:
      labels:
        throttle-sidecar/release: {{ include "throttle-sidecar.fullname" . | quote }}
    spec:
      {{- with include "throttle-sidecar.pullSecrets" . }}
      {{- . | nindent 6 }}
      {{- end }}
      initContainers:
        # The broker does not start without the class of its callback, so it needs this.
        - name: throttle-sidecar-callback
          image: {{ $image }}
          imagePullPolicy: {{ .Values.image.pullPolicy }}
          args: [callback, copy, /callback]
          resources:
            {{- toYaml .Values.resources | nindent 12 }}
          securityContext:
            {{- $restricted | nindent 12 }}
          volumeMounts:
            - name: throttle-sidecar-callback
              mountPath: /callback
            {{- include "throttle-sidecar.noToken" . | nindent 12 }}
      containers:
        - name: {{ .Values.besideBroker.container | quote }}
          env:
            # The start scripts of Kafka add the libs to it.
            - name: CLASSPATH
              value: /opt/throttle-sidecar/throttle-sidecar-quota-callback.jar
            # As the images of Apache and Confluent read properties: they write them to a file as they are.
            {{- range $key, $value := include "throttle-sidecar.brokerProperties" . | fromYaml }}
            - name: KAFKA_{{ $key | upper | replace "." "_" }}
              value: {{ $value | replace `\` `\\` | quote }}
            {{- end }}
          volumeMounts:
            - name: throttle-sidecar-callback
              mountPath: /opt/throttle-sidecar
              readOnly: true
            {{- with include "throttle-sidecar.callbackTlsMount" . | trim }}
            {{- . | nindent 12 }}
            {{- end }}
        - name: throttle-sidecar
          image: {{ $image }}
          imagePullPolicy: {{ .Values.image.pullPolicy }}
          args: [run]
          {{- include "throttle-sidecar.environment" . | nindent 10 }}
          ports:
            {{- if .Values.besideBroker.service }}
            - name: sidecar-api
              containerPort: 7070
            {{- end }}
            - name: sidecar-metrics
              containerPort: 7071
          # No readiness or startup probe: a sidecar that cannot see would make a healthy broker unready.
          livenessProbe:
            initialDelaySeconds: 10
            {{- include "throttle-sidecar.livenessProbe" . | nindent 12 }}
          resources:
            {{- toYaml .Values.resources | nindent 12 }}
          securityContext:
            {{- $restricted | nindent 12 }}
          volumeMounts:
            {{- include "throttle-sidecar.mounts" . | nindent 12 }}
            {{- include "throttle-sidecar.noToken" . | nindent 12 }}
      volumes:
        # None has a size limit: above it, Kubernetes would evict the whole pod, with the broker.
        - name: throttle-sidecar-callback
          emptyDir: {}
        - name: throttle-sidecar-state
          emptyDir: {}
        - name: throttle-sidecar-no-token
          emptyDir: {}
        {{- with include "throttle-sidecar.callbackTlsVolume" . | trim }}
        {{- . | nindent 8 }}
        {{- end }}
        {{- with include "throttle-sidecar.secretVolumes" . | trim }}
        {{- . | nindent 8 }}
        {{- end }}
{{- end -}}

{{/* An empty folder in place of the pod's service account token, which the sidecar does not need. */}}
{{- define "throttle-sidecar.noToken" -}}
- name: throttle-sidecar-no-token
  mountPath: /var/run/secrets/kubernetes.io/serviceaccount
  readOnly: true
{{- end -}}
