package testkit

import (
	v1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/cluster"
)

// podGroups are the names of the groups that random pods are members of.
var podGroups = []string{"gang", "rack"}

// changePodGroup sets or removes a PodGroup, which may require a topology.
func (w *World) changePodGroup(t *rapid.T) string {
	key := cluster.PodGroupKey{Namespace: pick(t, spaces, "group ns"), Name: pick(t, podGroups, "pod group")}
	if maybe(t, 30, "group is gone") {
		w.State.RemoveObject(cluster.PodGroupKind, key.Namespace, key.Name)
		return "remove pod group " + key.String()
	}
	label := pick(t, []string{"", v1.LabelTopologyZone, v1.LabelTopologyZone, v1.LabelHostname}, "required")
	g := PodGroup(key.Name, rapid.IntRange(0, 3).Draw(t, "minCount"), label)
	g.Namespace = key.Namespace
	if maybe(t, 50, "members go together") {
		g.Spec.DisruptionMode = &schedulingv1beta1.DisruptionMode{All: &schedulingv1beta1.AllDisruptionMode{}}
	}
	if maybe(t, 30, "group has a priority") {
		g.Spec.Priority = new(int32(rapid.IntRange(0, 3).Draw(t, "group's priority")))
	}
	w.State.SetObject(g)
	return "set pod group " + key.String() + " requiring " + label
}
