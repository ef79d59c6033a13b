// Package config reads Berth's configuration: kube-scheduler's file format and
// Cluster Autoscaler's flags. What can't be honoured is refused with a reason.
package config

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	componentconfig "k8s.io/component-base/config"
	componentvalidation "k8s.io/component-base/config/validation"
	kubeschedulerv1 "k8s.io/kube-scheduler/config/v1"
	"sigs.k8s.io/yaml"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/core/queue"
)

// Scheduler is a KubeSchedulerConfiguration as Berth takes it.
type Scheduler struct {
	Profiles       []plugins.Options
	Queue          queue.Config
	Kubeconfig     string
	BindQPS        float32
	BindBurst      int
	LeaderElection LeaderElection
	Extenders      []kubeschedulerv1.Extender
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
		Queue:    queue.DefaultConfig(),
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
		return Scheduler{}, fmt.Errorf("scheduler configuration %s:\n%w", path, err)
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
	var errs field.ErrorList
	if p := in.Parallelism; p != nil && *p <= 0 {
		errs = append(errs, field.Invalid(field.NewPath("parallelism"), *p, "should be an integer value greater than zero"))
	}
	percentage(field.NewPath("percentageOfNodesToScore"), in.PercentageOfNodesToScore, &errs)
	path := field.NewPath("profiles")
	if len(in.Profiles) > 0 {
		out.Profiles = nil
	}
	seen := map[string]int{}
	for i := range in.Profiles {
		at := path.Index(i)
		percentage(at.Child("percentageOfNodesToScore"), in.Profiles[i].PercentageOfNodesToScore, &errs)
		p, more := profile(at, &in.Profiles[i], len(in.Profiles) == 1)
		errs = append(errs, more...)
		if first, ok := seen[p.SchedulerName]; ok {
			errs = append(errs, field.Duplicate(at.Child("schedulerName"), path.Index(first).Child("schedulerName").String()))
		}
		if sortText(in.Profiles[i].Plugins) != sortText(in.Profiles[0].Plugins) {
			errs = append(errs, field.Invalid(at.Child("plugins", "queueSort"), "", "must be the same for all profiles"))
		}
		seen[p.SchedulerName] = i
		out.Profiles = append(out.Profiles, p)
	}
	errs = append(errs, extenders(field.NewPath("extenders"), in.Extenders)...)
	out.Extenders = in.Extenders
	for i := range out.Profiles {
		for _, x := range in.Extenders {
			out.Profiles[i].Extenders = append(out.Profiles[i].Extenders, concern(&x))
			for _, r := range x.ManagedResources {
				if r.IgnoredByScheduler {
					fit := &out.Profiles[i].Fit
					fit.IgnoredResources = append(fit.IgnoredResources, r.Name)
				}
			}
		}
	}
	backoff(&in, &out, &errs)
	connection(&in, &out, &errs)
	var all []error
	for _, err := range errs { // one a line
		all = append(all, err)
	}
	return out, errors.Join(all...)
}

// concern is an extender as far as decisions go.
func concern(x *kubeschedulerv1.Extender) framework.Extender {
	out := framework.Extender{Filters: x.FilterVerb != "", Prioritizes: x.PrioritizeVerb != "", Binds: x.BindVerb != "", Preempts: x.PreemptVerb != ""}
	if out.Prioritizes {
		out.Weight = x.Weight
	}
	for _, r := range x.ManagedResources {
		out.Managed = append(out.Managed, r.Name)
	}
	return out
}

func percentage(path *field.Path, v *int32, errs *field.ErrorList) {
	if v != nil && (*v < 0 || *v > 100) {
		*errs = append(*errs, field.Invalid(path, *v, "not in valid range [0-100]"))
	}
}

func backoff(in *kubeschedulerv1.KubeSchedulerConfiguration, out *Scheduler, errs *field.ErrorList) {
	initial, limit := &out.Queue.InitialBackoff, &out.Queue.MaxBackoff
	if s := in.PodInitialBackoffSeconds; s != nil {
		*initial = time.Duration(*s) * time.Second
	}
	if s := in.PodMaxBackoffSeconds; s != nil {
		*limit = time.Duration(*s) * time.Second
	}
	if *initial <= 0 {
		*errs = append(*errs, field.Invalid(field.NewPath("podInitialBackoffSeconds"), int64(initial.Seconds()), "must be greater than 0"))
	}
	if *limit < *initial {
		*errs = append(*errs, field.Invalid(field.NewPath("podMaxBackoffSeconds"), int64(limit.Seconds()), "must be greater than or equal to PodInitialBackoffSeconds"))
	}
}

func connection(in *kubeschedulerv1.KubeSchedulerConfiguration, out *Scheduler, errs *field.ErrorList) {
	c := componentconfig.ClientConnectionConfiguration{
		Kubeconfig: in.ClientConnection.Kubeconfig, AcceptContentTypes: in.ClientConnection.AcceptContentTypes,
		ContentType: in.ClientConnection.ContentType, QPS: in.ClientConnection.QPS, Burst: in.ClientConnection.Burst,
	}
	*errs = append(*errs, componentvalidation.ValidateClientConnectionConfiguration(&c, field.NewPath("clientConnection"))...)
	out.Kubeconfig = c.Kubeconfig
	if c.QPS > 0 {
		out.BindQPS, out.BindBurst = c.QPS, max(int(c.QPS), int(c.Burst))
	}
	le := &out.LeaderElection
	if in.LeaderElection.LeaderElect != nil {
		le.Enabled = *in.LeaderElection.LeaderElect
	}
	le.Name = cmp.Or(in.LeaderElection.ResourceName, le.Name)
	le.Namespace = cmp.Or(in.LeaderElection.ResourceNamespace, le.Namespace)
	le.LeaseDuration = cmp.Or(in.LeaderElection.LeaseDuration.Duration, le.LeaseDuration)
	le.RenewDeadline = cmp.Or(in.LeaderElection.RenewDeadline.Duration, le.RenewDeadline)
	le.RetryPeriod = cmp.Or(in.LeaderElection.RetryPeriod.Duration, le.RetryPeriod)
	lock := cmp.Or(in.LeaderElection.ResourceLock, "leases")
	if path := field.NewPath("leaderElection"); lock != "leases" && le.Enabled {
		*errs = append(*errs, field.Invalid(path.Child("resourceLock"), lock, `resourceLock value must be "leases"`))
	}
	*errs = append(*errs, componentvalidation.ValidateLeaderElectionConfiguration(&componentconfig.LeaderElectionConfiguration{
		LeaderElect: le.Enabled, ResourceLock: lock, ResourceName: le.Name, ResourceNamespace: le.Namespace,
		LeaseDuration: metav1.Duration{Duration: le.LeaseDuration}, RenewDeadline: metav1.Duration{Duration: le.RenewDeadline},
		RetryPeriod: metav1.Duration{Duration: le.RetryPeriod},
	}, field.NewPath("leaderElection"))...)
}

// profile reads one profile. Only the sole profile of a file may go without a
// name.
func profile(path *field.Path, in *kubeschedulerv1.KubeSchedulerProfile, sole bool) (plugins.Options, field.ErrorList) {
	var out plugins.Options
	if in.SchedulerName != nil {
		out.SchedulerName = *in.SchedulerName
	} else if sole {
		out.SchedulerName = v1.DefaultSchedulerName
	}
	p := profilePlugins{path: path.Child("plugins")}
	if out.SchedulerName == "" {
		p.errs = append(p.errs, field.Required(path.Child("schedulerName"), "give the profile a name"))
	}
	p.resolve(in.Plugins)
	p.rules(&out)
	seen := map[string]bool{}
	for i := range in.PluginConfig {
		c, at := &in.PluginConfig[i], path.Child("pluginConfig").Index(i)
		if seen[c.Name] {
			p.errs = append(p.errs, field.Duplicate(at, c.Name))
		}
		seen[c.Name] = true
		p.errs = append(p.errs, arguments(at, c.Name, c.Args.Raw, &out)...)
	}
	return out, p.errs
}

// Build makes the profiles' rules for a schema.
func (s *Scheduler) Build(schema *cluster.Schema) []*framework.Profile {
	var out []*framework.Profile
	for _, p := range s.Profiles {
		out = append(out, plugins.Default(schema, p))
	}
	return out
}
