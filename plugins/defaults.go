// Package plugins assembles the placement rules into profiles.
package plugins

import (
	"time"

	"github.com/berthproject/berth/cluster"
	"github.com/berthproject/berth/framework"
	"github.com/berthproject/berth/plugins/imagelocality"
	"github.com/berthproject/berth/plugins/interpodaffinity"
	"github.com/berthproject/berth/plugins/nodeaffinity"
	"github.com/berthproject/berth/plugins/nodedeclaredfeatures"
	"github.com/berthproject/berth/plugins/nodename"
	"github.com/berthproject/berth/plugins/nodeports"
	"github.com/berthproject/berth/plugins/noderesources"
	"github.com/berthproject/berth/plugins/nodeunschedulable"
	"github.com/berthproject/berth/plugins/nodevolumelimits"
	"github.com/berthproject/berth/plugins/podtopologyspread"
	"github.com/berthproject/berth/plugins/prioritysort"
	"github.com/berthproject/berth/plugins/schedulinggates"
	"github.com/berthproject/berth/plugins/tainttoleration"
	"github.com/berthproject/berth/plugins/unsupported"
	"github.com/berthproject/berth/plugins/volumebinding"
	"github.com/berthproject/berth/plugins/volumerestrictions"
	"github.com/berthproject/berth/plugins/volumezone"
)

// Options are what configuration may change about a profile.
type Options struct {
	SchedulerName string // default "default-scheduler"
	Fit           noderesources.FitArgs
	Balanced      []noderesources.ResourceWeight
	Spread        podtopologyspread.Args
	Affinity      *interpodaffinity.Args // nil for the defaults
	BindTimeout   time.Duration          // of volumes, default 10 minutes
	Weights       map[string]int64       // by plugin name, in place of the default
}

// Default returns kube-scheduler's default profile as far as Berth has its
// rules: the order in which they filter and the weights of their scores.
func Default(schema *cluster.Schema, o Options) *framework.Profile {
	if o.SchedulerName == "" {
		o.SchedulerName = "default-scheduler"
	}
	if o.BindTimeout == 0 {
		o.BindTimeout = 10 * time.Minute
	}
	if o.Affinity == nil {
		o.Affinity = &interpodaffinity.Args{HardPodAffinityWeight: interpodaffinity.DefaultHardPodAffinityWeight}
	}
	list := []framework.Weighted{
		{Plugin: unsupported.Plugin{}},
		{Plugin: nodeunschedulable.Plugin{}},
		{Plugin: nodename.Plugin{}},
		{Plugin: tainttoleration.Plugin{}, Weight: 3},
		{Plugin: nodeaffinity.Plugin{}, Weight: 2},
		{Plugin: nodeports.Plugin{}},
		{Plugin: noderesources.NewFit(schema, o.Fit), Weight: 1},
		{Plugin: volumerestrictions.Plugin{}},
		{Plugin: nodevolumelimits.Plugin{}},
		{Plugin: volumebinding.Plugin{}},
		{Plugin: volumezone.Plugin{}},
		{Plugin: podtopologyspread.New(o.Spread), Weight: 2},
		{Plugin: interpodaffinity.New(*o.Affinity), Weight: 2},
		{Plugin: noderesources.NewBalanced(schema, o.Balanced), Weight: 1},
		{Plugin: imagelocality.Plugin{}, Weight: 1},
		{Plugin: nodedeclaredfeatures.Plugin{}},
	}
	for i := range list {
		if w, ok := o.Weights[list[i].Name()]; ok {
			list[i].Weight = w
		}
	}
	return &framework.Profile{
		SchedulerName: o.SchedulerName,
		Plugins:       list,
		Gates:         []framework.PreEnqueuer{schedulinggates.Plugin{}},
		Less:          prioritysort.Less,
		BindTimeout:   o.BindTimeout,
	}
}
