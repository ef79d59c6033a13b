package clusterapi

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
)

// limited is the metadata of a group, to be followed by others.
func limited(name string, lowest, highest any, more ...string) string {
	return fmt.Sprintf("metadata: {name: %s, annotations: {cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size: %q, cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size: %q, capacity.cluster-autoscaler.kubernetes.io/cpu: '4', capacity.cluster-autoscaler.kubernetes.io/memory: 16Gi%s}}\n",
		name, fmt.Sprint(lowest), fmt.Sprint(highest), strings.Join(append([]string{""}, more...), ", "))
}

// deployment is a MachineDeployment with its MachineSet.
func deployment(name string, replicas int) string {
	return fmt.Sprintf("---\nkind: MachineDeployment\n%sspec: {clusterName: c, replicas: %d}\n---\nkind: MachineSet\nmetadata: {name: %s-set, ownerReferences: [{kind: MachineDeployment, name: %[3]s}]}\nspec: {clusterName: c, replicas: %[2]d}\n", limited(name, 0, 5), replicas, name)
}

// rolling is a MachineDeployment with a MachineSet of revision 9 that wants and has so
// many Machines, and one of revision 10.
func rolling(name string, wants, has, now int) string {
	return fmt.Sprintf(`---
kind: MachineDeployment
%sspec: {replicas: 2}
---
kind: MachineSet
metadata: {name: %s-old, annotations: {machinedeployment.clusters.x-k8s.io/revision: '9'}, ownerReferences: [{kind: MachineDeployment, name: %[2]s}]}
spec: {replicas: %[3]d}
status: {replicas: %[4]d}
---
kind: MachineSet
metadata: {name: %[2]s-new, annotations: {machinedeployment.clusters.x-k8s.io/revision: '10'}, ownerReferences: [{kind: MachineDeployment, name: %[2]s}]}
spec: {replicas: %[5]d}
status: {replicas: %[5]d}
`, limited(name, 0, 5), name, wants, has, now)
}

// machineOf is a Machine of an owner, with a provider ID, and a node when it has a name.
func machineOf(owner, name, id, node string, status ...string) string {
	kind, ownerName, _ := strings.Cut(owner, "/")
	if node != "" {
		status = append(status, "nodeRef: {name: "+node+"}")
	}
	return fmt.Sprintf("---\nkind: Machine\nmetadata: {name: %s, ownerReferences: [{kind: %s, name: %s}]}\nspec: {clusterName: c, providerID: %q}\nstatus: {%s}\n", name, kind, ownerName, id, strings.Join(status, ", "))
}

// TestGroups are made of the objects that have a maximum, each with the Machines that it controls.
func TestGroups(t *testing.T) {
	set := func(name string, replicas int, more string) string {
		return "---\nkind: MachineSet\n" + limited(name, 1, 3) + fmt.Sprintf("spec: {replicas: %d%s}\n", replicas, more)
	}
	pool := func(name, spec string) string {
		return "---\nkind: MachinePool\n" + limited(name, 0, 9) + "spec: {" + spec + "}\n"
	}
	for _, c := range []struct{ name, objects, want string }{
		{"none", "", ""},
		{"a deployment, by the owners of its Machines",
			deployment("d", 3) + machineOf("MachineSet/d-set", "m1", "cloud://1", "n1") + machineOf("MachineSet/d-set", "m2", "cloud://2", "") + machineOf("MachineSet/d-set", "m3", "", "") + machineOf("MachineSet/other", "m4", "cloud://4", "n4"),
			"MachineDeployment/default/d: 0 to 5, 3 wanted; cloud://1 is n1; cloud://2; Machine/default/m3"},
		{"a set", set("s", 1, "") + machineOf("MachineSet/s", "m1", "cloud://1", "n1"), "MachineSet/default/s: 1 to 3, 1 wanted; cloud://1 is n1"},
		{"a pool without Machines, none of whose nodes can go", pool("p", "replicas: 2, providerIDList: [cloud://1, cloud://2]"), "MachinePool/default/p: 2 to 9, 2 wanted; cloud://1; cloud://2"},
		{"a pool that doesn't list its instances", pool("p", "replicas: 2"), "MachinePool/default/p: 2 to 9, 2 wanted, not listed"},
		{"a pool that has none", pool("p", "replicas: 0"), "MachinePool/default/p: 0 to 9, 0 wanted"},
		{"a pool with Machines", pool("p", "replicas: 2, providerIDList: [cloud://1, cloud://2]") + machineOf("MachinePool/p", "m1", "cloud://1", "n1"), "MachinePool/default/p: 0 to 9, 2 wanted; cloud://1 is n1; cloud://2"},
		{"no limits, or none that lets it have nodes", "---\nkind: MachineSet\nmetadata: {name: s}\nspec: {replicas: 1}\n---\nkind: MachineSet\n" + limited("t", 0, 0) + "spec: {replicas: 1}\n", ""},
		{"paused", "---\nkind: MachineSet\n" + limited("s", 0, 3, "cluster.x-k8s.io/paused: ''") + "spec: {replicas: 1}\n", ""},
		{"Machines that are deleted, and a marked one that is too many",
			deployment("d", 1) + machineOf("MachineSet/d-set", "m1", "cloud://1", "n1") +
				"---\nkind: Machine\nmetadata: {name: m2, deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: [x], ownerReferences: [{kind: MachineSet, name: d-set}]}\nspec: {providerID: cloud://2}\n" +
				"---\nkind: Machine\nmetadata: {name: m3, annotations: {cluster.x-k8s.io/delete-machine: now}, ownerReferences: [{kind: MachineSet, name: d-set}]}\nspec: {providerID: cloud://3}\n",
			"MachineDeployment/default/d: 0 to 5, 1 wanted; cloud://1 is n1"},
		{"a marked Machine that isn't too many",
			deployment("d", 1) + "---\nkind: Machine\nmetadata: {name: m3, annotations: {cluster.x-k8s.io/delete-machine: now}, ownerReferences: [{kind: MachineSet, name: d-set}]}\nspec: {providerID: cloud://3}\n",
			"MachineDeployment/default/d: 0 to 5, 1 wanted; cloud://3"},
		{"a deployment that rolls out, until the old set is empty",
			rolling("d", 1, 2, 2) + rolling("e", 0, 1, 2) + rolling("f", 0, 0, 2) + rolling("g", 1, 0, 9),
			"MachineDeployment/default/d: 0 to 5, 2 wanted; its nodes stay: its MachineDeployment is rolling out: MachineSet default/d-old, of an older revision, still has Machines, and Cluster API selects which node goes\n" +
				"MachineDeployment/default/e: 0 to 5, 2 wanted; its nodes stay: its MachineDeployment is rolling out: MachineSet default/e-old, of an older revision, still has Machines, and Cluster API selects which node goes\n" +
				"MachineDeployment/default/f: 0 to 5, 2 wanted\n" +
				"MachineDeployment/default/g: 0 to 5, 2 wanted; its nodes stay: its MachineDeployment is rolling out: MachineSet default/g-old, of an older revision, still has Machines, and Cluster API selects which node goes"},
		{"what is wrong with one, beside others",
			"---\nkind: MachineSet\n" + limited("a", 4, 3) + "spec: {replicas: 1}\n---\nkind: MachineSet\n" + limited("b", "many", 3) + "spec: {replicas: 1}\n---\nkind: MachineSet\n" + limited("c", 0, -1) +
				"spec: {replicas: 1}\n---\nkind: MachineSet\n" + limited("d", 0, 3) + "spec: {}\n---\nkind: MachineSet\n" + limited("e", 0, 3) + "spec: {replicas: several}\n" + set("f", 1, ""),
			`MachineSet/default/a: annotation cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size is 4 and cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size is 3; the minimum must not be above the maximum
MachineSet/default/b: annotation cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size is "many"; it must be a whole number from 0 to 2147483647
MachineSet/default/c: annotation cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size is "-1"; it must be a whole number from 0 to 2147483647
MachineSet/default/d: spec.replicas is missing; it must be the number of nodes
MachineSet/default/e: json: cannot unmarshal string into Go struct field .spec.replicas of type int64
MachineSet/default/f: 1 to 3, 1 wanted`},
		{"an instance that two groups have, in the first by name",
			set("s", 1, "") + set("t", 1, "") + machineOf("MachineSet/s", "m1", "cloud://1", "n1") + machineOf("MachineSet/t", "m2", "cloud://1", "n1"),
			"MachineSet/default/s: 1 to 3, 1 wanted; cloud://1 is n1\nMachineSet/default/t: 1 to 3, 1 wanted"},
	} {
		t.Run(c.name, func(t *testing.T) {
			manage(t, Config{}, c.objects, func(m *management) {
				if got := m.groups(); got != c.want {
					t.Errorf("got\n%s\nwant\n%s", got, c.want)
				}
			})
		})
	}
}

// TestFailedMachines are instances that will never be nodes; those that are nodes are left alone.
func TestFailedMachines(t *testing.T) {
	for _, c := range []struct{ name, status, want string }{
		{"well", "phase: Running", ""},
		{"v1beta1", "failureReason: CreateError, failureMessage: no such image", " failed, Other CreateError: CreateError: no such image"},
		{"v1beta2", "deprecated: {v1beta1: {failureReason: CreateError, failureMessage: no such image}}", " failed, Other CreateError: CreateError: no such image"},
		{"a stock-out", "failureReason: InsufficientResources, failureMessage: quota", " failed, OutOfResources InsufficientResources: InsufficientResources: quota"},
		{"no reason", "failureMessage: broken", " failed, Other Other: broken"},
		{"only the phase", "phase: Failed", " failed, Other Failed: the phase of Machine/default/m is Failed"},
		{"a condition that is an error", "conditions: [{type: InfrastructureReady, status: 'False', severity: Error, reason: NoImage, message: none}]", " failed, Other NoImage: NoImage: none"},
		{"a condition of v1beta1 in v1beta2", "deprecated: {v1beta1: {conditions: [{type: InfrastructureReady, status: 'False', severity: Error, reason: NoImage}]}}", " failed, Other NoImage: NoImage"},
		{"a condition that isn't", "conditions: [{type: InfrastructureReady, status: 'False', severity: Info, reason: Waiting}]", ""},
		{"another condition", "conditions: [{type: NodeHealthy, status: 'False', severity: Error, reason: Gone}]", ""},
		{"a node", "failureMessage: broken, nodeRef: {name: n1}", " is n1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			manage(t, Config{}, deployment("d", 1)+machineOf("MachineSet/d-set", "m", "cloud://1", "", c.status), func(m *management) {
				if got, want := m.groups(), "MachineDeployment/default/d: 0 to 5, 1 wanted; cloud://1"+c.want; got != want {
					t.Errorf("got  %s\nwant %s", got, want)
				}
			})
		})
	}
}

// TestGroupOf goes by the provider ID, and by the name where one side has none.
func TestGroupOf(t *testing.T) {
	objects := deployment("d", 3) + machineOf("MachineSet/d-set", "m1", "cloud://1", "n1") + machineOf("MachineSet/d-set", "m2", "", "n2") + machineOf("MachineSet/d-set", "m3", "cloud://3", "") +
		"---\nkind: MachinePool\n" + limited("p", 0, 9) + "spec: {replicas: 1, providerIDList: [cloud://4]}\nstatus: {nodeRefs: [{name: n4}, {name: n5}]}\n"
	const d, p = "MachineDeployment/default/d", "MachinePool/default/p"
	manage(t, Config{}, objects, func(m *management) {
		node := func(name, id string) *v1.Node {
			n := &v1.Node{}
			n.Name, n.Spec.ProviderID = name, id
			return n
		}
		if got := m.provider.GroupOf(node("n1", "cloud://1")); got != "" {
			t.Errorf("before the first reading a node is of %q", got)
		}
		m.groups()
		for _, c := range []struct{ name, id, want string }{
			{"n1", "cloud://1", d}, {"other", "cloud://1", d}, {"n1", "", d},
			{"n1", "cloud://of-another-cluster", ""}, {"n2", "cloud://whatever", d}, {"n3", "cloud://3", d},
			{"n4", "cloud://4", p}, {"n5", "", p}, {"n6", "", ""}, {"n6", "cloud://6", ""},
		} {
			if got := m.provider.GroupOf(node(c.name, c.id)); got != c.want {
				t.Errorf("node %s with %q is of %q, want %q", c.name, c.id, got, c.want)
			}
		}
	})
}

// TestSelections narrow the groups down.
func TestSelections(t *testing.T) {
	objects := "kind: MachineSet\n" + limited("a", 0, 3) + "spec: {replicas: 0, clusterName: blue}\n---\nkind: MachineSet\n" + limited("b", 0, 3) + "spec: {replicas: 0, clusterName: red}\n"
	for value, want := range map[string]string{
		"clusterapi:": "a b", "clusterapi:clusterName=red": "b", "clusterapi:namespace=default,clusterName=blue": "a",
		"clusterapi:namespace=elsewhere": "", "clusterapi:color=green": "",
	} {
		s, err := ParseAutoDiscovery(value)
		if err != nil {
			t.Fatal(err)
		}
		manage(t, Config{Discovery: []Selection{s}}, objects, func(m *management) {
			var got []string
			for line := range strings.SplitSeq(m.groups(), "\n") {
				if rest, ok := strings.CutPrefix(line, "MachineSet/default/"); ok {
					got = append(got, rest[:1])
				}
			}
			if strings.Join(got, " ") != want {
				t.Errorf("%s selects %q, want %q", value, got, want)
			}
		})
	}
}

// TestReadingMakesNoCall for 200 groups of ten Machines, once the caches are full.
func TestReadingMakesNoCall(t *testing.T) {
	manage(t, Config{}, manyGroups(200), func(m *management) {
		m.groups()
		m.calls()
		if got := strings.Count(m.groups(), "cloud://"); got != 2000 {
			t.Errorf("there are %d instances, want 2000", got)
		}
		if calls := m.calls(); len(calls) > 0 {
			t.Errorf("the API server is asked for %q, want nothing", calls)
		}
	})
}

// TestWithoutClusterAPI there is an error that says so, until it is installed.
func TestWithoutClusterAPI(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManagement(t, Config{}, "v1beta1", nil, "")
		const remedy = "; install Cluster API there, or set --cloud-config to the kubeconfig of another cluster"
		for _, c := range []struct {
			served []string
			want   string
		}{
			{nil, "the management cluster at https://management has no API group cluster.x-k8s.io" + remedy},
			{[]string{machines}, "the management cluster at https://management has no machinesets in cluster.x-k8s.io/v1beta1" + remedy},
			{[]string{machines, machineSets}, ""},
		} {
			m.serve(c.served...)
			if got := m.groups(); got != c.want {
				t.Errorf("with %v: got %q, want %q", c.served, got, c.want)
			}
		}
		// A kind that comes later is found, in half a minute.
		m.serve(resources...)
		for _, o := range parse(t, "kind: MachinePool\n"+limited("p", 0, 9)+"spec: {replicas: 0}\n") {
			o.SetAPIVersion(m.version.String())
			m.create(o)
		}
		if got := m.groups(); got != "" {
			t.Errorf("at once there is %q", got)
		}
		time.Sleep(lookAgain)
		if got, want := m.groups(), "MachinePool/default/p: 0 to 9, 0 wanted"; got != want {
			t.Errorf("later there is %q, want %q", got, want)
		}
	})
}

// TestAKindThatMayNotBeRead is an error that names it: its groups would look empty.
func TestAKindThatMayNotBeRead(t *testing.T) {
	manage(t, Config{}, deployment("d", 1), func(m *management) {
		forbid := func(a clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(a.GetResource().GroupResource(), "", fmt.Errorf("no"))
		}
		m.objects.PrependReactor("list", machines, forbid)
		if got, want := m.groups(), "reading machines.cluster.x-k8s.io of the management cluster: machines.cluster.x-k8s.io is forbidden: no"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// TestPricesOfGroups are those of Berth's annotation. One that can't be read is no price, and is said beside
// what else is wrong.
func TestPricesOfGroups(t *testing.T) {
	set := func(name string, annotations ...string) string {
		return "---\nkind: MachineSet\n" + limited(name, 0, 3, annotations...) + "spec: {replicas: 0}\n"
	}
	objects := set("a", PriceAnnotation+": '0.42'") + set("b") + set("c", PriceAnnotation+": $1", "cluster.x-k8s.io/autoscaling-options-magic: x") + set("d", PriceAnnotation+": '-1'") + set("e", PriceAnnotation+": NaN")
	manage(t, Config{}, objects, func(m *management) {
		list, err := m.provider.Groups(m.t.Context())
		if err != nil {
			m.t.Fatal(err)
		}
		for i, want := range []float64{0.42, 0, 0, 0, 0} {
			if list[i].Price != want || list[i].Unreadable != "" {
				m.t.Errorf("%s costs %v (%s), want %v", list[i].ID, list[i].Price, list[i].Unreadable, want)
			}
		}
		const magic = "annotation cluster.x-k8s.io/autoscaling-options-magic is \\\"x\\\"; there is no such option; the flag applies; "
		for name, want := range map[string]string{"c": magic + `annotation berth.dev/price-per-hour is \"$1\"; it must be a number from 1e-06 to 1e+09; the price is unknown"`, "d": `"annotation berth.dev/price-per-hour is \"-1\"; it must be`, "e": `is \"NaN\"; it must be`} {
			if log := m.log.String(); !strings.Contains(log, want) {
				m.t.Errorf("of %s the log should say %s\n%s", name, want, log)
			}
		}
	})
}

// TestWarningsAreSaidOnce until they change.
func TestWarningsAreSaidOnce(t *testing.T) {
	key := "cluster.x-k8s.io/autoscaling-options-scaledownunneededtime"
	manage(t, Config{}, "kind: MachineSet\n"+limited("s", 0, 3, key+": soon")+"spec: {replicas: 0}\n", func(m *management) {
		for range 3 {
			m.groups()
		}
		m.change(machineSets, "s", func(o map[string]any) { unstructured.RemoveNestedField(o, "metadata", "annotations", key) })
		m.groups()
		var got []string
		for line := range strings.Lines(m.log.String()) {
			if strings.Contains(line, "MachineSet/default/s") {
				got = append(got, strings.TrimSpace(line))
			}
		}
		want := []string{
			`level=WARN msg="a Cluster API object is unusable" object=MachineSet/default/s err="annotation ` + key + ` is \"soon\"; it must be a duration such as 10m0s; the flag applies"`,
			`level=INFO msg="a Cluster API object is usable again" object=MachineSet/default/s`,
		}
		if !slices.Equal(got, want) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}
