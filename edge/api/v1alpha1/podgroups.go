package v1alpha1

import "time"

// PodGroupList is a page of pod groups.
type PodGroupList struct {
	List
	Items []PodGroup `json:"items"`
}

// PodGroup is pods that are placed together.
type PodGroup struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	Created   time.Time `json:"created,omitzero"`
	// Policy is Gang or Basic, and MinCount how many members a gang needs at least.
	Policy   string `json:"policy,omitempty"`
	MinCount int    `json:"minCount,omitempty"`
	// Topology is the label that all members' nodes must have with one value.
	Topology string `json:"topology,omitempty"`
	// Placed members are on nodes, Pending are not, Gated are pending ones that a plugin keeps out.
	Placed  int `json:"placed"`
	Pending int `json:"pending"`
	Gated   int `json:"gated"`
	// Queue is where the group waits, "" when no member does, and Attempts how often it was tried.
	Queue    string `json:"queue,omitempty"`
	Attempts int    `json:"attempts,omitempty"`
	// Message is why it can't be tried, or what its condition says.
	Message string `json:"message,omitempty"`
}

// PodGroupDetail is where a pod group stands, and why its members wait.
type PodGroupDetail struct {
	At time.Time `json:"at"`
	PodGroup
	// Outcome is Placed, Fits (enough members would be given nodes now), Waits or Gated; "" of a group
	// without members, and of one that is gone.
	Outcome string `json:"outcome,omitempty"`
	// Known says that there is a PodGroup of the name, and not only members of one.
	Known    bool  `json:"known"`
	Priority int32 `json:"priority,omitempty"`
	// WholeDisruption says that members may only be disrupted all together.
	WholeDisruption bool `json:"wholeDisruption,omitempty"`
	// Required are labels that all members' nodes must have with one value beside Topology, and Preferred those
	// that they have with one value where that can be had, outermost first.
	Required  []string           `json:"required,omitempty"`
	Preferred []string           `json:"preferred,omitempty"`
	Condition *PodGroupCondition `json:"condition,omitempty"`
	// Permitting are the placed members that wait for others before they are bound, until Until at the
	// latest, and Fitting the pending ones that would be given nodes now.
	Permitting int       `json:"permitting,omitempty"`
	Until      time.Time `json:"until,omitzero"`
	Fitting    int       `json:"fitting,omitempty"`
	// Nodes are those of the members, the most members first, 10 at most; AllNodes is how many there
	// are, and Domains are the values of Topology on them.
	Nodes    []MemberNode `json:"nodes,omitempty"`
	AllNodes int          `json:"allNodes,omitempty"`
	Domains  []string     `json:"domains,omitempty"`
	// Queued is since when the first member waits, Tried when the group was last tried, and Backoff when
	// it is next.
	Queued  time.Time `json:"queued,omitzero"`
	Tried   time.Time `json:"tried,omitzero"`
	Backoff time.Time `json:"backoff,omitzero"`
	// Room is kept for the group, which has waited for long; without it RoomMissing is why none was found when it
	// was last looked for.
	Room        *PodGroupRoom `json:"room,omitempty"`
	RoomMissing string        `json:"roomMissing,omitempty"`
	// Why are the reasons for which members wait other than Message, and Rejections why nodes reject the
	// first member that finds none, while the places of those before it are taken.
	Why        []MemberReason `json:"why,omitempty"`
	Rejections []Rejection    `json:"rejections,omitempty"`
	// Decisions are the last about the group as a whole, the oldest first.
	Decisions []Decision `json:"decisions"`
}

// PodGroupCondition is the condition PodGroupInitiallyScheduled of a PodGroup.
type PodGroupCondition struct {
	Status  string    `json:"status"`
	Reason  string    `json:"reason"`
	Message string    `json:"message,omitempty"`
	Since   time.Time `json:"since"`
}

// PodGroupRoom is room that is kept for a group that waits.
type PodGroupRoom struct {
	// Members have room on Nodes, by name, of which there are AllNodes and 10 at most are named.
	Members  int       `json:"members"`
	Nodes    []string  `json:"nodes"`
	AllNodes int       `json:"allNodes"`
	Since    time.Time `json:"since"`
	// Until is the deadline by which pods that borrow the room must end, left out if none may borrow it. Ends
	// is when the room is released at the latest.
	Until time.Time `json:"until,omitzero"`
	Ends  time.Time `json:"ends"`
}

// MemberNode is a node with members on it.
type MemberNode struct {
	Node    string `json:"node"`
	Members int    `json:"members"`
}

// MemberReason is why some members wait.
type MemberReason struct {
	Members int    `json:"members"`
	Pod     string `json:"pod"` // the first of them, as namespace/name
	Message string `json:"message"`
}

// DeviceList is devices by driver and pool, and the claims for them.
type DeviceList struct {
	List
	// Items are by driver and pool.
	Items []DevicePool `json:"items"`
	// Claims are by namespace and name.
	Claims []DeviceClaim `json:"claims"`
}

// DevicePool is a pool of devices (ResourceSlice).
type DevicePool struct {
	Driver string `json:"driver"`
	Pool   string `json:"pool"`
	Node   string `json:"node,omitempty"` // "" when it isn't of one node
	// Devices are in its slices, Allocated are those that claims hold.
	Devices   int `json:"devices"`
	Allocated int `json:"allocated"`
}

// DeviceClaim is a ResourceClaim.
type DeviceClaim struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Allocated says that it has devices, of which Devices are "driver/pool/device".
	Allocated bool     `json:"allocated"`
	Devices   []string `json:"devices,omitempty"`
	// Pods are in its reservedFor, by name.
	Pods []string `json:"pods,omitempty"`
}
