{{/* The parts that a pod of the Deployment and a pod of a broker have in common. */}}

{{- define "throttle-sidecar.environment" -}}
envFrom:
  - configMapRef:
      name: {{ include "throttle-sidecar.fullname" . }}
  {{- with .Values.settingsSecret }}
  - secretRef:
      name: {{ . | quote }}
  {{- end }}
{{- end -}}

{{- define "throttle-sidecar.mounts" -}}
- name: throttle-sidecar-state
  mountPath: /var/lib/throttle-sidecar
{{- range $folder, $_ := include "throttle-sidecar.secrets" . | fromYaml }}
- name: throttle-sidecar-{{ $folder }}
  mountPath: /etc/throttle-sidecar/{{ $folder }}
  readOnly: true
{{- end }}
{{- if include "throttle-sidecar.files" . }}
- name: throttle-sidecar-files
  mountPath: /etc/throttle-sidecar/files
  readOnly: true
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "throttle-sidecar.secretVolumes" -}}
{{- range $folder, $name := include "throttle-sidecar.secrets" . | fromYaml }}
- name: throttle-sidecar-{{ $folder }}
  secret:
    secretName: {{ $name | quote }}
    {{- if eq $.Values.mode "per-cluster" }}
    # For the group, which is fsGroup.
    defaultMode: 0440
    {{- else }}
    # Otherwise a Secret that is missing would prevent the start of the broker, too.
    optional: true
    {{- end }}
{{- end }}
{{- if include "throttle-sidecar.files" . }}
- name: throttle-sidecar-files
  configMap:
    name: {{ include "throttle-sidecar.fullname" . }}-files
    # Neither a broker nor the Job of an uninstallation waits for it.
    optional: true
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The kubelet checks no certificate, and needs none for this path. */}}
{{- define "throttle-sidecar.probe" -}}
httpGet:
  path: /healthz
  port: sidecar-metrics
  {{- if ((.Values.apiTls).secret).name }}
  scheme: HTTPS
  {{- end }}
{{- end -}}

{{- define "throttle-sidecar.livenessProbe" -}}
{{ include "throttle-sidecar.probe" . }}
periodSeconds: 10
timeoutSeconds: 3
failureThreshold: 3
{{- end -}}

{{- define "throttle-sidecar.pullSecrets" -}}
{{- with .Values.imagePullSecrets -}}
imagePullSecrets:
  {{- range . }}
  - name: {{ . | quote }}
  {{- end }}
{{- end -}}
{{- end -}}

{{/* The parts that the pod of the Deployment and that of the uninstallation have in common. */}}
{{- define "throttle-sidecar.podSettings" -}}
serviceAccountName: {{ include "throttle-sidecar.serviceAccountName" . | quote }}
# The variables of a Service called sidecar-something would be taken for settings.
enableServiceLinks: false
{{- with include "throttle-sidecar.pullSecrets" . }}
{{- . | nindent 0 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  {{- toYaml .Values.podSecurityContext | nindent 2 }}
{{- end -}}
