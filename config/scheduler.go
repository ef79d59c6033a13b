// Package config reads Berth's configuration: kube-scheduler's file format and
// Cluster Autoscaler's flags. What can't be honoured is refused with a reason.
package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	kubeschedulerv1 "k8s.io/kube-scheduler/config/v1"
	"sigs.k8s.io/yaml"

	"github.com/berthproject/berth/cluster"
	"github.com/berthproject/berth/framework"
	"github.com/berthproject/berth/plugins"
	"github.com/berthproject/berth/plugins/noderesources"
	"github.com/berthproject/berth/queue"
)

// Scheduler is a KubeSchedulerConfiguration as Berth takes it.
type Scheduler struct {
	Profiles       []plugins.Options
	Queue          queue.Config
	Kubeconfig     string
	BindQPS        float32
	BindBurst      int
	LeaderElection LeaderElection
}

// LeaderElection are the settings of the Lease.
type LeaderElection struct {
	Enabled                                   bool
	Namespace, Name                           string
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
}

// Defaults. kube-scheduler's client limit of 50 queries a second would bind 50
// pods a second; Berth's is higher.
const (
	DefaultBindQPS   = 2000
	DefaultBindBurst = 4000
)

// Default returns the configuration without a file.
func Default() Scheduler {
	return Scheduler{
		Profiles: []plugins.Options{{SchedulerName: v1.DefaultSchedulerName}},
		BindQPS:  DefaultBindQPS, BindBurst: DefaultBindBurst,
		LeaderElection: LeaderElection{
			Enabled: true, Namespace: "kube-system", Name: "berth",
			LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
		},
	}
}

// Load reads a KubeSchedulerConfiguration v1 file. All its errors are reported
// together, each naming its field.
func Load(path string) (Scheduler, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return Scheduler{}, fmt.Errorf("reading the scheduler configuration: %w", err)
	}
	out, err := Parse(raw)
	if err != nil {
		return Scheduler{}, fmt.Errorf("scheduler configuration %s: %w", path, err)
	}
	return out, nil
}

// Parse reads the text of such a file.
func Parse(raw []byte) (Scheduler, error) {
	in := kubeschedulerv1.KubeSchedulerConfiguration{}
	if err := yaml.UnmarshalStrict(raw, &in); err != nil {
		return Scheduler{}, err
	}
	if in.APIVersion != kubeschedulerv1.SchemeGroupVersion.String() || in.Kind != "KubeSchedulerConfiguration" {
		return Scheduler{}, fmt.Errorf("apiVersion is %q and kind %q; they must be %q and %q",
			in.APIVersion, in.Kind, kubeschedulerv1.SchemeGroupVersion.String(), "KubeSchedulerConfiguration")
	}
	out := Default()
	var errs []error
	if len(in.Extenders) > 0 {
		errs = append(errs, errors.New("extenders: this version of Berth has no extenders; remove the list"))
	}
	if len(in.Profiles) > 0 {
		out.Profiles = nil
	}
	seen := map[string]bool{}
	for i := range in.Profiles {
		p, err := profile(&in.Profiles[i])
		if err != nil {
			errs = append(errs, fmt.Errorf("profiles[%d]: %w", i, err))
			continue
		}
		if seen[p.SchedulerName] {
			errs = append(errs, fmt.Errorf("profiles[%d].schedulerName: %q is there twice; names must differ", i, p.SchedulerName))
		}
		seen[p.SchedulerName] = true
		out.Profiles = append(out.Profiles, p)
	}
	seconds := func(field string, v *int64, to *time.Duration) {
		if v == nil {
			return
		}
		if *v <= 0 {
			errs = append(errs, fmt.Errorf("%s: is %d; it must be greater than 0", field, *v))
		}
		*to = time.Duration(*v) * time.Second
	}
	seconds("podInitialBackoffSeconds", in.PodInitialBackoffSeconds, &out.Queue.InitialBackoff)
	seconds("podMaxBackoffSeconds", in.PodMaxBackoffSeconds, &out.Queue.MaxBackoff)
	if q := out.Queue; q.MaxBackoff != 0 && q.MaxBackoff < max(q.InitialBackoff, time.Second) {
		errs = append(errs, fmt.Errorf("podMaxBackoffSeconds: is %v; it must be at least podInitialBackoffSeconds", q.MaxBackoff.Seconds()))
	}
	out.Kubeconfig = in.ClientConnection.Kubeconfig
	if in.ClientConnection.QPS > 0 {
		out.BindQPS, out.BindBurst = in.ClientConnection.QPS, max(int(in.ClientConnection.QPS), int(in.ClientConnection.Burst))
	}
	le := &out.LeaderElection
	if in.LeaderElection.LeaderElect != nil {
		le.Enabled = *in.LeaderElection.LeaderElect
	}
	if in.LeaderElection.ResourceName != "" {
		le.Name = in.LeaderElection.ResourceName
	}
	if in.LeaderElection.ResourceNamespace != "" {
		le.Namespace = in.LeaderElection.ResourceNamespace
	}
	for _, d := range []struct {
		from time.Duration
		to   *time.Duration
	}{
		{in.LeaderElection.LeaseDuration.Duration, &le.LeaseDuration},
		{in.LeaderElection.RenewDeadline.Duration, &le.RenewDeadline},
		{in.LeaderElection.RetryPeriod.Duration, &le.RetryPeriod},
	} {
		if d.from > 0 {
			*d.to = d.from
		}
	}
	if le.LeaseDuration <= le.RenewDeadline || le.RenewDeadline <= le.RetryPeriod {
		errs = append(errs, fmt.Errorf("leaderElection: leaseDuration %s, renewDeadline %s and retryPeriod %s must fall in this order", le.LeaseDuration, le.RenewDeadline, le.RetryPeriod))
	}
	return out, errors.Join(errs...)
}

func profile(in *kubeschedulerv1.KubeSchedulerProfile) (plugins.Options, error) {
	out := plugins.Options{SchedulerName: v1.DefaultSchedulerName}
	if in.SchedulerName != nil {
		out.SchedulerName = *in.SchedulerName
	}
	if out.SchedulerName == "" {
		return out, errors.New("schedulerName: is empty; give the profile a name")
	}
	if in.Plugins != nil {
		return out, errors.New("plugins: this version of Berth runs the default plugins only; remove the field")
	}
	for i := range in.PluginConfig {
		c := &in.PluginConfig[i]
		var err error
		switch c.Name {
		case noderesources.FitName:
			out.Fit, err = fitArgs(c.Args.Raw)
		case noderesources.BalancedName:
			out.Balanced, err = balancedArgs(c.Args.Raw)
		default:
			err = fmt.Errorf("arguments of this plugin can't be set in this version of Berth; remove the entry")
		}
		if err != nil {
			return out, fmt.Errorf("pluginConfig[%d] %q: %w", i, c.Name, err)
		}
	}
	return out, nil
}

func strict(raw []byte, into any) error {
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("args: %w", err)
	}
	return nil
}

func fitArgs(raw []byte) (noderesources.FitArgs, error) {
	in := kubeschedulerv1.NodeResourcesFitArgs{}
	out := noderesources.FitArgs{}
	if err := strict(raw, &in); err != nil {
		return out, err
	}
	out.IgnoredResources, out.IgnoredResourceGroups = in.IgnoredResources, in.IgnoredResourceGroups
	for i, g := range in.IgnoredResourceGroups {
		if strings.Contains(g, "/") {
			return out, fmt.Errorf("args.ignoredResourceGroups[%d]: %q contains '/'; give the part before it", i, g)
		}
	}
	s := in.ScoringStrategy
	if s == nil {
		return out, nil
	}
	out.Strategy = noderesources.Strategy(s.Type)
	switch out.Strategy {
	case noderesources.LeastAllocated, noderesources.MostAllocated:
	case noderesources.RequestedToCapacityRatio:
		if s.RequestedToCapacityRatio == nil {
			return out, errors.New("args.scoringStrategy.requestedToCapacityRatio: is missing; give a shape")
		}
		shape, err := shapeOf(s.RequestedToCapacityRatio.Shape)
		if err != nil {
			return out, err
		}
		out.Shape = shape
	default:
		return out, fmt.Errorf("args.scoringStrategy.type: is %q; it must be LeastAllocated, MostAllocated or RequestedToCapacityRatio", s.Type)
	}
	list, err := weights("args.scoringStrategy.resources", s.Resources)
	out.Resources = list
	return out, err
}

func balancedArgs(raw []byte) ([]noderesources.ResourceWeight, error) {
	in := kubeschedulerv1.NodeResourcesBalancedAllocationArgs{}
	if err := strict(raw, &in); err != nil {
		return nil, err
	}
	return weights("args.resources", in.Resources)
}

func weights(field string, in []kubeschedulerv1.ResourceSpec) ([]noderesources.ResourceWeight, error) {
	if len(in) > noderesources.MaxScoredResources {
		return nil, fmt.Errorf("%s: has %d entries; at most %d are possible", field, len(in), noderesources.MaxScoredResources)
	}
	var out []noderesources.ResourceWeight
	for i, r := range in {
		if r.Weight == 0 {
			r.Weight = 1
		}
		if r.Weight < 1 || r.Weight > 100 {
			return nil, fmt.Errorf("%s[%d].weight: is %d; it must be from 1 to 100", field, i, r.Weight)
		}
		out = append(out, noderesources.ResourceWeight{Name: v1.ResourceName(r.Name), Weight: r.Weight})
	}
	return out, nil
}

func shapeOf(in []kubeschedulerv1.UtilizationShapePoint) ([]noderesources.ShapePoint, error) {
	const field = "args.scoringStrategy.requestedToCapacityRatio.shape"
	if len(in) == 0 {
		return nil, fmt.Errorf("%s: is empty; give at least one point", field)
	}
	var out []noderesources.ShapePoint
	for i, p := range in {
		switch {
		case p.Utilization < 0 || p.Utilization > 100:
			return nil, fmt.Errorf("%s[%d].utilization: is %d; it must be from 0 to 100", field, i, p.Utilization)
		case p.Score < 0 || p.Score > 10:
			return nil, fmt.Errorf("%s[%d].score: is %d; it must be from 0 to 10", field, i, p.Score)
		case i > 0 && p.Utilization <= in[i-1].Utilization:
			return nil, fmt.Errorf("%s[%d].utilization: is %d after %d; points must be in increasing order", field, i, p.Utilization, in[i-1].Utilization)
		}
		out = append(out, noderesources.ShapePoint{Utilization: int64(p.Utilization), Score: int64(p.Score)})
	}
	return out, nil
}

// Build makes the profiles' rules for a schema.
func (s *Scheduler) Build(schema *cluster.Schema) []*framework.Profile {
	var out []*framework.Profile
	for _, p := range s.Profiles {
		out = append(out, plugins.Default(schema, p))
	}
	return out
}
