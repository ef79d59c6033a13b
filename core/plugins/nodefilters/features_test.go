package nodefilters_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/plugins/nodefilters"
	"github.com/berthproject/berth/internal/test/testkit"
	rt "github.com/berthproject/berth/internal/test/testkit/ruletest"
)

const (
	restartAll = "RestartAllContainersOnContainerExits"
	hostUsers  = "UserNamespacesHostNetworkSupport"
	// The featuresonly reason of ByPorts.
	missing = "Final: node(s) didn't match Pod's required features"
)

var featuresPlugin = rt.Is(nodefilters.ByFeatures{})

// restarts has a container whose exit restarts all (KEP-5532).
func restarts(b *testkit.PodBuilder) *testkit.PodBuilder {
	b.Spec.Containers[0].RestartPolicyRules = []v1.ContainerRestartRule{{Action: v1.ContainerRestartRuleActionRestartAllContainers}}
	return b
}

// mapsUsers is on the host's network with user namespaces.
func mapsUsers(b *testkit.PodBuilder) *testkit.PodBuilder {
	no := false
	b.Spec.HostNetwork, b.Spec.HostUsers = true, &no
	return b
}

func TestByFeatures(t *testing.T) {
	nodes := rt.Nodes{testkit.Node("none"), testkit.Node("one").Features(restartAll), testkit.Node("other").Features(hostUsers, "Unknown"), testkit.Node("both").Features(hostUsers, restartAll)}
	rt.Table{Plugin: featuresPlugin, Nodes: nodes, Cases: []rt.Case{
		{Name: "no feature", Pod: testkit.Pod("p"), Want: rt.Want{rt.All: rt.Skip}},
		{Name: "one", Pod: restarts(testkit.Pod("p")), Want: rt.Want{"none": missing, "one": rt.OK, "other": missing, "both": rt.OK}},
		{Name: "another", Pod: mapsUsers(testkit.Pod("p")), Want: rt.Want{"none": missing, "one": missing, "other": rt.OK, "both": rt.OK}},
		{Name: "two", Pod: mapsUsers(restarts(testkit.Pod("p"))), Want: rt.Want{"both": rt.OK, rt.All: missing}},
		{Name: "half of what a feature is for", Pod: testkit.Pod("p").With(func(p *v1.Pod) { p.Spec.HostNetwork = true }), Want: rt.Want{rt.All: rt.Skip}},
	}}.Filter(t)
}

func TestByFeaturesSignature(t *testing.T) {
	rt.Signatures{Plugin: featuresPlugin, Pod: func() *testkit.PodBuilder { return testkit.Pod("p") }, Cases: []rt.Change{
		rt.Differs("name, label", func(p *testkit.PodBuilder) { p.Name = "q"; p.Label("app", "web") }, rt.Same),
		rt.Differs("what needs no feature", func(p *testkit.PodBuilder) { p.Spec.HostNetwork = true }, rt.Same),
		rt.Differs("a feature", func(p *testkit.PodBuilder) { restarts(p) }, rt.Local),
	}}.Run(t)
	rt.Signatures{Plugin: featuresPlugin, Pod: func() *testkit.PodBuilder { return restarts(testkit.Pod("p")) }, Cases: []rt.Change{
		rt.Differs("one more feature", func(p *testkit.PodBuilder) { mapsUsers(p) }, rt.Local),
		rt.Differs("the same feature twice", func(p *testkit.PodBuilder) {
			p.Spec.Containers = append(p.Spec.Containers, p.Spec.Containers[0])
		}, rt.Same),
	}}.Run(t)
}
