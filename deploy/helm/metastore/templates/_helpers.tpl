{{- define "metastore.name" -}}
{{- .Release.Name | trunc 53 | trimSuffix "-" -}}
{{- end }}

{{- define "metastore.selector" -}}
app.kubernetes.io/name: metastore
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "metastore.labels" -}}
{{ include "metastore.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "metastore.serviceAccount" -}}
{{- if .Values.serviceAccount.name }}{{ .Values.serviceAccount.name }}{{ else if .Values.serviceAccount.create }}{{ include "metastore.name" . }}{{ else }}default{{ end }}
{{- end }}

{{/* The scheme of requests by probes and Prometheus: TLS where nothing else is accepted. */}}
{{- define "metastore.scheme" -}}
{{- if and .Values.tls.secretName .Values.tls.required }}HTTPS{{ else }}HTTP{{ end }}
{{- end }}

{{/* A setting's value as the environment takes it: lists with commas, mappings as JSON. */}}
{{- define "metastore.value" -}}
{{- if kindIs "slice" . }}{{ join "," . }}{{ else if kindIs "map" . }}{{ toJson . }}{{ else if kindIs "float64" . }}{{ . | toJson }}{{ else }}{{ . }}{{ end }}
{{- end }}

{{- define "metastore.check" -}}
{{- if not .Values.settings.authentication }}
{{- fail "settings.authentication is missing; it sets the accepted logins: users, ldap, jwt, certificate, kerberos, token, or anonymous for everybody under any name" }}
{{- end }}
{{- if not (or .Values.settings.warehouse .Values.secrets.warehouse) }}
{{- fail "settings.warehouse says where managed tables lie, such as s3a://bucket/: a folder of the pod would go with it" }}
{{- end }}
{{- if not .Values.secrets.db }}
{{- fail "secrets.db names the Secret with the database's URL: {name: SECRET, key: KEY}" }}
{{- end }}
{{- range $name, $_ := .Values.settings }}
{{- if has $name (list "host" "port" "admin_port" "admin_host" "data_directory" "tls_certificate" "tls_key" "tls_client_ca" "tls_required" "drain_notice" "drain_timeout") }}
{{- fail (printf "settings.%s is the chart's own: see service, adminPort, tls and drain" $name) }}
{{- end }}
{{- if hasKey $.Values.secrets $name }}
{{- fail (printf "%s stands in settings and in secrets" $name) }}
{{- end }}
{{- end }}
{{- end }}
