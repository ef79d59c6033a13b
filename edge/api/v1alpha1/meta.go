package v1alpha1

import "time"

// Mode is what a Berth does.
type Mode string

// The modes.
const (
	// ModeLive schedules, and scales where there is a provider.
	ModeLive Mode = "live"
	// ModeAutoscaler scales beside another scheduler.
	ModeAutoscaler Mode = "autoscaler"
	// ModeShadow compares with another scheduler and writes nothing.
	ModeShadow Mode = "shadow"
	// ModeOffline answers from a file.
	ModeOffline Mode = "offline"
)

// Meta says who answers and what it can do. An instance that stands by answers it, too, and nothing else.
type Meta struct {
	At time.Time `json:"at"`
	// Version and Revision are Berth's, Go is the version of Go that it was built with.
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Go       string `json:"goVersion,omitempty"`
	// Rules is the version of Kubernetes whose scheduling rules are followed, such as 1.37.
	Rules string `json:"rules,omitempty"`
	Mode  Mode   `json:"mode"`
	// File is what an offline Berth shows, and FileKind what kind of file that is: scenario, dump,
	// recording or report.
	File     string `json:"file,omitempty"`
	FileKind string `json:"fileKind,omitempty"`
	// Leading says that this instance decides. One that stands by answers 503 to everything else.
	Leading bool `json:"leading"`
	// Identity is this instance among all, as in the Lease.
	Identity string `json:"identity,omitempty"`
	// Leader is the identity of the one that leads, "" when this instance doesn't know.
	Leader string `json:"leader,omitempty"`
	// Epoch is another one for each start of Berth. Numbers of decisions are of one epoch.
	Epoch string `json:"epoch"`
	// Since is when this instance started.
	Since time.Time `json:"since"`
	// Now is the time of the cluster: virtual in a simulation, otherwise At. From is the first.
	From time.Time `json:"from,omitzero"`
	Now  time.Time `json:"now"`
	// Profiles are the schedulerNames that it is responsible for.
	Profiles []string `json:"profiles"`
	// Provider is that of --cloud-provider, "" for none.
	Provider string `json:"provider,omitempty"`
	// Currency is that of --node-prices, "" when prices are the provider's.
	Currency string `json:"currency,omitempty"`
	// Tick is how often the stream has something new at most, and how long answers are shared.
	Tick         Duration     `json:"tick"`
	Capabilities Capabilities `json:"capabilities"`
	Viewer       Viewer       `json:"viewer"`
	// Flags are those of the command line that aren't at their defaults, by name.
	Flags map[string]string `json:"flags,omitempty"`
}

// Capabilities say which answers there are. A page of something that isn't there needs no tab.
type Capabilities struct {
	// Autoscaling says that nodes are bought and removed: groups, scale-down states, money.
	Autoscaling bool `json:"autoscaling"`
	// Prices says that some node group has a price.
	Prices bool `json:"prices"`
	// Shadow says that there is a shadow report.
	Shadow bool `json:"shadow"`
	// WhatIf says that what-ifs are answered, given the right.
	WhatIf bool `json:"whatIf"`
	// Replay says that time is virtual and over: series and decisions have all of it, and the rest is
	// of the end, or of the time that is asked for. There is no stream.
	Replay bool `json:"replay"`
	// Seek says that every path has the parameter at: a time from From to Now whose state is answered.
	Seek bool `json:"seek,omitempty"`
	// Outcomes says that there is what came of runs.
	Outcomes bool `json:"outcomes,omitempty"`
	// PodGroups and Devices say that there are some.
	PodGroups bool `json:"podGroups"`
	Devices   bool `json:"devices"`
}

// Viewer is who asks.
type Viewer struct {
	Name string `json:"name,omitempty"`
	// AllNamespaces says that nothing is hidden from the viewer.
	AllNamespaces bool `json:"allNamespaces"`
}
