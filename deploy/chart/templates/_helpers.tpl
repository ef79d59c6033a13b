{{/* The name of all objects: berth for a release of that name, and RELEASE-berth otherwise. Suffixes of up
     to 22 characters follow it. */}}
{{- define "berth.name" -}}
{{- $part := .Values.nameOverride | default "berth" }}
{{- if .Values.fullnameOverride }}{{ .Values.fullnameOverride }}
{{- else if contains $part .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}{{ printf "%s-%s" (.Release.Name | trunc (int (sub 39 (len $part))) | trimSuffix "-") $part }}
{{- end }}
{{- end }}

{{/* The ServiceAccount of the pods, and whether it is the one that kubectl berth expects of a release
     (edge/reach). */}}
{{- define "berth.account" -}}{{ .Values.serviceAccount.name | default (include "berth.name" .) }}{{- end }}
{{- define "berth.accountIsExpected" -}}
{{- $plain := dict "Release" .Release "Values" dict }}
{{- if and (eq (include "berth.account" .) (include "berth.name" $plain)) (eq (include "berth.leaseNamespace" .) .Release.Namespace) }}true{{ end }}
{{- end }}

{{- define "berth.selector" -}}
app.kubernetes.io/name: berth
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "berth.labels" -}}
{{ include "berth.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* What decides about rights: "true" or nothing. */}}
{{- define "berth.schedules" -}}{{ if ne (default "" .Values.flags.mode) "autoscaler" }}true{{ end }}{{- end }}
{{- define "berth.configuration" -}}
{{- dict "apiVersion" "kubescheduler.config.k8s.io/v1" "kind" "KubeSchedulerConfiguration" | merge (deepCopy (ternary .Values.shadow.schedulerConfiguration .Values.schedulerConfiguration .Values.shadow.enabled)) | toYaml }}
{{- end }}
{{/* Where nodes come from, "" for a Berth that only schedules. A provider in Berth's own pod is a server. */}}
{{- define "berth.provider" -}}{{ if .Values.provider.image.repository }}externalgrpc{{ else }}{{ index .Values.flags "cloud-provider" | default "" }}{{ end }}{{- end }}
{{- define "berth.scales" -}}{{ if include "berth.provider" . }}true{{ end }}{{- end }}
{{/* The text of the provider's configuration file that the chart writes. */}}
{{- define "berth.cloudConfig" -}}
{{- if .Values.provider.image.repository -}}
address: {{ include "berth.providerAddress" . }}
grpc_timeout: {{ .Values.provider.timeout }}
{{- if .Values.provider.tls.secretName }}
cert: /etc/berth-provider/tls.crt
key: /etc/berth-provider/tls.key
cacert: /etc/berth-provider/ca.crt
{{- end }}
{{- else }}{{ .Values.cloudConfig }}{{ end }}
{{- end }}
{{- define "berth.image" -}}
{{- if .digest }}{{ printf "%s@%s" .repository .digest | quote }}{{ else }}{{ printf "%s:%s" .repository .tag | quote }}{{ end }}
{{- end }}
{{/* What keeps pods, and a container, from everything that they don't need. */}}
{{- define "berth.podConfinement" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end }}
{{- define "berth.confinement" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}
{{- define "berth.elects" -}}
{{- if not .Values.shadow.enabled }}
{{- $file := (.Values.schedulerConfiguration.leaderElection | default dict) }}
{{- $elects := true }}
{{- if hasKey $file "leaderElect" }}{{ $elects = $file.leaderElect }}{{ end }}
{{- if not (include "berth.schedules" .) }}{{ $elects = true }}{{ end }}
{{- if hasKey .Values.flags "leader-elect" }}{{ $elects = index .Values.flags "leader-elect" }}{{ end }}
{{- if eq (toString $elects) "true" }}true{{ end }}
{{- end }}
{{- end }}

{{/* The Lease that Berth holds. */}}
{{- define "berth.leaseName" -}}
{{- $file := (.Values.schedulerConfiguration.leaderElection | default dict) }}
{{- if include "berth.schedules" . }}{{ $file.resourceName | default "berth" }}{{ else }}cluster-autoscaler{{ end }}
{{- end }}
{{- define "berth.leaseNamespace" -}}
{{- $file := (.Values.schedulerConfiguration.leaderElection | default dict) }}
{{- if include "berth.schedules" . }}{{ $file.resourceNamespace | default "kube-system" }}{{ else }}kube-system{{ end }}
{{- end }}

{{/* Whether Berth looks for a kube-scheduler or a Cluster Autoscaler that is running: one whose Lease
     it uses itself it needn't look for. The profiles may be edited in the ConfigMap later. */}}
{{- define "berth.looksForScheduler" -}}
{{- $shared := and (include "berth.elects" .) (eq (include "berth.leaseName" .) "kube-scheduler") (eq (include "berth.leaseNamespace" .) "kube-system") }}
{{- if and (include "berth.schedules" .) (not .Values.shadow.enabled) (not $shared) (not (index .Values.flags "allow-second-scheduler")) }}true{{ end }}
{{- end }}
{{- define "berth.looksForAutoscaler" -}}
{{- $shared := and (include "berth.elects" .) (eq (include "berth.leaseName" .) "cluster-autoscaler") (eq (include "berth.leaseNamespace" .) (include "berth.scalingNamespace" .)) }}
{{- if and (include "berth.scales" .) (not .Values.shadow.enabled) (not $shared) (not (index .Values.flags "allow-second-autoscaler")) }}true{{ end }}
{{- end }}

{{/* The autoscaler's ConfigMaps. */}}
{{- define "berth.scalingNamespace" -}}{{ .Values.flags.namespace | default "kube-system" }}{{- end }}
{{- define "berth.statusName" -}}
{{- $written := not .Values.shadow.enabled }}
{{- if and $written (hasKey .Values.flags "write-status-configmap") }}{{ $written = index .Values.flags "write-status-configmap" }}{{ end }}
{{- if eq (toString $written) "true" }}{{ index .Values.flags "status-config-map-name" | default "cluster-autoscaler-status" }}{{ end }}
{{- end }}

{{/* Where the provider in Berth's pod serves. */}}
{{- define "berth.providerAddress" -}}
{{ if .Values.provider.socket }}unix:///run/berth-provider/provider.sock{{ else }}localhost:{{ .Values.provider.port }}{{ end }}
{{- end }}
