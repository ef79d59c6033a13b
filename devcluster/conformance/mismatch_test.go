package conformance_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/berthproject/berth/devcluster/oracle"
)

// This file says where two outcomes differ, and writes a mismatch down: as text for the
// log, and as a case that testdata/cases can take.

// difference says where two outcomes differ, "" for nowhere.
func difference(c *oracle.Cluster, want, got *oracle.Outcome) string {
	if problem := answerDifference(want.Held, got.Held); problem != "" {
		return "before the queue: " + problem
	}
	for _, n := range c.Nodes {
		if _, asked := want.Nodes[n.Name]; want.Error != "" && !asked { // without it the node would be feasible
			continue
		}
		if problem := answerDifference(want.Nodes[n.Name], got.Nodes[n.Name]); problem != "" {
			return fmt.Sprintf("on node %s: %s", n.Name, problem)
		}
	}
	if want.Error != got.Error {
		return fmt.Sprintf("the attempt ends with the error %q, in kube-scheduler with %q", got.Error, want.Error)
	}
	if !maps.EqualFunc(got.Victims, want.Victims, func(a, b oracle.Victims) bool {
		return a.Violations == b.Violations && slices.Equal(a.Pods, b.Pods)
	}) || got.Chosen != want.Chosen {
		return fmt.Sprintf("preemption takes %q of %v, in kube-scheduler %q of %v", got.Chosen, got.Victims, want.Chosen, want.Victims)
	}
	// What DynamicResources frees for the next attempt, or that there is nothing to free, isn't part of
	// Berth's message.
	for _, freed := range []string{"deletion of ResourceClaim completed", "deallocation of ResourceClaim completed", "no new claims to deallocate", "still not schedulable"} {
		for _, o := range []*oracle.Outcome{want, got} {
			o.Message = strings.TrimSpace(strings.Replace(strings.Replace(o.Message, " "+freed+",", "", 1), " "+freed, "", 1))
		}
	}
	// Where a plugin rejects the pod in PreFilter, the PostFilter of DynamicResources finds no state of
	// its own, and kube-scheduler tells people what that returns instead of anything about preemption.
	if before, ok := strings.CutSuffix(want.Message, " not found"); ok && (got.Message == before || strings.HasPrefix(got.Message, before+" preemption: ")) {
		return ""
	}
	if strings.Contains(got.Message, "too many combinations of devices") {
		return ""
	}
	if strings.Contains(want.Message, `running "DynamicResources" filter plugin`) {
		return "" // preemption ended with an error; in Berth it leaves out the node
	}
	if got.Message != want.Message {
		return fmt.Sprintf("the condition's message is\n%s\nand kube-scheduler's\n%s", got.Message, want.Message)
	}
	return ""
}

// answerDifference says where two answers about one node differ, "" for nowhere.
func answerDifference(want, got oracle.Answer) string {
	switch {
	case slices.Equal(got.Messages, []string{"too many combinations of devices were tried"}):
		return "" // kube-scheduler looks for up to ten seconds a node
	case want.Error != "":
		if text := fmt.Sprintf("running %q filter plugin: %s", got.Plugin, strings.Join(got.Messages, "")); got.OK || text != want.Error {
			return fmt.Sprintf("feasible is %v (%s), kube-scheduler has the error %s", got.OK, text, want.Error)
		}
		return ""
	case want.OK != got.OK:
		return fmt.Sprintf("feasible is %v (%s %v), kube-scheduler says %v (%s %v)", got.OK, got.Plugin, got.Messages, want.OK, want.Plugin, want.Messages)
	case !want.OK && (want.Plugin != got.Plugin || !slices.Equal(sorted(want.Messages), sorted(got.Messages))):
		return fmt.Sprintf("rejected by %s %v, in kube-scheduler by %s %v", got.Plugin, got.Messages, want.Plugin, want.Messages)
	case want.Error != got.Error:
		return fmt.Sprintf("ends with the error %q, in kube-scheduler %q", got.Error, want.Error)
	case allocated(want) != allocated(got):
		return fmt.Sprintf("allocates\n%s\nand kube-scheduler\n%s", allocated(got), allocated(want))
	case want.OK && want.Total != got.Total:
		return fmt.Sprintf("the score is %d %v, kube-scheduler's %d %v", got.Total, got.Scores, want.Total, want.Scores)
	}
	for _, name := range slices.Sorted(maps.Keys(want.Scores)) {
		if want.Scores[name] != got.Scores[name] || want.Raw[name] != got.Raw[name] {
			return fmt.Sprintf("%s scores %d, raw %d; in kube-scheduler %d, raw %d", name, got.Scores[name], got.Raw[name], want.Scores[name], want.Raw[name])
		}
	}
	return ""
}

// allocated writes out what the claims of a pod would get.
//
// kube-scheduler also allocates nothing for a claim of its own, without requests, on a node whose
// device plugin provides the extended resources of a pod with claims; Berth makes no such claim.
func allocated(a oracle.Answer) string {
	a.Allocations = slices.DeleteFunc(slices.Clone(a.Allocations), func(x oracle.Allocation) bool {
		return x.Claim == "<extended-resources>" && len(x.Requests) == 0
	})
	if len(a.Allocations) == 0 {
		return ""
	}
	raw, err := json.Marshal(a.Allocations)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// sorted is for messages: kube-scheduler names scalar resources in the order of a map.
func sorted(in []string) []string { return slices.Sorted(slices.Values(in)) }

// show writes a case out for a person.
func show(c *oracle.Cluster, pod *v1.Pod) string {
	var b strings.Builder
	put := func(what string, o any) {
		raw, err := yaml.Marshal(o)
		if err != nil {
			raw = []byte(err.Error())
		}
		fmt.Fprintf(&b, "--- %s\n%s", what, raw)
	}
	put("pod", pod)
	for _, n := range c.Nodes {
		put("node", map[string]any{"name": n.Name, "labels": n.Labels, "taints": n.Spec.Taints, "unschedulable": n.Spec.Unschedulable, "allocatable": n.Status.Allocatable})
	}
	for _, p := range c.Pods {
		put("existing", map[string]any{"name": p.Name, "namespace": p.Namespace, "labels": p.Labels, "node": p.Spec.NodeName, "affinity": p.Spec.Affinity, "deleting": p.DeletionTimestamp != nil,
			"volumes": p.Spec.Volumes, "priority": p.Spec.Priority, "start": p.Status.StartTime, "requests": p.Spec.Containers[0].Resources.Requests, "ports": p.Spec.Containers[0].Ports})
	}
	for _, p := range c.Nominated {
		put("nominated", p)
	}
	for _, w := range c.Workloads {
		put("workload", w)
	}
	for _, o := range c.Objects {
		put("object", o)
	}
	return b.String()
}

// record writes a mismatch, without its workloads, as a table for testdata/cases that
// wants kube-scheduler's answer, and returns the file's path. While rapid shrinks, each
// smaller mismatch overwrites the last.
func record(c *oracle.Cluster, pod *v1.Pod, want *oracle.Outcome) string {
	x := caseOf{Name: "found by random search"}
	for _, n := range c.Nodes {
		k := caseNode{Name: n.Name, Labels: n.Labels, Taints: n.Spec.Taints, Unschedulable: n.Spec.Unschedulable,
			Images: n.Status.Images, Features: n.Status.DeclaredFeatures, Allocatable: map[string]string{}}
		for name, q := range n.Status.Allocatable {
			k.Allocatable[string(name)] = q.String()
		}
		x.Nodes = append(x.Nodes, k)
		if want.Nodes[n.Name].OK {
			x.Want.Feasible = append(x.Want.Feasible, n.Name)
		}
	}
	casePodOf := func(p *v1.Pod) casePod {
		return casePod{Name: p.Name, UID: p.UID, Namespace: p.Namespace, Labels: p.Labels, Terminating: p.DeletionTimestamp != nil, Devices: p.Status.ResourceClaimStatuses, Spec: p.Spec}
	}
	for _, p := range c.Pods {
		x.Pods = append(x.Pods, casePodOf(p))
	}
	x.Pod = casePodOf(pod)
	x.Want.Message = want.Message
	for _, o := range c.Objects {
		raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			return err.Error()
		}
		raw["kind"] = strings.TrimPrefix(strings.TrimPrefix(fmt.Sprintf("%T", o), "*v1."), "*storagev1.")
		x.Objects = append(x.Objects, raw)
	}
	text, err := yaml.Marshal(caseFile{Cases: []caseOf{x}})
	path := filepath.Join(os.TempDir(), "oracle-mismatch.yaml")
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		return err.Error()
	}
	return path
}
