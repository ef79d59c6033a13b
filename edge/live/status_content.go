package live

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/berthproject/berth/core/explain"
)

// This file is the content of the status ConfigMap: YAML with the fields, the words and the
// meaning of Cluster Autoscaler (pkg/clusterstate/api, August 2026), for people and for programs
// that read it.

// Status is the content of the ConfigMap's key "status". No field is
// of Berth's own.
type Status struct {
	Time string `json:"time"` // as in the annotation lastUpdated
	// AutoscalerStatus is Initializing until the provider has listed its groups: all else is empty then.
	AutoscalerStatus string        `json:"autoscalerStatus"`
	ClusterWide      ClusterStatus `json:"clusterWide"`
	// NodeGroups are by ID. A group that the provider lists no more is missing from the next status.
	NodeGroups []NodeGroupStatus `json:"nodeGroups,omitempty"`
}

// What AutoscalerStatus may be.
const (
	statusInitializing = "Initializing" // the provider hasn't told of its groups
	statusRunning      = "Running"
)

// ClusterStatus is of the whole cluster. ScaleUp is InProgress while any group's is, otherwise
// NoActivity.
type ClusterStatus struct {
	Health    ClusterHealth `json:"health"`
	ScaleUp   Condition     `json:"scaleUp"`
	ScaleDown ScaleDown     `json:"scaleDown"`
}

// NodeGroupStatus is of one group.
type NodeGroupStatus struct {
	Name      string          `json:"name"`
	Health    NodeGroupHealth `json:"health"`
	ScaleUp   GroupScaleUp    `json:"scaleUp"`
	ScaleDown ScaleDown       `json:"scaleDown"`
}

// Condition is a status with the time at which it was last looked at, and since when it holds.
// A new leader knows no status before its own first: a change of leaders counts as a transition.
type Condition struct {
	Status             string      `json:"status,omitempty"`
	LastProbeTime      metav1.Time `json:"lastProbeTime"`
	LastTransitionTime metav1.Time `json:"lastTransitionTime"`
}

// What the status of a condition may be.
const (
	conditionHealthy      = "Healthy"
	conditionUnhealthy    = "Unhealthy"
	conditionInProgress   = "InProgress"        // nodes are coming
	conditionNoActivity   = "NoActivity"        // none are
	conditionBackoff      = "Backoff"           // the group isn't asked for nodes since some failed
	conditionCandidates   = "CandidatesPresent" // nodes could be removed
	conditionNoCandidates = "NoCandidates"      // none could
)

// ClusterHealth is Healthy while the size of the cluster may be changed, otherwise Unhealthy.
type ClusterHealth struct {
	Condition
	NodeCounts NodeCounts `json:"nodeCounts"`
}

// NodeGroupHealth is Healthy while a group has its nodes, otherwise Unhealthy.
type NodeGroupHealth struct {
	Condition
	NodeCounts NodeCounts `json:"nodeCounts"`
	// CloudProviderTarget is how many nodes the group is asked to have, MinSize and MaxSize are its limits.
	CloudProviderTarget int `json:"cloudProviderTarget"`
	MinSize             int `json:"minSize"`
	MaxSize             int `json:"maxSize"`
}

// GroupScaleUp is InProgress, Unhealthy, Backoff or NoActivity, the first that is true.
type GroupScaleUp struct {
	Condition
	BackoffInfo BackoffInfo `json:"backoffInfo"`
}

// BackoffInfo is why a group backs off; empty while it doesn't. The message is cut (maxErrorMessage).
type BackoffInfo struct {
	ErrorCode    string `json:"errorCode,omitempty"`
	ErrorMessage string `json:"errorMessage,omitempty"`
}

// maxErrorMessage is how many bytes of an error the status has: many groups may fail at once, and
// a ConfigMap holds a mebibyte.
const maxErrorMessage = 500

// ScaleDown is CandidatesPresent or NoCandidates. It was last probed when the last plan was asked
// for that looked at nodes.
type ScaleDown struct {
	Condition
	Candidates int `json:"candidates,omitempty"`
}

// NodeCounts count nodes. Unregistered are those ordered that the API doesn't show,
// LongUnregistered instances that nobody waits for any more.
type NodeCounts struct {
	Registered       RegisteredCounts `json:"registered"`
	LongUnregistered int              `json:"longUnregistered"`
	Unregistered     int              `json:"unregistered"`
}

// RegisteredCounts count nodes that the API shows. Total is the sum of the others. Those being
// deleted are nodes that the group's target doesn't include any more; one that is drained counts
// as what it is apart from that.
type RegisteredCounts struct {
	Total        int           `json:"total"`
	Ready        int           `json:"ready"`
	NotStarted   int           `json:"notStarted"`
	Suspended    int           `json:"suspended"`
	BeingDeleted int           `json:"beingDeleted,omitempty"`
	Unready      UnreadyCounts `json:"unready"`
}

// UnreadyCounts count nodes that aren't ready and have had their time to be. ResourceUnready are
// those that lack only a resource of their template, such as GPUs.
type UnreadyCounts struct {
	Total           int `json:"total"`
	ResourceUnready int `json:"resourceUnready"`
}

// StatusGroups returns the names of the node groups that the status in a ConfigMap lists: what
// Berth or a Cluster Autoscaler has written there. It is an error when that can't be read, or was
// written before the groups were known.
func StatusGroups(cm *v1.ConfigMap) ([]string, error) {
	var s Status
	if err := yaml.Unmarshal([]byte(cm.Data[statusKey]), &s); err != nil {
		return nil, fmt.Errorf("reading the key %s: %w", statusKey, err)
	}
	if s.AutoscalerStatus != statusRunning {
		return nil, fmt.Errorf("its autoscalerStatus is %q, and only one that is %s lists all node groups", s.AutoscalerStatus, statusRunning)
	}
	names := make([]string, 0, len(s.NodeGroups))
	for i := range s.NodeGroups {
		names = append(names, s.NodeGroups[i].Name)
	}
	return names, nil
}

// lastUpdatedFormat is how Cluster Autoscaler writes the time of a status.
const lastUpdatedFormat = "2006-01-02 15:04:05.999999999 -0700 MST"

// statusOf returns the status at a time. last is the status before it, from which conditions
// have since when they hold.
func statusOf(now time.Time, s *explain.ScalingStatus, last *Status) Status {
	out := Status{Time: now.UTC().Format(lastUpdatedFormat), AutoscalerStatus: statusInitializing}
	if !s.Known {
		return out
	}
	out.AutoscalerStatus = statusRunning
	before := map[string]*NodeGroupStatus{}
	for i := range last.NodeGroups {
		before[last.NodeGroups[i].Name] = &last.NodeGroups[i]
	}
	coming := false
	for i := range s.Groups {
		g := &s.Groups[i]
		coming = coming || g.Coming > 0
		old := before[g.ID]
		if old == nil {
			old = &NodeGroupStatus{}
		}
		out.NodeGroups = append(out.NodeGroups, nodeGroupStatus(now, g, s.Planned, old))
	}
	out.ClusterWide = ClusterStatus{
		Health:    ClusterHealth{healthy(s.Sick == "").since(now, &last.ClusterWide.Health.Condition), nodeCounts(&s.Nodes)},
		ScaleUp:   Condition{Status: conditionNoActivity}.since(now, &last.ClusterWide.ScaleUp),
		ScaleDown: scaleDown(s.Candidates, s.Planned, &last.ClusterWide.ScaleDown),
	}
	if coming {
		out.ClusterWide.ScaleUp = Condition{Status: conditionInProgress}.since(now, &last.ClusterWide.ScaleUp)
	}
	return out
}

// nodeGroupStatus returns the status of a group. last is the one before it, empty for a new group.
func nodeGroupStatus(now time.Time, g *explain.GroupStatus, planned time.Time, last *NodeGroupStatus) NodeGroupStatus {
	out := NodeGroupStatus{Name: g.ID, ScaleDown: scaleDown(g.Candidates, planned, &last.ScaleDown)}
	out.Health = NodeGroupHealth{
		Condition: healthy(g.Healthy).since(now, &last.Health.Condition), NodeCounts: nodeCounts(&g.NodeCounts),
		CloudProviderTarget: g.Target, MinSize: g.Min, MaxSize: g.Max,
	}
	up := Condition{Status: conditionNoActivity}
	switch {
	case g.Coming > 0:
		up.Status = conditionInProgress
	case !g.Healthy:
		up.Status = conditionUnhealthy
	case g.Backoff != nil:
		up.Status = conditionBackoff
		out.ScaleUp.BackoffInfo = BackoffInfo{ErrorCode: g.Backoff.Code, ErrorMessage: shortenTo(maxErrorMessage, g.Backoff.Reason)}
	}
	out.ScaleUp.Condition = up.since(now, &last.ScaleUp.Condition)
	return out
}

// healthy returns the condition of whatever is well or isn't.
func healthy(is bool) Condition {
	if is {
		return Condition{Status: conditionHealthy}
	}
	return Condition{Status: conditionUnhealthy}
}

// scaleDown returns a status of scale-down as of the last plan that looked at nodes.
func scaleDown(candidates int, planned time.Time, last *ScaleDown) ScaleDown {
	c := Condition{Status: conditionNoCandidates}
	if candidates > 0 {
		c.Status = conditionCandidates
	}
	return ScaleDown{c.since(planned, &last.Condition), candidates}
}

// since returns the condition as of a time: it holds since then, or since when the last did if
// that has the same status.
func (c Condition) since(now time.Time, last *Condition) Condition {
	c.LastProbeTime = metav1.NewTime(now)
	c.LastTransitionTime = c.LastProbeTime
	if last.Status == c.Status {
		c.LastTransitionTime = last.LastTransitionTime
	}
	return c
}

// nodeCounts returns the counts in the form of the status, which has fewer of them.
func nodeCounts(n *explain.NodeCounts) NodeCounts {
	return NodeCounts{
		Registered: RegisteredCounts{
			Total: n.Registered, Ready: n.Ready, NotStarted: n.NotStarted, Suspended: n.Suspended, BeingDeleted: n.Deleted,
			Unready: UnreadyCounts{Total: n.Unready, ResourceUnready: n.ResourceUnready},
		},
		LongUnregistered: n.LongUnregistered, Unregistered: n.Unregistered,
	}
}
