package config

import (
	"fmt"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kubeschedulerv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
)

// This file checks HTTP extenders and gives each profile what its decisions read of them.

// checkExtenders refuses what kube-scheduler refuses of the list of HTTP extenders, with
// its messages where it has some.
func checkExtenders(path *field.Path, in []kubeschedulerv1.Extender) (errs field.ErrorList) {
	binders := 0
	remaining := int64(engine.MaxExtenderWeights) // of the sum of weights
	managed := map[string]bool{}                  // extended resources, by any extender
	for i := range in {
		x, at := &in[i], path.Index(i)
		if u, err := url.Parse(x.URLPrefix); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			errs = append(errs, field.Invalid(at.Child("urlPrefix"), x.URLPrefix, "must be an http or https address, as in https://extender.kube-system.svc/scheduler"))
		}
		if x.PrioritizeVerb != "" && x.Weight <= 0 {
			errs = append(errs, field.Invalid(at.Child("weight"), x.Weight, "must have a positive weight applied to it"))
		} else if x.PrioritizeVerb != "" {
			if x.Weight > remaining {
				errs = append(errs, field.Invalid(at.Child("weight"), x.Weight, fmt.Sprintf("the total score could overflow; the weights of extenders may add up to %d", int64(engine.MaxExtenderWeights))))
			}
			remaining -= min(remaining, x.Weight)
		}
		if x.BindVerb != "" {
			binders++
		}
		if x.HTTPTimeout.Duration < 0 {
			errs = append(errs, field.Invalid(at.Child("httpTimeout"), x.HTTPTimeout.Duration.String(), "must not be negative"))
		}
		for k, r := range x.ManagedResources {
			name := at.Child("managedResources").Index(k).Child("name")
			for _, msg := range validation.IsQualifiedName(r.Name) {
				errs = append(errs, field.Invalid(name, r.Name, msg))
			}
			if domain, _, ok := strings.Cut(r.Name, "/"); !ok || strings.HasSuffix(domain, "kubernetes.io") || strings.HasPrefix(r.Name, "requests.") {
				errs = append(errs, field.Invalid(name, r.Name, "is an invalid extended resource name"))
			}
			if managed[r.Name] {
				errs = append(errs, field.Invalid(name, r.Name, "duplicate extender managed resource name"))
			}
			managed[r.Name] = true
		}
	}
	if binders > 1 {
		errs = append(errs, field.Invalid(path, fmt.Sprintf("found %d extenders implementing bind", binders), "only one extender can implement bind"))
	}
	return errs
}

// setExtenders sets the list of extenders, which all profiles share.
func (s *Scheduler) setExtenders(list []kubeschedulerv1.Extender) {
	s.Extenders = list
	for i := range s.Profiles {
		p := &s.Profiles[i]
		for k := range list {
			p.Extenders = append(p.Extenders, decisionPart(&list[k]))
			for _, r := range list[k].ManagedResources {
				if r.IgnoredByScheduler {
					p.Fit.IgnoredResources = append(p.Fit.IgnoredResources, r.Name)
				}
			}
		}
	}
}

// decisionPart returns what decisions read of an extender: what it does, not where it is.
func decisionPart(x *kubeschedulerv1.Extender) framework.Extender {
	out := framework.Extender{Filters: x.FilterVerb != "", Prioritizes: x.PrioritizeVerb != "", Binds: x.BindVerb != "", Preempts: x.PreemptVerb != ""}
	if out.Prioritizes {
		out.Weight = x.Weight
	}
	for _, r := range x.ManagedResources {
		out.Managed = append(out.Managed, r.Name)
	}
	return out
}
