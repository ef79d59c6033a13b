package config

import (
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	componentconfig "k8s.io/component-base/config"
	componentoptions "k8s.io/component-base/config/options"
	componentvalidation "k8s.io/component-base/config/validation"
)

// This file has --leader-elect and its kin, which kube-scheduler and Cluster Autoscaler share.

// LeaseFlags are these flags. They override a file as far as they are on the command line.
type LeaseFlags struct {
	values componentconfig.LeaderElectionConfiguration
}

// lockKind is the only kind of object by which Berth elects a leader.
const lockKind = "leases"

// Flags adds the flags to fs, with the defaults of Berth's Lease.
func (l *LeaseFlags) Flags(fs *pflag.FlagSet) {
	l.values = Default().LeaderElection.component(lockKind)
	componentoptions.BindLeaderElectionFlags(&l.values, fs)
}

// Apply changes le to what the command line says. The error names the flag that can't be honoured.
func (l *LeaseFlags) Apply(commandLine *pflag.FlagSet, le *LeaderElection) error {
	v, lock := &l.values, lockKind
	for name, set := range map[string]func(){
		"leader-elect":                    func() { le.Enabled = v.LeaderElect },
		"leader-elect-lease-duration":     func() { le.LeaseDuration = v.LeaseDuration.Duration },
		"leader-elect-renew-deadline":     func() { le.RenewDeadline = v.RenewDeadline.Duration },
		"leader-elect-retry-period":       func() { le.RetryPeriod = v.RetryPeriod.Duration },
		"leader-elect-resource-lock":      func() { lock = v.ResourceLock },
		"leader-elect-resource-name":      func() { le.Name = v.ResourceName },
		"leader-elect-resource-namespace": func() { le.Namespace = v.ResourceNamespace },
	} {
		if commandLine.Changed(name) {
			set()
		}
	}
	return le.check(lock, field.NewPath("--leader-elect")).ToAggregate()
}

// check returns what is wrong with the settings and with the kind of the lock, each under its
// field below path.
func (le *LeaderElection) check(lock string, path *field.Path) (errs field.ErrorList) {
	if lock != lockKind && le.Enabled {
		errs = append(errs, field.Invalid(path.Child("resourceLock"), lock, `resourceLock value must be "leases"`))
	}
	c := le.component(lock)
	return append(errs, componentvalidation.ValidateLeaderElectionConfiguration(&c, path)...)
}

// component returns the settings as components of Kubernetes have them.
func (le LeaderElection) component(lock string) componentconfig.LeaderElectionConfiguration {
	d := func(d time.Duration) metav1.Duration { return metav1.Duration{Duration: d} }
	return componentconfig.LeaderElectionConfiguration{
		LeaderElect: le.Enabled, ResourceLock: lock, ResourceName: le.Name, ResourceNamespace: le.Namespace,
		LeaseDuration: d(le.LeaseDuration), RenewDeadline: d(le.RenewDeadline), RetryPeriod: d(le.RetryPeriod),
	}
}
