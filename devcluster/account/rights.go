package account

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// This file compares what Berth's accounts may do with what they have asked for, as the API
// server's audit log has it (controlplane.Options.AuditLog).

// Right is one thing that an account may do, or one that it has asked for. Wildcards mean themselves: deploy/
// has none.
type Right struct {
	Verb, Group, Resource string // of a subresource: resource/subresource
	Namespace             string // "" for all of them, and for what is in none
	Name                  string // "" for all of them
}

// String returns the right in the order in which kubectl auth can-i has it.
func (r Right) String() string {
	out := r.Verb + " " + r.Resource
	if r.Group != "" {
		out = r.Verb + " " + strings.Replace(r.Resource+"/", "/", "."+r.Group+"/", 1)
		out = strings.TrimSuffix(out, "/")
	}
	if r.Name != "" {
		out += " " + r.Name
	}
	if r.Namespace != "" {
		out += " in " + r.Namespace
	}
	return out
}

// covers reports whether an account with the right may do what was asked for.
func (r Right) covers(asked Right) bool {
	return r.Verb == asked.Verb && r.Group == asked.Group && r.Resource == asked.Resource &&
		(r.Namespace == "" || r.Namespace == asked.Namespace) && (r.Name == "" || r.Name == asked.Name)
}

// Rights returns all that the roles among objects give which are bound there, sorted, each once:
// one that is bound to nobody is for others than Berth. Roles of the cluster that are bound and
// not defined here count as one right: "use" of the role.
func Rights(objects []runtime.Object) []Right {
	var out []Right
	held := boundRoles(objects)
	add := func(namespace string, rules []rbacv1.PolicyRule) {
		for _, rule := range rules {
			names := rule.ResourceNames
			if len(names) == 0 {
				names = []string{""}
			}
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, name := range names {
						for _, verb := range rule.Verbs {
							out = append(out, Right{verb, group, resource, namespace, name})
						}
					}
				}
			}
		}
	}
	bound := func(ref rbacv1.RoleRef) {
		if !strings.HasPrefix(ref.Name, Name+"-") {
			out = append(out, usedRole(ref.Name))
		}
	}
	for _, o := range objects {
		switch o := o.(type) {
		case *rbacv1.ClusterRole:
			if held["ClusterRole "+o.Name] {
				add("", o.Rules)
			}
		case *rbacv1.Role:
			if held["Role "+o.Name] {
				add(o.Namespace, o.Rules)
			}
		case *rbacv1.ClusterRoleBinding:
			bound(o.RoleRef)
		case *rbacv1.RoleBinding:
			bound(o.RoleRef)
		}
	}
	slices.SortFunc(out, func(a, b Right) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(out)
}

// boundRoles returns the roles that bindings among objects name, as kind and name.
func boundRoles(objects []runtime.Object) map[string]bool {
	out := map[string]bool{}
	for _, o := range objects {
		switch o := o.(type) {
		case *rbacv1.ClusterRoleBinding:
			out[o.RoleRef.Kind+" "+o.RoleRef.Name] = true
		case *rbacv1.RoleBinding:
			out[o.RoleRef.Kind+" "+o.RoleRef.Name] = true
		}
	}
	return out
}

// useRole is the verb of the right to use a role that the cluster defines.
const useRole = "use"

// usedRole is the right to use a role that the cluster defines.
func usedRole(name string) Right {
	return Right{Verb: useRole, Group: rbacv1.GroupName, Resource: "role", Name: name}
}

// Asked is what an account has asked for. Equal questions are one.
type Asked struct {
	Right
	// Configuration is whose account has asked.
	Configuration string
	// Forbidden says that the API server refused it: deploy/ lacks the right.
	Forbidden bool
	role      string // that allowed it
}

// ReadAudit returns what Berth's accounts have asked for, each once, as an audit log has it.
func ReadAudit(log io.Reader) ([]Asked, error) {
	seen := map[Asked]bool{}
	var out []Asked
	for r := bufio.NewReader(log); ; {
		line, err := r.ReadBytes('\n')
		if len(line) > 0 && err == nil { // a last line without an end isn't whole
			var e auditv1.Event
			if err := json.Unmarshal(line, &e); err != nil {
				return nil, fmt.Errorf("reading an audit log: %w in %q", err, line)
			}
			if a, ok := asked(&e); ok && !seen[a] {
				seen[a] = true
				out = append(out, a)
			}
		}
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading an audit log: %w", err)
		}
	}
}

// asked returns what an event is about; false for others than Berth's accounts, and for
// paths that are no resources, which everybody may read.
func asked(e *auditv1.Event) (Asked, bool) {
	configuration, ok := accountOf(e.User.Username)
	if !ok || e.ObjectRef == nil {
		return Asked{}, false
	}
	a := Asked{Right: Right{Verb: e.Verb, Group: e.ObjectRef.APIGroup, Resource: e.ObjectRef.Resource, Namespace: e.ObjectRef.Namespace, Name: e.ObjectRef.Name},
		Configuration: configuration, Forbidden: e.Annotations["authorization.k8s.io/decision"] != "allow"}
	if e.ObjectRef.Subresource != "" {
		a.Resource += "/" + e.ObjectRef.Subresource
	}
	// RBAC: allowed by RoleBinding "b/ns" of Role "r" to ServiceAccount "s/ns"
	if _, rest, ok := strings.Cut(e.Annotations["authorization.k8s.io/reason"], `Role "`); ok {
		a.role, _, _ = strings.Cut(rest, `"`)
	}
	return a, true
}

// Unused returns those rights that nothing of what was asked for needs.
func Unused(rights []Right, asked []Asked) []Right {
	return slices.DeleteFunc(slices.Clone(rights), func(r Right) bool {
		return slices.ContainsFunc(asked, func(a Asked) bool {
			return !a.Forbidden && (r.covers(a.Right) || r == usedRole(a.role))
		})
	})
}
