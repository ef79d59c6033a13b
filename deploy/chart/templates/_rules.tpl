{{/* What Berth may do, and no more; it reads no secret. Each list is a ClusterRole of its own,
     for what its name says. devcluster/e2e compares them with what is asked of an API server. */}}

{{- define "berth.rules.watching" }}
- apiGroups: [""]
  resources: [nodes, pods, services, replicationcontrollers, namespaces, persistentvolumes, persistentvolumeclaims]
  verbs: [list, watch]
- apiGroups: [apps]
  resources: [replicasets, statefulsets]
  verbs: [list, watch]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [list, watch]
- apiGroups: [storage.k8s.io]
  resources: [storageclasses, csinodes, csidrivers, csistoragecapacities, volumeattachments]
  verbs: [list, watch]
# Devices, and who has them, where the API server serves this version.
- apiGroups: [resource.k8s.io]
  resources: [deviceclasses, resourceslices, resourceclaims, devicetaintrules]
  verbs: [list, watch]
# Which pods are placed together, where the API server serves this version.
- apiGroups: [scheduling.k8s.io]
  resources: [podgroups]
  verbs: [list, watch]
# What asks for headroom, where these kinds are defined, and what they refer to.
- apiGroups: [autoscaling.x-k8s.io]
  resources: [capacitybuffers, provisioningrequests]
  verbs: [list, watch]
- apiGroups: [""]
  resources: [podtemplates]
  verbs: [list, watch]
- apiGroups: [apps]
  resources: [deployments]
  verbs: [list, watch]
{{- end }}

{{- define "berth.rules.reporting" }}
# The first of a series of events, and the others of it.
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
- apiGroups: [""]
  resources: [pods/status]
  verbs: [patch]
- apiGroups: [autoscaling.x-k8s.io]
  resources: [capacitybuffers/status, provisioningrequests/status]
  verbs: [patch]
- apiGroups: [scheduling.k8s.io]
  resources: [podgroups/status]
  verbs: [patch]
{{- end }}

{{- define "berth.rules.scheduling" }}
- apiGroups: [""]
  resources: [pods/binding]
  verbs: [create]
# A bind that conflicts may have succeeded before; victims of preemption are deleted.
- apiGroups: [""]
  resources: [pods]
  verbs: [get, delete]
# Volumes are reserved for claims, claims for nodes.
- apiGroups: [""]
  resources: [persistentvolumes, persistentvolumeclaims]
  verbs: [update]
# Devices are allocated to claims, and claims are made for extended resources. Since Kubernetes 1.37
# the API server asks for resourceclaims/binding when an allocation or reservation is written.
- apiGroups: [resource.k8s.io]
  resources: [resourceclaims]
  verbs: [get, create, update, delete]
- apiGroups: [resource.k8s.io]
  resources: [resourceclaims/status, resourceclaims/binding]
  verbs: [update]
{{- end }}

{{- define "berth.rules.scaling" }}
# What a new node has to run, and what replaces pods that are evicted.
- apiGroups: [apps]
  resources: [daemonsets]
  verbs: [list, watch]
- apiGroups: [batch]
  resources: [jobs]
  verbs: [list, watch]
{{- if not .Values.shadow.enabled }}
# Taints and the cordon.
- apiGroups: [""]
  resources: [nodes]
  verbs: [get, patch]
- apiGroups: [""]
  resources: [pods/eviction]
  verbs: [create]
{{- end }}
{{- end }}

{{- define "berth.rules.surge" }}
# Deployments that make a pod's successor first.
- apiGroups: [apps]
  resources: [deployments]
  verbs: [get, patch]
{{- end }}

{{- define "berth.rules.simulated" }}
# The simulated provider creates and deletes Node objects.
- apiGroups: [""]
  resources: [nodes]
  verbs: [create, delete]
- apiGroups: [""]
  resources: [nodes/status]
  verbs: [patch]
{{- end }}

{{- define "berth.rules.clusterapi" }}
# Node groups of Cluster API: what there is, Machines that are to go, and sizes.
- apiGroups: [cluster.x-k8s.io]
  resources: [machinedeployments, machinesets, machinepools, machines]
  verbs: [list, watch]
{{- if not .Values.shadow.enabled }}
- apiGroups: [cluster.x-k8s.io]
  resources: [machines]
  verbs: [patch]
- apiGroups: [cluster.x-k8s.io]
  resources: [machinedeployments/scale, machinesets/scale, machinepools/scale]
  verbs: [get, update]
{{- end }}
{{- end }}

{{/* The Lease says which Berth leads. */}}
{{- define "berth.viewer.lease" }}
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [{{ include "berth.leaseName" . | quote }}]
  verbs: [get]
{{- end }}

{{/* The names of the lists that these values need. In a management cluster of its own Berth has the
     rights of that one's kubeconfig. */}}
{{- define "berth.needs" -}}
{{- $decides := not .Values.shadow.enabled }}
{{- $provider := include "berth.provider" . -}}
watching
{{- if $decides }} reporting{{ end }}
{{- if and $decides (include "berth.schedules" .) }} scheduling{{ end }}
{{- if include "berth.scales" . }} scaling{{ end }}
{{- if and $decides (eq (toString .Values.flags.surge) "true") }} surge{{ end }}
{{- if and $decides (eq $provider "simulated") }} simulated{{ end }}
{{- if and (eq $provider "clusterapi") (not .Values.cloudConfigSecret.name) }} clusterapi{{ end }}
{{- end }}
