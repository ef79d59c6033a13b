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
