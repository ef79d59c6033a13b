// Package config reads Berth's configuration: kube-scheduler's file format and
// Cluster Autoscaler's flags. What can't be honoured is refused with a reason.
package config

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	componentconfig "k8s.io/component-base/config"
	componentvalidation "k8s.io/component-base/config/validation"
	kubeschedulerv1 "k8s.io/kube-scheduler/config/v1"
	"sigs.k8s.io/yaml"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/compat"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/core/queue"
)

// This file reads a KubeSchedulerConfiguration v1 file: its general part here, profiles in
// profile.go and points.go, arguments of plugins in args.go, extenders in extenders.go.
// What must hold: a field that Berth doesn't honour is refused by its path, never ignored,
// and all errors of a file are reported at once.

// Scheduler is a KubeSchedulerConfiguration as Berth takes it. Parse and Default make it;
// nothing else may, for a zero time or limit doesn't stand for a default.
type Scheduler struct {
	Rules                      // for which the file was read
	Profiles []plugins.Options // at least one; names differ
	// Queue has the backoffs of the file, and the time of the leftover sweep.
	Queue          queue.Config
	Kubeconfig     string  // path, "" when the file has none
	BindQPS        float32 // binding requests a second
	BindBurst      int     // of them, at once
	LeaderElection LeaderElection
	// Extenders are those of all profiles. They may hold secrets (MarshalJSON).
	Extenders []kubeschedulerv1.Extender

	file *kubeschedulerv1.KubeSchedulerConfiguration // as it was read, for Component; nil without one
}

// Beside returns the configuration of an autoscaler beside the schedulers that are named, in
// addition to those that have a profile: it expects these to decide by the rules of the first
// profile, of which it gives each a copy.
func (s Scheduler) Beside(names ...string) Scheduler {
	s.Profiles = slices.Clone(s.Profiles)
	for _, name := range names {
		if !slices.ContainsFunc(s.Profiles, func(p plugins.Options) bool { return p.SchedulerName == name }) {
			p := s.Profiles[0]
			p.SchedulerName = name
			s.Profiles = append(s.Profiles, p)
		}
	}
	return s
}

// LeaderElection are the settings of the Lease that the leader holds. The three times are as client-go
// checks them: RetryPeriod is far below RenewDeadline, and that is below LeaseDuration.
type LeaderElection struct {
	Enabled                                   bool
	Namespace, Name                           string // of the Lease
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
}

// Defaults. kube-scheduler's client limit of 50 queries a second would bind 50
// pods a second; Berth's is higher.
const (
	DefaultBindQPS   = 2000
	DefaultBindBurst = 4000
)

// Default returns the configuration without a file, for the newest version.
func Default() Scheduler {
	return Scheduler{
		Rules:    Rules{Version: compat.Newest},
		Profiles: []plugins.Options{{SchedulerName: v1.DefaultSchedulerName}},
		Queue:    queue.DefaultConfig(),
		BindQPS:  DefaultBindQPS, BindBurst: DefaultBindBurst,
		LeaderElection: LeaderElection{
			Enabled: true, Namespace: "kube-system", Name: "berth",
			LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
		},
	}
}

// Load reads a KubeSchedulerConfiguration v1 file as kube-scheduler of a version does by default.
func Load(path string, v compat.Version) (Scheduler, error) { return LoadFor(path, Rules{Version: v}) }

// Parse reads the text of such a file as kube-scheduler of a version does by default.
func Parse(raw []byte, v compat.Version) (Scheduler, error) { return ParseFor(raw, Rules{Version: v}) }

// ParseFor reads the text of such a file as kube-scheduler with these rules does. The error joins all that
// is wrong, one a line.
func ParseFor(raw []byte, r Rules) (Scheduler, error) {
	in := kubeschedulerv1.KubeSchedulerConfiguration{}
	if err := yaml.UnmarshalStrict(raw, &in); err != nil {
		return Scheduler{}, err
	}
	if in.APIVersion != kubeschedulerv1.SchemeGroupVersion.String() || in.Kind != "KubeSchedulerConfiguration" {
		return Scheduler{}, fmt.Errorf("apiVersion is %q and kind %q; they must be %q and %q",
			in.APIVersion, in.Kind, kubeschedulerv1.SchemeGroupVersion.String(), "KubeSchedulerConfiguration")
	}
	if name := unknownPoint(raw, r.Version); name != "" {
		return Scheduler{}, fmt.Errorf("unknown field %q, which kube-scheduler %s does not have", name, r.Version)
	}
	out := DefaultFor(r)
	var errs field.ErrorList
	if p := in.Parallelism; p != nil && *p <= 0 {
		errs = append(errs, field.Invalid(field.NewPath("parallelism"), *p, "should be an integer value greater than zero"))
	}
	checkPercentage(field.NewPath("percentageOfNodesToScore"), in.PercentageOfNodesToScore, &errs)
	if len(in.Profiles) > 0 {
		profiles, more := readProfiles(r, field.NewPath("profiles"), in.Profiles)
		out.Profiles, errs = profiles, append(errs, more...)
	}
	errs = append(errs, checkExtenders(field.NewPath("extenders"), in.Extenders)...)
	out.setExtenders(in.Extenders)
	out.file = &in
	errs = append(errs, out.setBackoff(&in)...)
	errs = append(errs, out.setConnection(&in)...)
	errs = append(errs, out.setLeaderElection(&in)...)
	var all []error
	for _, err := range errs { // one a line
		all = append(all, err)
	}
	return out, errors.Join(all...)
}

// checkPercentage is for percentageOfNodesToScore, which Berth accepts and ignores: it
// scores all nodes.
func checkPercentage(path *field.Path, v *int32, errs *field.ErrorList) {
	if v != nil && (*v < 0 || *v > 100) {
		*errs = append(*errs, field.Invalid(path, *v, "not in valid range [0-100]"))
	}
}

// setBackoff sets how long a pod backs off after an attempt.
func (s *Scheduler) setBackoff(in *kubeschedulerv1.KubeSchedulerConfiguration) (errs field.ErrorList) {
	initial, limit := &s.Queue.InitialBackoff, &s.Queue.MaxBackoff
	set := func(d *time.Duration, name string, seconds *int64) {
		if seconds == nil {
			return
		}
		if most := int64(math.MaxInt64 / time.Second); *seconds < -most || *seconds > most {
			errs = append(errs, field.Invalid(field.NewPath(name), *seconds, "must be greater than 0 and at most 9223372036, some 292 years"))
			return
		}
		*d = time.Duration(*seconds) * time.Second
	}
	set(initial, "podInitialBackoffSeconds", in.PodInitialBackoffSeconds)
	set(limit, "podMaxBackoffSeconds", in.PodMaxBackoffSeconds)
	if *initial <= 0 {
		errs = append(errs, field.Invalid(field.NewPath("podInitialBackoffSeconds"), int64(initial.Seconds()), "must be greater than 0"))
	}
	if *limit < *initial {
		errs = append(errs, field.Invalid(field.NewPath("podMaxBackoffSeconds"), int64(limit.Seconds()), "must be greater than or equal to PodInitialBackoffSeconds"))
	}
	return errs
}

// setConnection sets the kubeconfig and the client's limits, those of Berth where the file
// has none.
func (s *Scheduler) setConnection(in *kubeschedulerv1.KubeSchedulerConfiguration) field.ErrorList {
	c := componentconfig.ClientConnectionConfiguration{
		Kubeconfig: in.ClientConnection.Kubeconfig, AcceptContentTypes: in.ClientConnection.AcceptContentTypes,
		ContentType: in.ClientConnection.ContentType, QPS: in.ClientConnection.QPS, Burst: in.ClientConnection.Burst,
	}
	s.Kubeconfig = c.Kubeconfig
	if c.QPS > 0 {
		s.BindQPS, s.BindBurst = c.QPS, max(int(c.QPS), int(c.Burst))
	}
	return componentvalidation.ValidateClientConnectionConfiguration(&c, field.NewPath("clientConnection"))
}

// setLeaderElection sets the Lease: what the file leaves out keeps its default.
func (s *Scheduler) setLeaderElection(in *kubeschedulerv1.KubeSchedulerConfiguration) field.ErrorList {
	le, path := &s.LeaderElection, field.NewPath("leaderElection")
	if in.LeaderElection.LeaderElect != nil {
		le.Enabled = *in.LeaderElection.LeaderElect
	}
	le.Name = cmp.Or(in.LeaderElection.ResourceName, le.Name)
	le.Namespace = cmp.Or(in.LeaderElection.ResourceNamespace, le.Namespace)
	le.LeaseDuration = cmp.Or(in.LeaderElection.LeaseDuration.Duration, le.LeaseDuration)
	le.RenewDeadline = cmp.Or(in.LeaderElection.RenewDeadline.Duration, le.RenewDeadline)
	le.RetryPeriod = cmp.Or(in.LeaderElection.RetryPeriod.Duration, le.RetryPeriod)
	return le.check(cmp.Or(in.LeaderElection.ResourceLock, lockKind), path)
}

// Build returns a schema of the configuration's version and the profiles with their rules, made for
// it: a core and its planner share them, two cores don't.
func (s *Scheduler) Build() (*cluster.Schema, []*framework.Profile) {
	schema := cluster.SchemaFor(s.Version)
	var out []*framework.Profile
	for _, p := range s.Profiles {
		out = append(out, plugins.Default(schema, p))
	}
	return schema, out
}
