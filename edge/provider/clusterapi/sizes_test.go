package clusterapi

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
)

// TestSizes are written once, whatever becomes of the call and whoever writes meanwhile.
func TestSizes(t *testing.T) {
	const id = "MachineDeployment/default/d" // of 2, at most 5
	lost := errors.New("the connection was lost")
	for _, c := range []struct {
		name    string
		delta   int
		prepare func(m *management)
		want    int64
		err     string
	}{
		{name: "more", delta: 2, want: 4},
		{name: "more than the maximum", delta: 4, want: 2, err: "increasing node group " + id + " by 4: its size is 2 and its maximum 5"},
		{name: "somebody writes between reading and writing", delta: 1, want: 4, prepare: func(m *management) {
			m.onUpdate = func() error {
				m.onUpdate = nil
				m.resize(machineDeployments, "d", 3)
				return nil
			}
		}},
		{name: "somebody always writes", delta: 1, want: 2, err: "it was written since", prepare: func(m *management) {
			m.onUpdate = func() error { m.revision++; return nil }
		}},
		{name: "an answer that is lost", delta: 2, want: 4, prepare: func(m *management) {
			m.onAnswer = func() error { m.onAnswer = nil; return lost }
		}},
		{name: "a call that is lost", delta: 2, want: 4, prepare: func(m *management) {
			m.onUpdate = func() error { m.onUpdate = nil; return lost }
		}},
		{name: "calls that never arrive", delta: 2, want: 2, err: lost.Error(), prepare: func(m *management) {
			m.onUpdate = func() error { return lost }
		}},
		{name: "it is refused", delta: 2, want: 2, err: "denied", prepare: func(m *management) {
			calls := 0
			m.onUpdate = func() error {
				if calls++; calls > 1 {
					t.Error("it is asked for again")
				}
				return apierrors.NewForbidden(m.version.WithResource(machineDeployments).GroupResource(), "d", errors.New("denied"))
			}
		}},
		{name: "fewer than exist", delta: -1, want: 2, err: "decreasing node group " + id + " by 1: its size is 2, and 2 instances exist"},
		{name: "fewer, of which some don't exist", delta: -1, want: 3, prepare: func(m *management) {
			m.resize(machineDeployments, "d", 4)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			manage(t, Config{}, deployment("d", 2)+machineOf("MachineSet/d-set", "m1", "cloud://1", "n1")+machineOf("MachineSet/d-set", "m2", "cloud://2", ""), func(m *management) {
				m.groups()
				if c.prepare != nil {
					c.prepare(m)
				}
				var err error
				if c.delta > 0 {
					err = m.provider.IncreaseSize(m.t.Context(), id, c.delta)
				} else {
					err = m.provider.DecreaseTargetSize(m.t.Context(), id, -c.delta)
				}
				if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
					t.Errorf("the error is %v, want %q", err, c.err)
				}
				if got := m.size(machineDeployments, "d"); got != c.want {
					t.Errorf("the size is %d, want %d", got, c.want)
				}
			})
		})
	}
}

// TestDeletions mark Machines and lower the size by as many, or change nothing.
func TestDeletions(t *testing.T) {
	const d, p = "MachineDeployment/default/d", "MachinePool/default/p" // of 3 and of 2
	objects := deployment("d", 3) + machineOf("MachineSet/d-set", "m1", "cloud://1", "n1") + machineOf("MachineSet/d-set", "m2", "", "n2") + machineOf("MachineSet/d-set", "m3", "", "") +
		"---\nkind: MachinePool\n" + limited("p", 0, 9) + "spec: {replicas: 2, providerIDList: [cloud://4, cloud://5]}\nstatus: {nodeRefs: [{name: n4}, {name: n5}]}\n" + machineOf("MachinePool/p", "m4", "cloud://4", "n4")
	for _, c := range []struct {
		name      string
		group     string
		instances []nodegroup.Instance
		prepare   func(m *management)
		again     bool   // the call is made a second time
		want      string // names of marked Machines, and the size of both groups
		err       string
	}{
		{name: "by the provider ID", group: d, instances: []nodegroup.Instance{{ID: "cloud://1", Node: "n1"}}, want: "[m1] 2 2"},
		{name: "by the node's name, where the Machine has no provider ID", group: d, instances: []nodegroup.Instance{{ID: "cloud://of-the-node", Node: "n2"}}, want: "[m2] 2 2"},
		{name: "one that is no node yet", group: d, instances: []nodegroup.Instance{{ID: "Machine/default/m3"}}, want: "[m3] 2 2"},
		{name: "several", group: d, instances: []nodegroup.Instance{{ID: "cloud://1"}, {Node: "n2"}}, want: "[m1 m2] 1 2"},
		{name: "one of a pool", group: p, instances: []nodegroup.Instance{{ID: "cloud://4", Node: "n4"}}, want: "[m4] 3 1"},
		{name: "one of a pool that no Machine is", group: p, instances: []nodegroup.Instance{{ID: "cloud://5", Node: "n5"}}, want: "[] 3 2", err: "deleting 1 nodes of group " + p + ": instance cloud://5 has no Machine, so it can't be selected for deletion"},
		{name: "one that is gone", group: d, instances: []nodegroup.Instance{{ID: "cloud://9", Node: "n9"}}, want: "[] 3 2"},
		{name: "one that is gone since", group: d, instances: []nodegroup.Instance{{ID: "cloud://1"}}, want: "[] 3 2", prepare: func(m *management) {
			m.objects.PrependReactor("patch", machines, func(a clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewNotFound(a.GetResource().GroupResource(), "m1")
			})
		}},
		{name: "twice", group: d, instances: []nodegroup.Instance{{ID: "cloud://1"}}, again: true, want: "[m1] 2 2"},
		{name: "a size that can't be written", group: d, instances: []nodegroup.Instance{{ID: "cloud://1"}, {Node: "n2"}}, want: "[] 3 2", err: "not now", prepare: func(m *management) {
			m.onUpdate = func() error { return errors.New("not now") }
		}},
		{name: "a size of which nobody knows whether it was written", group: d, instances: []nodegroup.Instance{{ID: "cloud://1"}}, want: "[m1] 2 2", err: "away", prepare: func(m *management) {
			m.onAnswer = func() error { m.away = errors.New("away"); return m.away }
		}},
		{name: "a Machine that can't be marked", group: d, instances: []nodegroup.Instance{{ID: "cloud://1"}, {Node: "n2"}}, want: "[] 3 2", err: "marking Machine/default/m2: not now", prepare: func(m *management) {
			m.objects.PrependReactor("patch", machines, func(a clienttesting.Action) (bool, runtime.Object, error) {
				return a.(clienttesting.PatchAction).GetName() == "m2", nil, errors.New("not now")
			})
		}},
		{name: "an unknown group", group: "MachineSet/default/none", want: "[] 3 2", err: "deleting 0 nodes of group MachineSet/default/none: no such group"},
	} {
		t.Run(c.name, func(t *testing.T) {
			manage(t, Config{}, objects, func(m *management) {
				m.groups()
				if c.prepare != nil {
					c.prepare(m)
				}
				err := m.provider.DeleteNodes(m.t.Context(), c.group, c.instances)
				if c.again {
					synctest.Wait()
					err = errors.Join(err, m.provider.DeleteNodes(m.t.Context(), c.group, c.instances))
				}
				if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
					t.Errorf("the error is %v, want %q", err, c.err)
				}
				if got := fmt.Sprint(m.marked(), m.size(machineDeployments, "d"), m.size(machinePools, "p")); got != c.want {
					t.Errorf("marked are %s, want %s", got, c.want)
				}
			})
		})
	}
}

// TestADeletedInstanceIsListedNoMore at once, before Cluster API has done anything.
func TestADeletedInstanceIsListedNoMore(t *testing.T) {
	manage(t, Config{}, deployment("d", 2)+machineOf("MachineSet/d-set", "m1", "cloud://1", "n1")+machineOf("MachineSet/d-set", "m2", "cloud://2", "n2"), func(m *management) {
		m.groups()
		if err := m.provider.DeleteNodes(m.t.Context(), "MachineDeployment/default/d", []nodegroup.Instance{{ID: "cloud://2"}}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got, want := m.groups(), "MachineDeployment/default/d: 0 to 5, 1 wanted; cloud://1 is n1"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if err := m.objects.Resource(m.version.WithResource(machines)).Namespace("default").Delete(m.t.Context(), "m2", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got, want := m.groups(), "MachineDeployment/default/d: 0 to 5, 1 wanted; cloud://1 is n1"; got != want {
			t.Errorf("later got %q, want %q", got, want)
		}
	})
}
