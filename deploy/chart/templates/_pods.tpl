{{/* Parts of the pods that the Deployment makes. */}}

{{/* Where pods may and should run: what the values say, and replicas on nodes of their own. */}}
{{- define "berth.affinity" -}}
{{- $term := dict "topologyKey" "kubernetes.io/hostname" "labelSelector" (dict "matchLabels" (include "berth.selector" . | fromYaml)) }}
{{- $apart := dict }}
{{- if eq .Values.antiAffinity "required" }}
{{- $apart = dict "requiredDuringSchedulingIgnoredDuringExecution" (list $term) }}
{{- else if eq .Values.antiAffinity "preferred" }}
{{- $apart = dict "preferredDuringSchedulingIgnoredDuringExecution" (list (dict "weight" 100 "podAffinityTerm" $term)) }}
{{- end }}
{{- $affinity := deepCopy .Values.affinity }}
{{- if $apart }}{{ $_ := set $affinity "podAntiAffinity" $apart }}{{ end }}
{{- if $affinity }}{{ toYaml $affinity }}{{ end }}
{{- end }}

{{/* The provider: a container that starts before Berth and ends after it, and the check of its answers. An
     empty volume in place of the token keeps Berth's rights from the provider. */}}
{{- define "berth.providerContainers" -}}
{{- $p := .root.Values.provider -}}
- name: provider
  restartPolicy: Always
  image: {{ include "berth.image" $p.image }}
  imagePullPolicy: {{ $p.image.pullPolicy }}
  {{- with $p.command }}
  command: {{- toYaml . | nindent 2 }}
  {{- end }}
  {{- with $p.args }}
  args: {{- toYaml . | nindent 2 }}
  {{- end }}
  {{- with $p.env }}
  env: {{- toYaml . | nindent 2 }}
  {{- end }}
  {{- with $p.envFrom }}
  envFrom: {{- toYaml . | nindent 2 }}
  {{- end }}
  securityContext: {{- include "berth.confinement" .root | nindent 4 }}
  {{- with $p.resources }}
  resources: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if or $p.tls.secretName $p.socket (not $p.serviceAccountToken) $p.volumeMounts }}
  volumeMounts:
  {{- if $p.socket }}
  - {name: provider-socket, mountPath: /run/berth-provider}
  {{- end }}
  {{- if $p.tls.secretName }}
  - {name: provider-tls, mountPath: /etc/berth-provider, readOnly: true}
  {{- end }}
  {{- if not $p.serviceAccountToken }}
  - {name: no-token, mountPath: /var/run/secrets/kubernetes.io/serviceaccount, readOnly: true}
  {{- end }}
  {{- with $p.volumeMounts }}{{ toYaml . | nindent 2 }}{{ end }}
  {{- end }}
{{- if $p.check }}
- name: provider-check
  image: {{ .image }}
  imagePullPolicy: {{ .root.Values.image.pullPolicy }}
  args:
  - provider
  - check
  - {{ include "berth.providerAddress" .root }}
  - --timeout={{ $p.timeout }}
  {{- if $p.tls.secretName }}
  - --cert=/etc/berth-provider/tls.crt
  - --key=/etc/berth-provider/tls.key
  - --cacert=/etc/berth-provider/ca.crt
  {{- end }}
  securityContext: {{- include "berth.confinement" .root | nindent 4 }}
  {{- if or $p.tls.secretName $p.socket }}
  volumeMounts:
  {{- if $p.socket }}
  - {name: provider-socket, mountPath: /run/berth-provider}
  {{- end }}
  {{- if $p.tls.secretName }}
  - {name: provider-tls, mountPath: /etc/berth-provider, readOnly: true}
  {{- end }}
  {{- end }}
{{- end }}
{{- end }}
