package nodefilters_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/plugins/nodefilters"
	"github.com/berthproject/berth/internal/test/testkit"
	rt "github.com/berthproject/berth/internal/test/testkit/ruletest"
)

// The portsonly reason of ByPorts.
const taken = "Reject: node(s) didn't have free ports for the requested pod ports"

var portsPlugin = rt.Is(nodefilters.ByPorts{})

func port(number int32, protocol v1.Protocol, address string) v1.ContainerPort {
	return v1.ContainerPort{HostPort: number, ContainerPort: 80, Protocol: protocol, HostIP: address}
}

func pod(ports ...v1.ContainerPort) *testkit.PodBuilder {
	return testkit.Pod("p").With(func(p *v1.Pod) { p.Spec.Containers[0].Ports = ports })
}

func TestByPorts(t *testing.T) {
	const tcp, udp, sctp = v1.ProtocolTCP, v1.ProtocolUDP, v1.ProtocolSCTP
	// one asks for a port while another pod has one on node a.
	one := func(name string, used, wanted v1.ContainerPort, want string) rt.Case {
		return rt.Case{Name: name, Pod: pod(wanted), Pods: rt.Pods{pod(used).On("a")}, Want: rt.Want{"a": want, "b": rt.OK}}
	}
	sidecar, initially := testkit.Pod("p").Sidecar(), testkit.Pod("p").InitContainer()
	for _, p := range []*testkit.PodBuilder{sidecar, initially} {
		p.Spec.InitContainers[0].Ports = []v1.ContainerPort{port(80, tcp, "")}
	}
	rt.Table{Plugin: portsPlugin, Nodes: rt.Nodes{testkit.Node("a"), testkit.Node("b")}, Cases: []rt.Case{
		{Name: "no ports", Pod: pod(), Want: rt.Want{rt.All: rt.Skip}},
		{Name: "no host ports", Pod: pod(port(0, tcp, "")), Pods: rt.Pods{pod(port(0, tcp, "")).On("a")}, Want: rt.Want{rt.All: rt.Skip}},
		one("the same port", port(80, tcp, ""), port(80, tcp, ""), taken),
		one("another port", port(80, tcp, ""), port(81, tcp, ""), rt.OK),
		one("another protocol", port(80, tcp, ""), port(80, udp, ""), rt.OK),
		one("a third protocol", port(80, sctp, ""), port(80, sctp, ""), taken),
		one("TCP is the default", port(80, "", ""), port(80, tcp, ""), taken),
		one("the same address", port(80, tcp, "10.0.0.1"), port(80, tcp, "10.0.0.1"), taken),
		one("another address", port(80, tcp, "10.0.0.1"), port(80, tcp, "10.0.0.2"), rt.OK),
		one("all addresses are taken", port(80, tcp, "0.0.0.0"), port(80, tcp, "10.0.0.1"), taken),
		one("all addresses are asked for", port(80, tcp, "10.0.0.1"), port(80, tcp, ""), taken),
		one("all addresses of another protocol", port(80, udp, ""), port(80, tcp, "10.0.0.1"), rt.OK),
		{Name: "one of several", Pod: pod(port(80, tcp, ""), port(81, tcp, "")), Pods: rt.Pods{pod(port(90, tcp, ""), port(81, tcp, "")).On("a")}, Want: rt.Want{"a": taken, "b": rt.OK}},
		{Name: "of a sidecar", Pod: sidecar, Pods: rt.Pods{pod(port(80, tcp, "")).On("a")}, Want: rt.Want{"a": taken, "b": rt.OK}},
		{Name: "of an init container, which ends", Pod: initially, Pods: rt.Pods{pod(port(80, tcp, "")).On("a")}, Want: rt.Want{rt.All: rt.Skip}},
	}}.Filter(t)
}

func TestByPortsSignature(t *testing.T) {
	change := func(ports ...v1.ContainerPort) func(*testkit.PodBuilder) {
		return func(p *testkit.PodBuilder) { p.Spec.Containers[0].Ports = ports }
	}
	rt.Signatures{Plugin: portsPlugin, Pod: func() *testkit.PodBuilder { return pod(port(80, v1.ProtocolTCP, "10.0.0.1")) }, Cases: []rt.Change{
		rt.Differs("name, label", func(p *testkit.PodBuilder) { p.Name = "q"; p.Label("app", "web") }, rt.Same),
		rt.Differs("port of the container", func(p *testkit.PodBuilder) { p.Spec.Containers[0].Ports[0].ContainerPort = 8080 }, rt.Same),
		rt.Differs("port", change(port(81, v1.ProtocolTCP, "10.0.0.1")), rt.Local),
		rt.Differs("protocol", change(port(80, v1.ProtocolUDP, "10.0.0.1")), rt.Local),
		rt.Differs("address", change(port(80, v1.ProtocolTCP, "10.0.0.2")), rt.Local),
		rt.Differs("one more", change(port(80, v1.ProtocolTCP, "10.0.0.1"), port(81, v1.ProtocolTCP, "10.0.0.1")), rt.Local),
		rt.Differs("none", change(), rt.Local),
	}}.Run(t)
}
