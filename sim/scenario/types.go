// Package scenario is the file format of `berth simulate`: a cluster, what
// comes to it, what goes wrong, and what is expected of the outcome.
//
//	types.go     the format. docs/reference/scenario.schema.json has its comments
//	faults.go    the kinds of faults
//	source.go    files as text: which line a field is on
//	validate.go  what a scenario may say
//	load.go      runs, of files
//	manifest.go  manifests and dumps, object by object
//	objects.go   the objects of a run
//	devices.go   device classes and claims in short
//	podgroups.go pod groups in short
//	expand.go    objects of what a scenario says in short
//	notes.go     what a person should know before the run
//	summary.go   the outcome, and how it compares with what is expected
//
// What must hold:
//   - everything that can be wrong with the input is an error that names file, line and field, before
//     a world is made;
//   - a run depends on the texts of its files alone, and what arrives when is the same under every
//     policy;
//   - names of fields and metrics stay, since files and CI pipelines of users have them.
package scenario

import (
	"cmp"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/internal/simulateddevices"
	"github.com/berthproject/berth/internal/simulatedgroup"
)

// APIVersion and Kind head a scenario.
const (
	APIVersion = "berth.dev/v1alpha1"
	Kind       = "Scenario"
	PolicyKind = "Policy"
)

// PolicyFile is a policy in a file of its own, under which scenarios are run
// instead of under theirs.
type PolicyFile struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   Metadata `json:"metadata,omitempty"`
	Spec       Policy   `json:"spec"`
}

// Scenario is one run of the virtual world.
type Scenario struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   Metadata `json:"metadata,omitempty"`
	Spec       Spec     `json:"spec"`
}

// Metadata names a scenario.
type Metadata struct {
	// Name of the scenario in outputs; that of the file when absent.
	Name string `json:"name,omitempty"`
	// Description is shown on the page of --report.
	Description string `json:"description,omitempty"`
}

// Spec is the world and its history.
type Spec struct {
	// Seed of everything random. Equal scenarios with equal seeds end equally.
	Seed uint64 `json:"seed,omitempty"`
	// NodeGroups are what the cloud can make nodes of.
	NodeGroups []NodeGroup `json:"nodeGroups,omitempty"`
	// Nodes exist at the beginning.
	Nodes []Nodes `json:"nodes,omitempty"`
	// Objects are Kubernetes objects that exist at the beginning, inline: nodes,
	// pods, disruption budgets, services, controllers.
	Objects []map[string]any `json:"objects,omitempty"`
	// Files are dumps (`kubectl get nodes,pods,pdb -A -o yaml` or json) and
	// manifests, relative to the scenario's folder. Pods may carry the
	// annotations berth.dev/arrive-after and berth.dev/run-for.
	Files []string `json:"files,omitempty"`
	// DeviceClasses exist at the beginning.
	DeviceClasses []DeviceClass `json:"deviceClasses,omitempty"`
	// Traces are recorded workloads.
	Traces []Trace `json:"traces,omitempty"`
	// Workload is what arrives at the cluster.
	Workload []Workload `json:"workload,omitempty"`
	// Images say how large container images are. Others take no time to pull.
	Images []Image `json:"images,omitempty"`
	// API is how the API server behaves.
	API API `json:"api,omitempty"`
	// Kubelet is how nodes run pods.
	Kubelet Kubelet `json:"kubelet,omitempty"`
	// Storage is what nodes write their disks through.
	Storage Storage `json:"storage,omitempty"`
	// Registry is what images are pulled from.
	Registry Registry `json:"registry,omitempty"`
	// Faults are what goes wrong.
	Faults []Fault `json:"faults,omitempty"`
	// Policy is how Berth is configured.
	Policy Policy `json:"policy,omitempty"`
	// Expect is what must be true of the summary in the end.
	Expect []Expectation `json:"expect,omitempty"`
	// End is when the run is over.
	End End `json:"end,omitempty"`
}

// NodeGroup is a node group of the cloud, with what a simulated provider's
// group has and more.
type NodeGroup struct {
	simulatedgroup.GroupConfig `json:",inline"`
	// Initial nodes exist, ready, at the beginning.
	Initial int `json:"initial,omitempty"`
	// Adopt puts the nodes of dumps that have all these labels into the group.
	Adopt map[string]string `json:"adopt,omitempty"`
	// Boot is what an instance writes before it registers, at Rate at most.
	Boot Boot `json:"boot,omitempty"`
	// DiskRate is how many bytes a second a node can write; no limit when absent.
	DiskRate *resource.Quantity `json:"diskRate,omitempty"`
	// Stock is how many instances the cloud has of this kind; no limit when
	// absent. Orders beyond it are refused.
	Stock *int `json:"stock,omitempty"`
	// Images are in the node image already and needn't be pulled.
	Images []string `json:"images,omitempty"`
	// PriceHidden says that the cloud charges pricePerHour and doesn't tell Berth: it learns a price
	// from nodePrices only.
	PriceHidden bool `json:"priceHidden,omitempty"`
	// Devices that each node's drivers publish.
	Devices []simulateddevices.Devices `json:"devices,omitempty"`
	// DevicesAfter is how long after a new node is ready they do (1 to 10 s when absent). Nodes that exist
	// at the beginning have theirs.
	DevicesAfter *simulatedgroup.Span `json:"devicesAfter,omitempty"`
	// DevicesTold says that the cloud tells Berth which devices a new node will have. Otherwise Berth
	// learns it from nodes.
	DevicesTold bool `json:"devicesTold,omitempty"`
}

// Boot is what an instance writes while it starts.
type Boot struct {
	// Bytes that are written before the instance registers; none when absent.
	Bytes *resource.Quantity `json:"bytes,omitempty"`
	// Rate in bytes a second that the boot itself can do; no limit when absent.
	Rate *resource.Quantity `json:"rate,omitempty"`
}

// Nodes are equal nodes.
type Nodes struct {
	// Name of the node, or with Count its prefix.
	Name string `json:"name"`
	// Count of the nodes; one, without a number behind its name, when 0.
	Count int `json:"count,omitempty"`
	// Zones are given to the nodes in turn.
	Zones []string `json:"zones,omitempty"`
	// Template is what each of the nodes is like.
	Template simulatedgroup.Template `json:"template"`
	// Devices that each node has.
	Devices []simulateddevices.Devices `json:"devices,omitempty"`
}

// Trace is a recorded workload.
type Trace struct {
	// Format is openb: the openb GPU traces, a folder with a node and a pod list.
	Format string `json:"format"`
	// Path of the folder, relative to the scenario's.
	Path string `json:"path"`
	// Limit is how many pods are taken, the first ones; all when 0.
	Limit int `json:"limit,omitempty"`
	// Speed is how many times faster than recorded the pods arrive and end; 1 when 0.
	Speed float64 `json:"speed,omitempty"`
}

// Workload is a set of equal pods, or of equal controllers of such pods.
type Workload struct {
	// Name of the workload: the names of its objects begin with it.
	Name string `json:"name"`
	// Namespace of its objects; default when absent.
	Namespace string `json:"namespace,omitempty"`
	// Kind is Pod (when absent), Job, ReplicaSet, StatefulSet or DaemonSet.
	Kind string `json:"kind,omitempty"`
	// Copies of the controller, or of the group of pods; 1 when 0.
	Copies int `json:"copies,omitempty"`
	// Count of the pods of each copy: pods, completions or replicas.
	Count int `json:"count,omitempty"`
	// Parallelism of a Job: pods at a time; Count when 0.
	Parallelism int `json:"parallelism,omitempty"`
	// Arrive is when copies, or the single pods of kind Pod, arrive.
	Arrive Arrive `json:"arrive,omitempty"`
	// RunFor is how long a pod runs; for ever when absent.
	RunFor *simulatedgroup.Span `json:"runFor,omitempty"`
	// Resize changes what each pod requests, in place, after it has begun to run.
	Resize *Resize `json:"resize,omitempty"`
	// DeleteAfter is how long after its arrival a copy is deleted; never when 0.
	DeleteAfter metav1.Duration `json:"deleteAfter,omitempty"`
	// Service creates a Service that selects the pods of each copy.
	Service bool `json:"service,omitempty"`
	// MaxUnavailable creates a PodDisruptionBudget that allows so many pods of a copy
	// to be unavailable.
	MaxUnavailable *int `json:"maxUnavailable,omitempty"`
	// Claims are what each pod claims of the nodes' devices.
	Claims []Claim `json:"claims,omitempty"`
	// PodGroup makes the pods of each copy members of a PodGroup of the copy's name.
	PodGroup *PodGroup `json:"podGroup,omitempty"`
	// Template of the pods. The label app is added where it is missing.
	Template v1.PodTemplateSpec `json:"template"`
}

// Resize is a change in place of what a running pod requests, as a user or a vertical autoscaler makes it. A pod that
// replaces another requests what the template says, and is resized anew.
type Resize struct {
	// After is how long a pod has run by then.
	After simulatedgroup.Span `json:"after"`
	// Requests are those of the first container from then on; others stay as they are.
	Requests v1.ResourceList `json:"requests"`
}

// Arrive is when the copies arrive.
type Arrive struct {
	// After is when the first one arrives.
	After metav1.Duration `json:"after,omitempty"`
	// Over is how long it takes until all have arrived.
	Over metav1.Duration `json:"over,omitempty"`
	// Pattern is even (when absent) or poisson.
	Pattern string `json:"pattern,omitempty"`
}

// Image is a container image.
type Image struct {
	// Name as containers have it.
	Name string `json:"name"`
	// Layers are pulled side by side.
	Layers []Layer `json:"layers"`
}

// Layer is a part of an image that other images may share.
type Layer struct {
	// Digest identifies the layer; when absent, no other image shares it.
	Digest string `json:"digest,omitempty"`
	// Bytes written to a node that does not have the layer.
	Bytes resource.Quantity `json:"bytes"`
}

// API is how the API server and the way to it behave.
type API struct {
	// CallLatency is how long a call takes (20 to 60 ms when absent).
	CallLatency *simulatedgroup.Span `json:"callLatency,omitempty"`
	// WatchLatency is how long it takes until a change is seen (10 to 100 ms
	// when absent).
	WatchLatency *simulatedgroup.Span `json:"watchLatency,omitempty"`
	// BindsPerSecond is how many binds the server takes (1000 when 0).
	BindsPerSecond float64 `json:"bindsPerSecond,omitempty"`
	// CloudLatency is how long a call to the cloud takes (0.5 to 2 s when absent).
	CloudLatency *simulatedgroup.Span `json:"cloudLatency,omitempty"`
	// PlanLatency is how long Berth's planner takes (100 ms when 0).
	PlanLatency metav1.Duration `json:"planLatency,omitempty"`
}

// Kubelet is how nodes run pods.
type Kubelet struct {
	// Start is how long a pod takes from having its images to running (0.5 to
	// 2 s when absent).
	Start *simulatedgroup.Span `json:"start,omitempty"`
	// Stop is how long a pod takes to end when asked to, its grace period at
	// most (0.5 to 5 s when absent).
	Stop *simulatedgroup.Span `json:"stop,omitempty"`
}

// Storage is what boots and image pulls write through.
type Storage struct {
	// SharedRate is how many bytes a second all nodes together can write; no
	// limit when absent.
	SharedRate *resource.Quantity `json:"sharedRate,omitempty"`
	// PullStreams is how many writers the pull of an image is (layers are
	// pulled side by side), against one of a boot; 1 when 0. A writer gets an
	// equal share.
	PullStreams float64 `json:"pullStreams,omitempty"`
	// Knee is how many writers the storage sustains; with more, the rate of all
	// together falls as (knee/writers) to the power of Collapse. Disabled
	// when 0.
	Knee float64 `json:"knee,omitempty"`
	// Collapse is that power; 1 when 0.
	Collapse float64 `json:"collapse,omitempty"`
}

// Registry is what images are pulled from.
type Registry struct {
	// ConnectionRate is how many bytes a second the registry sends over one
	// connection; no limit when absent. A pull has a connection for each of its
	// Storage.PullStreams.
	ConnectionRate *resource.Quantity `json:"connectionRate,omitempty"`
}

// Fault is something that goes wrong between From and Until.
type Fault struct {
	// Kind is one of those that docs/reference/scenario.md lists.
	Kind string `json:"kind"`
	// From is when the fault begins; at once when absent.
	From metav1.Duration `json:"from,omitempty"`
	// Until is when it ends; never when absent.
	Until metav1.Duration `json:"until,omitempty"`
	// Rate is the probability, 0 to 1, that a call, a launch, a pod or a controller is hit.
	Rate float64 `json:"rate,omitempty"`
	// PerHour is how often an event happens, on average: 3600 at most, which is one per second.
	PerHour float64 `json:"perHour,omitempty"`
	// At are times of events.
	At []metav1.Duration `json:"at,omitempty"`
	// For is how long an event lasts, or how much longer than its grace period a pod takes
	// to terminate.
	For metav1.Duration `json:"for,omitempty"`
	// Group limits the fault to a node group.
	Group string `json:"group,omitempty"`
}

// Policy is how Berth is configured.
type Policy struct {
	// SchedulerConfig is the path of a KubeSchedulerConfiguration, relative to
	// the scenario's folder.
	SchedulerConfig string `json:"schedulerConfig,omitempty"`
	// EmulatedVersion is the version of Kubernetes whose scheduling rules are followed, 1.36 or 1.37.
	// The default value is the newest.
	EmulatedVersion string `json:"emulatedVersion,omitempty"`
	// Flags of the autoscaler, as for `berth run`.
	Flags []string `json:"flags,omitempty"`
	// ExpanderPriorities are for the flag --expander=priority: what the ConfigMap
	// cluster-autoscaler-priority-expander has under the key priorities, a YAML map of
	// priorities to lists of regular expressions.
	ExpanderPriorities string `json:"expanderPriorities,omitempty"`
	// NodePrices is the path of a price file, as for the flag --node-prices, relative to the
	// scenario's folder. Its prices are what Berth is told; a group with a pricePerHour costs that.
	NodePrices string `json:"nodePrices,omitempty"`
	// MemberByMember has nodes bought for the members of pod groups as Cluster Autoscaler 1.37 buys them, which knows of no
	// groups: for each member as for a pod that may be anywhere. No place is kept for it.
	MemberByMember bool `json:"memberByMember,omitempty"`
}

// Expectation is an assertion on a number of the summary.
type Expectation struct {
	// Metric is a name of the JSON summary, such as pods.completed.
	Metric string `json:"metric"`
	// The value that the metric must have.
	Is *float64 `json:"is,omitempty"`
	// The least value that it may have.
	Min *float64 `json:"min,omitempty"`
	// The largest value that it may have.
	Max *float64 `json:"max,omitempty"`
}

// End is when a run is over: at a time, or when nothing has happened for
// Quiet and nothing is due.
type End struct {
	// At is the latest end (48 h when absent).
	At metav1.Duration `json:"at,omitempty"`
	// Quiet is how long nothing must have happened (45 min when absent).
	Quiet metav1.Duration `json:"quiet,omitempty"`
}

// Latest is when the run is over at the latest.
func (e End) Latest() time.Duration { return cmp.Or(e.At.Duration, 48*time.Hour) }
