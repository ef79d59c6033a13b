package checker_test

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"sigs.k8s.io/yaml"

	"github.com/berthproject/berth/sim/checker"
)

// This file specifies what the checker finds of devices: a case plants one violation, or none.

// shop has a node with two devices of which one is tainted, a device that several claims may have, and one that is divided.
const shop = `
Classes:
- {metadata: {name: gpu}, spec: {selectors: [{cel: {expression: 'device.driver == "gpu.example.com"'}}]}}
Slices:
- metadata: {name: old}
  spec: {driver: gpu.example.com, nodeName: n1, pool: {name: n1, generation: 1, resourceSliceCount: 1}, devices: [{name: withdrawn}]}
- metadata: {name: now}
  spec:
    driver: gpu.example.com
    nodeName: n1
    pool: {name: n1, generation: 2, resourceSliceCount: 2}
    devices:
    - {name: g0, attributes: {model: {string: a}, numa: {int: 0}}}
    - {name: g1, attributes: {model: {string: b}, numa: {int: 1}}}
    - {name: bad, attributes: {model: {string: a}}, taints: [{key: broken, effect: NoSchedule}]}
    - {name: shared, allowMultipleAllocations: true, capacity: {memory: {value: 80Gi}}, attributes: {model: {string: a}}}
    - {name: whole, attributes: {model: {string: a}}, consumesCounters: [{counterSet: s, counters: {memory: {value: 80Gi}}}]}
    - {name: half, attributes: {model: {string: a}}, consumesCounters: [{counterSet: s, counters: {memory: {value: 40Gi}}}]}
- metadata: {name: counters}
  spec: {driver: gpu.example.com, nodeName: n1, pool: {name: n1, generation: 2, resourceSliceCount: 2}, sharedCounters: [{name: s, counters: {memory: {value: 80Gi}}}]}
- metadata: {name: nic}
  spec: {driver: nic.example.com, nodeName: n1, pool: {name: n1, generation: 1, resourceSliceCount: 1}, devices: [{name: nic}]}
- metadata: {name: other}
  spec: {driver: gpu.example.com, nodeName: n2, pool: {name: n2, generation: 1, resourceSliceCount: 1}, devices: [{name: g0}]}
`

// claims reads claims in short: the requests, and what was given for which.
func claims(t *testing.T, text string) *checker.Devices {
	t.Helper()
	d := &checker.Devices{}
	if err := yaml.UnmarshalStrict([]byte(shop+"\n"+text), d); err != nil {
		t.Fatal(err)
	}
	for i, c := range d.Claims {
		c.Namespace, c.UID = "default", "claim"
		if c.Name == "" {
			c.Name = string(rune('a' + i))
		}
	}
	return d
}

const one = "spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu, allocationMode: ExactCount, count: 1}}]}}"

// has is the status of a claim that was given devices of pool n1 for request r.
func has(devices ...string) string {
	var out []string
	for _, d := range devices {
		driver := "gpu"
		if strings.HasPrefix(d, "nic") {
			driver = "nic"
		}
		name, rest, _ := strings.Cut(d, " ")
		out = append(out, "{request: r, driver: "+driver+".example.com, pool: n1, device: "+name+rest+"}")
	}
	return "status: {allocation: {devices: {results: [" + strings.Join(out, ", ") + "]}}}"
}

// list writes claims as a list, of their fields.
func listed(claims ...string) string {
	out := "Claims:"
	for _, c := range claims {
		out += "\n- {" + c + "}"
	}
	return out
}

func TestCheckTakenFindsWhatIsGivenAwayTwice(t *testing.T) {
	const share, more = " , shareID: x, consumedCapacity: {memory: 50Gi}", " , shareID: y, consumedCapacity: {memory: 40Gi}"
	for _, c := range []struct{ name, claims, want string }{
		{"two devices", listed(one+", "+has("g0"), one+", "+has("g1")), ""},
		{"one device for two", listed(one+", "+has("g0"), one+", "+has("g0")), "twice: device gpu.example.com/n1/g0 is in claims default/a, default/b"},
		{"one device for two, for one of them an administrator's", listed(one+", "+has("g0"), one+", "+has("g0 , adminAccess: true")), ""},
		{"a device that isn't published any more, for two", listed(one+", "+has("gone"), one+", "+has("gone")), "twice: device gpu.example.com/n1/gone"},
		{"shares within the capacity", listed(one + ", " + has("shared"+share)), ""},
		{"shares beyond the capacity", listed(one+", "+has("shared"+share), one+", "+has("shared"+more)), "capacity: of memory of device gpu.example.com/n1/shared 90Gi are consumed, and it has 80Gi, by claims default/a, default/b"},
		{"a share of a device that another has whole", listed(one+", "+has("shared"), one+", "+has("shared"+more)), "twice: device gpu.example.com/n1/shared"},
		{"a part", listed(one + ", " + has("half")), ""},
		{"the whole and a part of it", listed(one+", "+has("whole"), one+", "+has("half")), "counters: the devices in use take 120Gi of counter memory of gpu.example.com/n1/s, which has 80Gi"},
	} {
		t.Run(c.name, func(t *testing.T) { wantFound(t, claims(t, c.claims).CheckTaken(), c.want) })
	}
}

func TestCheckAllocationFindsWhatAClaimDoesNotAllow(t *testing.T) {
	exactly := func(rest string) string {
		return "spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu, " + rest + "}}]}}"
	}
	two := exactly("allocationMode: ExactCount, count: 2")
	sameModel := "spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu, allocationMode: ExactCount, count: 2}}], constraints: [{matchAttribute: gpu.example.com/model}]}}"
	firstOf := "spec: {devices: {requests: [{name: r, firstAvailable: [{name: first, deviceClassName: gpu, allocationMode: ExactCount, count: 1}, {name: second, deviceClassName: gpu, allocationMode: ExactCount, count: 2}]}]}}"
	for _, c := range []struct{ name, claim, want string }{
		{"what is asked for", one + ", " + has("g0"), ""},
		{"too few", two + ", " + has("g0"), "count: request r has 1 devices, want 2"},
		{"too many", one + ", " + has("g0", "g1"), "count: request r has 2 devices, want 1"},
		{"all", exactly("allocationMode: All") + ", " + has("g0", "g1"), ""},
		{"all of none", exactly("allocationMode: All") + ", " + has(), "count: request r asks for all devices and has none"},
		{"of another class", one + ", " + has("nic"), `class: device nic.example.com/n1/nic of request r isn't one for which "device.driver == \"gpu.example.com\"" is true`},
		{"of no class", "spec: {devices: {requests: [{name: r, exactly: {deviceClassName: tpu, allocationMode: ExactCount, count: 1}}]}}, " + has("g0"), "class: request r has devices, and class tpu doesn't exist"},
		{"of another model", exactly(`allocationMode: ExactCount, count: 1, selectors: [{cel: {expression: 'device.attributes["gpu.example.com"].model == "a"'}}]`) + ", " + has("g1"), "class: device gpu.example.com/n1/g1"},
		{"of an older generation", one + ", " + has("withdrawn"), "published: device gpu.example.com/n1/withdrawn isn't published for the node"},
		{"with a taint", one + ", " + has("bad"), "taint: device gpu.example.com/n1/bad has taint broken:NoSchedule, which request r doesn't tolerate"},
		{"with a taint that is tolerated", exactly("allocationMode: ExactCount, count: 1, tolerations: [{operator: Exists}]") + ", " + has("bad"), ""},
		{"of two models", sameModel + ", " + has("g0", "g1"), "constraint: device gpu.example.com/n1/g1 has another gpu.example.com/model than the others, or none"},
		{"of one model", sameModel + ", " + has("g0", "whole"), ""},
		{"no alternative", firstOf + ", " + has("g0"), "count: request r has devices for 0 of its alternatives, want 1"},
		{"an alternative", firstOf + ", " + strings.ReplaceAll(has("g0"), "request: r,", "request: r/first,"), ""},
		{"too few of an alternative", firstOf + ", " + strings.ReplaceAll(has("g0"), "request: r,", "request: r/second,"), "count: request r/second has 1 devices, want 2"},
		{"elsewhere", one + ", status: {allocation: {devices: {results: [{request: r, driver: gpu.example.com, pool: n2, device: g0}]}}}", "published: device gpu.example.com/n2/g0 isn't published for the node"},
		{"for another node", one + ", status: {allocation: {nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [n2]}]}]}, devices: {results: [{request: r, driver: gpu.example.com, pool: n1, device: g0}]}}}", "place: the node selector of its devices doesn't match node n1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := claims(t, listed(c.claim))
			n := &v1.Node{}
			n.Name = "n1"
			wantFound(t, d.CheckAllocation(d.Claims[0], n), c.want)
		})
	}
}

func TestCheckAllocationCountsTheTaintsOfRules(t *testing.T) {
	d := claims(t, listed(one+", "+has("g0"))+"\nRules: [{metadata: {name: r}, spec: {deviceSelector: {driver: gpu.example.com, device: g0}, taint: {key: hot, effect: NoExecute}}}]")
	n := &v1.Node{}
	n.Name = "n1"
	wantFound(t, d.CheckAllocation(d.Claims[0], n), "taint: device gpu.example.com/n1/g0 has taint hot:NoExecute")
	d.Rules[0].Spec.Taint.Effect = resourcev1.DeviceTaintEffectNone
	wantFound(t, d.CheckAllocation(d.Claims[0], n), "")
}

func TestCheckReservedFindsPodsWithoutWhatTheyClaim(t *testing.T) {
	pod := &v1.Pod{}
	pod.Namespace, pod.Name, pod.UID, pod.Spec.NodeName = "default", "p", "p", "n1"
	name := "a"
	pod.Spec.ResourceClaims = []v1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &name}}
	for _, c := range []struct{ name, claims, want string }{
		{"reserved", listed(strings.Replace(has("g0"), "status: {", "status: {reservedFor: [{resource: pods, name: p, uid: p}], ", 1)), ""},
		{"reserved for another", listed(strings.Replace(has("g0"), "status: {", "status: {reservedFor: [{resource: pods, name: p, uid: former}], ", 1)), "reserved: pod default/p is on node n1, and the claim isn't reserved for it"},
		{"without devices", listed(one), "reserved: pod default/p is on node n1, and the claim has no devices"},
		{"without the claim", "", "reserved: pod default/p is on node n1, and the claim doesn't exist"},
	} {
		t.Run(c.name, func(t *testing.T) { wantFound(t, claims(t, c.claims).CheckReserved([]*v1.Pod{pod}), c.want) })
	}
}

// wantFound wants one violation with a text, or none.
func wantFound(t *testing.T, found []checker.DeviceViolation, want string) {
	t.Helper()
	switch {
	case want == "" && len(found) > 0:
		t.Errorf("got %v, want nothing", found)
	case want != "" && (len(found) != 1 || !strings.Contains(found[0].String(), want)):
		t.Errorf("got %v, want one: %s", found, want)
	}
}
