{{/* The name of all objects: berth for a release of that name, and else RELEASE-berth. */}}
{{- define "berth.name" -}}
{{- if contains "berth" .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-berth" (.Release.Name | trunc 34 | trimSuffix "-") }}{{ end -}}
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
{{- end }}

{{/* What decides about rights: "true" or nothing. */}}
{{- define "berth.schedules" -}}{{ if ne (default "" .Values.flags.mode) "autoscaler" }}true{{ end }}{{- end }}
{{- define "berth.configuration" -}}
{{- dict "apiVersion" "kubescheduler.config.k8s.io/v1" "kind" "KubeSchedulerConfiguration" | merge (deepCopy (ternary .Values.shadow.schedulerConfiguration .Values.schedulerConfiguration .Values.shadow.enabled)) | toYaml }}
{{- end }}
{{- define "berth.scales" -}}{{ if index .Values.flags "cloud-provider" }}true{{ end }}{{- end }}
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

{{/* An object that Berth would make itself belongs to the release, so that it goes with it:
     unless it is there and somebody else's, as Cluster Autoscaler's is. */}}
{{- define "berth.ours" -}}
{{- $there := lookup .apiVersion .kind .namespace .name }}
{{- if not $there }}true{{ else if eq (dig "metadata" "annotations" "meta.helm.sh/release-name" "" $there) .root.Release.Name }}true{{ end }}
{{- end }}
