{{/* Values that contradict each other are refused, each by its name. What a single value may be is in
     values.schema.json. */}}
{{- define "berth.validate" -}}
{{- include "berth.validate.decisions" . }}
{{- include "berth.validate.nodes" . }}
{{- include "berth.validate.provider" . }}
{{- include "berth.validate.pods" . }}
{{- include "berth.validate.policy" . }}
{{- end }}

{{/* Who decides, and how many. */}}
{{- define "berth.validate.decisions" -}}
{{- if and .Values.shadow.enabled (index .Values.flags "mode") }}
{{- fail "shadow.enabled and flags.mode exclude each other: a shadow compares placements (and nodes, with flags.cloud-provider) and makes no decisions; remove one of them" }}
{{- end }}
{{- if and (not .Values.shadow.enabled) (gt (int .Values.replicas) 1) (not (include "berth.elects" .)) }}
{{- fail "replicas is greater than 1 and leader election is off, so several instances would make decisions at once; set replicas to 1 or keep leader-elect on" }}
{{- end }}
{{- end }}

{{/* Where nodes come from. */}}
{{- define "berth.validate.nodes" -}}
{{- $provider := index .Values.flags "cloud-provider" | default "" }}
{{- $given := or .Values.cloudConfig .Values.cloudConfigSecret.name }}
{{- if and .Values.cloudConfig .Values.cloudConfigSecret.name }}
{{- fail "cloudConfig and cloudConfigSecret.name exclude each other; keep one of them" }}
{{- end }}
{{- if and (eq $provider "clusterapi") .Values.cloudConfig }}
{{- fail "cloudConfig is a kubeconfig with flags.cloud-provider: clusterapi, and a ConfigMap is no place for one; put it into a Secret and name that in cloudConfigSecret.name" }}
{{- end }}
{{- $mode := index .Values.flags "mode" | default "" }}
{{- if and (eq $mode "scheduler") (include "berth.scales" .) }}
{{- fail (printf "flags.mode: scheduler changes no nodes, and %s says where nodes come from; remove one of them" (ternary "provider.image.repository" "flags.cloud-provider" (ne .Values.provider.image.repository ""))) }}
{{- end }}
{{- if and (eq $mode "autoscaler") (not (include "berth.scales" .)) }}
{{- fail "flags.mode: autoscaler does nothing but change nodes, and nothing says where they come from; set flags.cloud-provider or provider.image.repository" }}
{{- end }}
{{- if and (eq (index .Values.flags "surge" | default false | toString) "true") (not (include "berth.scales" .)) }}
{{- fail "flags.surge: true replaces pods of nodes that are removed, and nothing says where nodes come from; set flags.cloud-provider or provider.image.repository, or remove flags.surge" }}
{{- end }}
{{- if and (not .Values.provider.image.repository) (ne $provider "clusterapi") (ne (not $given) (not $provider)) }}
{{- fail "flags.cloud-provider and cloudConfig go together; set both or neither" }}
{{- end }}
{{- end }}

{{/* A provider in Berth's pod. */}}
{{- define "berth.validate.provider" -}}
{{- $p := .Values.provider }}
{{- if $p.image.repository }}
{{- if not (has (index .Values.flags "cloud-provider" | default "externalgrpc") (list "externalgrpc")) }}
{{- fail (printf "provider.image.repository runs a server of node groups beside Berth, and flags.cloud-provider is %s; remove one of them" (index .Values.flags "cloud-provider")) }}
{{- end }}
{{- if or .Values.cloudConfig .Values.cloudConfigSecret.name }}
{{- fail "provider.image.repository runs a server of node groups beside Berth, for which the chart writes the configuration file; remove cloudConfig and cloudConfigSecret.name" }}
{{- end }}
{{- if not (or $p.image.tag $p.image.digest) }}
{{- fail "provider.image.repository has neither provider.image.tag nor provider.image.digest; set one of them" }}
{{- end }}
{{- if and .Values.hostNetwork (not $p.tls.secretName) (not $p.socket) }}
{{- fail "with hostNetwork everything on the node reaches the provider's port, and could remove nodes; set provider.socket or provider.tls.secretName, or hostNetwork to false" }}
{{- end }}
{{- range $arg := $p.args }}
{{- if regexMatch "^--?address$" $arg }}
{{- fail (printf "provider.args has %s and the address as two arguments; write --address=HOST:PORT as one" $arg) }}
{{- end }}
{{- if regexMatch "^--?address=" $arg }}
{{- $address := regexReplaceAll "^--?address=" $arg "" }}
{{- if $p.socket }}
{{- fail (printf "provider.args has %s, and provider.socket has Berth connect to a socket; remove one of them" $arg) }}
{{- end }}
{{- if not (hasSuffix (printf ":%d" (int $p.port)) $address) }}
{{- fail (printf "provider.args has %s, and Berth connects to provider.port, which is %d; give both the same port" $arg (int $p.port)) }}
{{- end }}
{{- if and (not $p.tls.secretName) (not (regexMatch "^(localhost|127[.][0-9.]+|\\[::1\\]):" $address)) }}
{{- fail (printf "provider.args has %s, and without provider.tls.secretName whoever reaches that address can remove nodes; use 127.0.0.1:%d, or set provider.tls.secretName" $arg (int $p.port)) }}
{{- end }}
{{- end }}
{{- end }}
{{- if and (eq (int $p.port) (int (index .Values.flags "secure-port"))) (not $p.socket) }}
{{- fail (printf "provider.port and flags.secure-port are both %d; choose another port for one of them" (int $p.port)) }}
{{- end }}
{{- else }}
{{- range $name := list "command" "args" "env" "envFrom" "volumeMounts" "socket" "check" "serviceAccountToken" }}
{{- if index $p $name }}
{{- fail (printf "provider.%s is set, and no provider runs without provider.image.repository" $name) }}
{{- end }}
{{- end }}
{{- if or $p.tls.secretName $p.image.tag $p.image.digest }}
{{- fail "provider.tls or provider.image is set, and no provider runs without provider.image.repository" }}
{{- end }}
{{- end }}
{{- end }}

{{/* The pods and their account. */}}
{{- define "berth.validate.pods" -}}
{{- if and (not .Values.serviceAccount.create) (not .Values.serviceAccount.name) }}
{{- fail "serviceAccount.create is false and serviceAccount.name is empty; name the ServiceAccount that Berth's rights are for" }}
{{- end }}
{{- if and (not .Values.serviceAccount.create) .Values.serviceAccount.annotations }}
{{- fail "serviceAccount.annotations is set and serviceAccount.create is false; annotate the ServiceAccount yourself" }}
{{- end }}
{{- if and .Values.affinity.podAntiAffinity (ne .Values.antiAffinity "none") }}
{{- fail (printf "affinity.podAntiAffinity and antiAffinity: %s exclude each other; set antiAffinity to none" .Values.antiAffinity) }}
{{- end }}
{{- range $value, $labels := dict "commonLabels" .Values.commonLabels "podLabels" .Values.podLabels }}
{{- range $label := list "app.kubernetes.io/name" "app.kubernetes.io/instance" }}
{{- if hasKey $labels $label }}
{{- fail (printf "%s has %s, by which the chart finds its pods; remove it" $value $label) }}
{{- end }}
{{- end }}
{{- end }}
{{- range $label, $_ := .Values.podLabels }}
{{- if hasKey $.Values.commonLabels $label }}
{{- fail (printf "podLabels and commonLabels both have %s; remove one of them" $label) }}
{{- end }}
{{- end }}
{{- if .Values.hostNetwork }}
{{- range .Values.extraEnv }}
{{- if eq .name "POD_NAME" }}
{{- fail "extraEnv has POD_NAME, which the chart sets with hostNetwork; remove it" }}
{{- end }}
{{- end }}
{{- end }}
{{- range .Values.extraContainers }}
{{- if has .name (list "berth" "provider" "provider-check") }}
{{- fail (printf "extraContainers has a container named %s, as the chart has; give it another name" .name) }}
{{- end }}
{{- end }}
{{- range .Values.extraVolumes }}
{{- if has .name (list "configuration" "cloud-config" "provider-tls" "provider-socket" "no-token") }}
{{- fail (printf "extraVolumes has a volume named %s, as the chart has; give it another name" .name) }}
{{- end }}
{{- end }}
{{- end }}

{{/* Whether a label selector selects a namespace that has no label but its name, "true" or nothing. What
     other labels a namespace has isn't known here; the policy itself leaves these namespaces out. */}}
{{- define "berth.selectsNamespace" -}}
{{- $labels := dict "kubernetes.io/metadata.name" .namespace }}
{{- $selects := true }}
{{- range $key, $value := .selector.matchLabels }}
{{- if ne (index $labels $key | default "") $value }}{{ $selects = false }}{{ end }}
{{- end }}
{{- range .selector.matchExpressions }}
{{- $has := hasKey $labels .key }}
{{- $among := and $has (has (index $labels .key) (.values | default list)) }}
{{- if or (and (eq .operator "In") (not $among)) (and (eq .operator "NotIn") $among) (and (eq .operator "Exists") (not $has)) (and (eq .operator "DoesNotExist") $has) }}
{{- $selects = false }}
{{- end }}
{{- end }}
{{- if $selects }}true{{ end }}
{{- end }}

{{/* Which scheduler the policy gives pods, and in which namespaces. */}}
{{- define "berth.validate.policy" -}}
{{- $p := .Values.schedulerNamePolicy }}
{{- if $p.enabled }}
{{- if semverCompare "<1.36.0-0" .Capabilities.KubeVersion.Version }}
{{- fail (printf "schedulerNamePolicy.enabled needs Kubernetes 1.36 or newer, which serve MutatingAdmissionPolicies, and this cluster has %s; set schedulerName in the pods instead" .Capabilities.KubeVersion.Version) }}
{{- end }}
{{- if or .Values.shadow.enabled (not (include "berth.schedules" .)) }}
{{- fail "schedulerNamePolicy.enabled gives pods to a Berth that places none, by shadow.enabled or flags.mode: autoscaler; remove one of them" }}
{{- end }}
{{- $names := list }}
{{- range .Values.schedulerConfiguration.profiles }}{{ $names = append $names (.schedulerName | default "default-scheduler") }}{{ end }}
{{- if eq $p.schedulerName "default-scheduler" }}
{{- fail "schedulerNamePolicy.schedulerName is default-scheduler, which pods have without a policy; give Berth's profile another name" }}
{{- end }}
{{- if not (has $p.schedulerName $names) }}
{{- fail (printf "schedulerNamePolicy.schedulerName is %s, and schedulerConfiguration.profiles has no such profile: it has %s" $p.schedulerName (join ", " ($names | default (list "default-scheduler")))) }}
{{- end }}
{{- range $namespace := list "kube-system" .Release.Namespace | uniq }}
{{- if include "berth.selectsNamespace" (dict "selector" $p.namespaceSelector "namespace" $namespace) }}
{{- fail (printf "schedulerNamePolicy.namespaceSelector selects the namespace %s, whose pods must not depend on Berth; select by a label that it doesn't have, or add the expression {key: kubernetes.io/metadata.name, operator: NotIn, values: [%s]}" $namespace (join ", " (list "kube-system" $.Release.Namespace | uniq))) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
