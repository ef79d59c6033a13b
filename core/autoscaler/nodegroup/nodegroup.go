// Package nodegroup is the contract between the autoscaler and what provides
// nodes.
package nodegroup

import (
	"context"
	"fmt"
	"math"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/berthproject/berth/core/cluster"
)

// Group is one node group as its provider lists it. It is the pure
// part of Cluster Autoscaler's NodeGroup, so that the externalgrpc protocol
// and Cluster API fit behind it.
type Group struct {
	ID       string
	Min, Max int
	Target   int      // nodes asked for, launched or not
	Template *v1.Node // labels, taints and allocatable of a new node
	Price    float64  // per node and hour, 0 when unknown
	// TemplateError is why there is no Template; "" when there is one.
	TemplateError string `json:",omitempty"`
	// Unreadable is why the provider couldn't tell how the group is now; "" when it could.
	// Nothing but the ID counts then: the group is as it was.
	Unreadable string `json:",omitempty"`
	// KeepNodes is why no node of the group may be chosen for removal now; "" when one may. The group
	// may grow meanwhile.
	KeepNodes string `json:",omitempty"`
	// Options are the provider's own for this group, in place of flags; nil for none.
	Options *cluster.GroupOptions `json:",omitempty"`
	// Devices are the ResourceSlices that drivers will publish on a new node, as far as somebody
	// declares them: with drivers, pools and devices, and without a node's name. What nodes of the group
	// have shown counts more.
	Devices []resourcev1.ResourceSlice `json:",omitempty"`
	// Instances are the group's own, registered as nodes or not. Nil means that
	// the provider doesn't list them, empty that there are none.
	Instances []Instance
}

// GoneAfter is how long a provider's lists have to leave out what they had before it counts as gone: a
// provider may answer before its own cache is full, and two of its lists may be milliseconds apart. It
// is Cluster Autoscaler's default scan interval.
const GoneAfter = 10 * time.Second

// Instance is a server, virtual or not, as the provider lists it.
type Instance struct {
	ID     string // as in spec.providerID of its node
	Node   string // name of its node, "" when the provider doesn't know
	Failed string // why it will never be a node; "" when it may
	// Class is that of the failure, and Code the provider's own name for it; "" for none.
	Class ErrorClass `json:",omitempty"`
	Code  string     `json:",omitempty"`
}

// Validate names what is wrong with a group: its name, its limits, its price or its template.
func (g *Group) Validate() error {
	if g.ID == "" {
		return fmt.Errorf("node group: name is empty; give each group a name")
	}
	if err := g.ValidateLimits(); err != nil {
		return err
	}
	if err := g.ValidatePrice(); err != nil {
		return err
	}
	switch {
	case g.TemplateError != "":
		return nil
	case g.Template == nil || len(g.Template.Status.Allocatable) == 0:
		return fmt.Errorf("node group %q: template has no allocatable; set at least cpu, memory and pods, or no pod would ever fit", g.ID)
	}
	for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, v1.ResourcePods} {
		q, ok := g.Template.Status.Allocatable[name]
		if !ok || q.Cmp(resource.Quantity{}) <= 0 {
			return fmt.Errorf("node group %q: template allocatable %s is %q; it must be a positive quantity", g.ID, name, q.String())
		}
	}
	if _, err := CSIDrivers(g.Template); err != nil {
		return fmt.Errorf("node group %q: template %w", g.ID, err)
	}
	return nil
}

// ValidateLimits names what is wrong with the limits of a group.
func (g *Group) ValidateLimits() error {
	switch {
	case g.Min < 0:
		return fmt.Errorf("node group %q: min is %d; it must not be negative", g.ID, g.Min)
	case g.Min > g.Max:
		return fmt.Errorf("node group %q: min %d is greater than max %d; set min to at most %d", g.ID, g.Min, g.Max, g.Max)
	}
	if err := g.Options.Validate(); err != nil {
		return fmt.Errorf("node group %q: %w", g.ID, err)
	}
	return nil
}

// ValidatePrice names what is wrong with the price of a group.
func (g *Group) ValidatePrice() error {
	if !(g.Price >= 0) || math.IsInf(g.Price, 1) { // NaN is not at least 0
		return fmt.Errorf("node group %q: price is %v; it must be at least 0 (0 if unknown)", g.ID, g.Price)
	}
	return nil
}

// Provider makes and removes nodes. Calls may take long. An edge makes those of one group
// one at a time, those of different groups and Groups at the same time; the core sees
// their outcome as inputs.
type Provider interface {
	// Groups returns the groups as they now are, by ID.
	Groups(ctx context.Context) ([]Group, error)
	// GroupOf returns the ID of the node's group, "" for none that is known yet. It is called
	// for every node update, and for every node after Groups; it must be quick. A provider
	// that doesn't know a node finds out in Groups.
	GroupOf(node *v1.Node) string
	// IncreaseSize asks for delta more nodes in a group. An error of class OutOfResources
	// says that none of them was ordered. An error for which OutcomeUnknown is true is no
	// failure yet: the next Groups settles it. After any other error the order has failed,
	// though nodes may come all the same.
	IncreaseSize(ctx context.Context, group string, delta int) error
	// DeleteNodes removes instances from a group, each known by its ID, its
	// node's name or both, and lowers its target by their number. Instances that
	// are gone already are not an error. An error for which OutcomeUnknown is true is no
	// failure yet: the next Groups settles, for each instance, whether it goes. After any
	// other error none of them goes, as far as the provider knows.
	DeleteNodes(ctx context.Context, group string, instances []Instance) error
	// DecreaseTargetSize gives up delta instances that were asked for and don't
	// exist. It removes none.
	DecreaseTargetSize(ctx context.Context, group string, delta int) error
}
