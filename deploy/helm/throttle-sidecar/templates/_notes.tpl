{{/* What is left to do after an installation, with the names of this release. */}}
{{- define "throttle-sidecar.notes" -}}
{{- $name := include "throttle-sidecar.fullname" . -}}
{{- $kubectl := printf "kubectl --namespace %s" .Release.Namespace -}}
{{- $patch := printf "\"$(%s get configmap %s-brokers --output jsonpath='{.data.patch\\.yaml}')\"" $kubectl $name -}}
{{- $curl := "curl --silent --retry 9 --retry-connrefused " -}}
{{- if ((.Values.apiTls).secret).name }}{{ $curl = print $curl "--insecure " }}{{ end -}}
{{- if ((.Values.apiTls).clientCaSecret).name }}{{ $curl = print $curl "--cert tls.crt --key tls.key " }}{{ end -}}
{{- $curl = printf "%s%s://127.0.0.1:7070/v1/readers" $curl (include "throttle-sidecar.scheme" .) -}}
{{- $enforcement := (include "throttle-sidecar.settings" . | fromYaml).SIDECAR_ENFORCEMENT -}}
{{- if eq $enforcement "client-quotas" -}}
1. The brokers need nothing. In Kafka, the sidecar needs DESCRIBE, DESCRIBE_CONFIGS and ALTER_CONFIGS on the
   cluster. When you uninstall this release, a Job restores all quotas. Helm reports an error if the Job can't.
{{- else if eq $enforcement "none" -}}
1. The brokers need nothing: the sidecar only watches.
{{- else -}}
{{- with .Values.strimzi.cluster -}}
1. The brokers of {{ . }} need the quota callback. This patch adds it, and Strimzi restarts them one by one:

{{ include "throttle-sidecar.kafkaPatch" $ | indent 6 }}

   Its lists (volumes, volumeMounts, env, imagePullSecrets) and its reporters replace those of your resource.
   If the resource has such lists or reporters, or a node pool has a template of its own, add the items there
   by hand. If it has quotas of type kafka, Strimzi removes the default user quotas: first give each KafkaUser
   quotas of its own.
{{- if eq $.Values.callback.jar "configMap" }}

   The brokers mount the jar from a ConfigMap, which must be there first:

     docker run --rm --user "$(id -u)" --volume "$PWD:/out" {{ include "throttle-sidecar.image" $ }} callback copy /out
     {{ $kubectl }} create configmap {{ $.Values.callback.configMap }} --from-file=throttle-sidecar-quota-callback.jar
{{- end }}

   This command applies the patch:

     {{ $kubectl }} patch kafka {{ . }} --type merge --patch {{ $patch }}
{{- if $.Values.callback.authorizer }}

   When all brokers have the jar, this replaces the authorizer of type simple, and its superUsers stay:

     {{ $kubectl }} patch kafka {{ . }} --type json --patch {{ $patch | replace "patch\\." "authorizer\\." }}
{{- end }}
{{- else -}}
{{- if eq .Values.mode "beside-broker" -}}
1. This patch adds a sidecar and the quota callback to each pod of the StatefulSet {{ .Values.besideBroker.statefulSet }}, and restarts
   the brokers one by one:

     {{ $kubectl }} patch statefulset {{ .Values.besideBroker.statefulSet }} --patch {{ $patch }}

   If the StatefulSet is in a repository, put the patch there, such as into the patches of a kustomization.
   If its image reads a properties file, add the KAFKA_* variables of the patch there as properties.
   After an upgrade of this release, apply the patch again. A changed setting applies when a pod restarts.
{{- else -}}
1. Each broker needs the jar of the quota callback in its libs, from this command:

     docker run --volume /opt/kafka/libs:/jars --user 0 {{ include "throttle-sidecar.image" . }} callback copy /jars

   It also needs these properties. Then restart the brokers one by one:

{{ include "throttle-sidecar.propertiesFile" . | trim | indent 6 }}
{{- end }}
{{- end }}
{{- end }}

{{- if and .Values.networkPolicy.enabled (not (and .Values.strimzi.cluster (eq $enforcement "callback"))) }}

   The network policy lets the sidecar connect only to the brokers that networkPolicy.brokers selects, and only
   these to the sidecar: by default the pods with the label throttle-sidecar/reader: "true". Add the label to
   the brokers' pods, or set networkPolicy.brokers.
{{- end }}

{{- if ne $enforcement "callback" }}

2. Check that the sidecar sees the cluster, and what it would do:

     {{ $kubectl }} exec deploy/{{ $name }} -- throttle-sidecar doctor
{{- else }}

2. Check that the sidecar sees the cluster, and that brokers obey. The first command reports it if no broker
   obeys, and the second lists each broker that does:

{{- if eq .Values.mode "beside-broker" }}

     {{ $kubectl }} exec {{ .Values.besideBroker.statefulSet }}-0 --container throttle-sidecar -- throttle-sidecar check
     {{ $kubectl }} port-forward {{ .Values.besideBroker.statefulSet }}-0 7070 & {{ $curl }}
{{- else }}

     {{ $kubectl }} exec deploy/{{ $name }} -- throttle-sidecar check
     {{ $kubectl }} port-forward deploy/{{ $name }} 7070 & {{ $curl }}
{{- end }}
{{- end }}
{{- end -}}
