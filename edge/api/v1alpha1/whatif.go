package v1alpha1

import "time"

// WhatIf is what would happen. Nothing does: it is evaluated on the state and taken back.
type WhatIf struct {
	At time.Time `json:"at"`
	// Removed are the nodes that would be gone (?remove=NODE, repeated), and Pods how many pods like
	// Like would come (?pods=N&like=NAMESPACE/NAME).
	Removed []string `json:"removed,omitempty"`
	Pods    int      `json:"pods,omitempty"`
	Like    string   `json:"like,omitempty"`
	// Placed is how many of the moved or new pods find a node, and Left how many don't.
	Placed int `json:"placed"`
	Left   int `json:"left"`
	// Moves are the pods of removed nodes, 200 at most; Hidden are left out.
	Moves  []Move `json:"moves,omitempty"`
	Hidden int    `json:"hidden,omitempty"`
	// Nodes says how many of the new pods go to which existing node, the most first; 200 at most.
	Nodes []WhatIfNode `json:"nodes,omitempty"`
	// Why is why the rest find no node, in kube-scheduler's words: of the pods of removed nodes the first that may be read.
	Why string `json:"why,omitempty"`
	// Groups are the answers of the node groups about new pods that find no node. A group that could be bought from
	// answers WouldTake.
	Groups []GroupAnswer `json:"groups,omitempty"`
	// Saves is what the removed nodes cost.
	Saves Price `json:"saves,omitempty"`
}

// WhatIfNode is how many pods would go to a node.
type WhatIfNode struct {
	Node string `json:"node"`
	Pods int    `json:"pods"`
}
