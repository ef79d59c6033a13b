package clusterapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/cluster"
)

// TestAutoDiscovery reads values of --node-group-auto-discovery.
func TestAutoDiscovery(t *testing.T) {
	const form = "; it must be clusterapi:namespace=NAME,clusterName=NAME,LABEL=VALUE, with any part optional"
	for _, c := range []struct{ value, want string }{
		{"clusterapi:", `namespace "", cluster "", labels ""`},
		{"clusterapi:namespace=staging,clusterName=purple,owner=jim", `namespace "staging", cluster "purple", labels "owner=jim"`},
		{"clusterapi:color=green, shape=square,", `namespace "", cluster "", labels "color=green,shape=square"`},
		{"", `"" is not for the provider clusterapi` + form},
		{"clusterapi", `"clusterapi" is not for the provider clusterapi` + form},
		{"asg:tag=x", `"asg:tag=x" is not for the provider clusterapi` + form},
		{"clusterapi:namespace", `"clusterapi:namespace" has the part "namespace"` + form},
		{"clusterapi:=x", `"clusterapi:=x" has the part "=x"` + form},
		{"clusterapi:a=b=c", `"clusterapi:a=b=c" has the part "a=b=c"` + form},
		{"clusterapi:namespace=a,namespace=b", `"clusterapi:namespace=a,namespace=b" has namespace twice; give the flag once for each value`},
		{"clusterapi:a b=c", `"clusterapi:a b=c" has the part "a b=c", which is not a label: `},
	} {
		s, err := ParseAutoDiscovery(c.value)
		got := fmt.Sprint(err)
		if err == nil {
			got = fmt.Sprintf("namespace %q, cluster %q, labels %q", s.Namespace, s.ClusterName, s.Labels)
		}
		if got != c.want && (!strings.HasSuffix(c.want, ": ") || !strings.HasPrefix(got, c.want)) {
			t.Errorf("%q:\n got %s\nwant %s", c.value, got, c.want)
		}
	}
}

// TestOneNamespaceIsWatched when all values name the same.
func TestOneNamespaceIsWatched(t *testing.T) {
	for _, c := range []struct {
		selections []Selection
		want       string
	}{
		{nil, ""}, {[]Selection{{Namespace: "a"}}, "a"}, {[]Selection{{Namespace: "a", ClusterName: "c"}, {Namespace: "a"}}, "a"},
		{[]Selection{{Namespace: "a"}, {Namespace: "b"}}, ""}, {[]Selection{{Namespace: "a"}, {}}, ""},
	} {
		if got := namespaceOf(c.selections); got != c.want {
			t.Errorf("%v: %q is watched, want %q", c.selections, got, c.want)
		}
	}
}

// TestOptions are read of annotations; one that can't be leaves the flag.
func TestOptions(t *testing.T) {
	const prefix = "cluster.x-k8s.io/autoscaling-options-"
	k := keysOf(DefaultGroup)
	for _, c := range []struct{ annotations, want, wrong string }{
		{"", "null", ""},
		{"scaledownutilizationthreshold: '0.4', scaledowngpuutilizationthreshold: '0'", `{"scaleDownUtilizationThreshold":0.4,"scaleDownGpuUtilizationThreshold":0}`, ""},
		{"scaledownunneededtime: 10M0s, scaledownunreadytime: 20m, maxnodeprovisiontime: 5m", `{"scaleDownUnneededTime":"10m0s","scaleDownUnreadyTime":"20m0s","maxNodeProvisionTime":"5m0s"}`, ""},
		{"scaledownunneededtime: ''", "null", ""},
		{"scaledownutilizationthreshold: half, scaledownunneededtime: 1m", `{"scaleDownUnneededTime":"1m0s"}`, prefix + `scaledownutilizationthreshold is "half"; it must be a ratio from 0 to 1; the flag applies`},
		{"scaledownutilizationthreshold: NaN", "null", prefix + `scaledownutilizationthreshold is "NaN"; it must be a ratio from 0 to 1; the flag applies`},
		{"scaledownunreadytime: -1m", "null", prefix + `scaledownunreadytime is "-1m"; it must be a duration such as 10m0s; the flag applies`},
		{"maxnodeprovisiontime: 0s", "null", prefix + `maxnodeprovisiontime is "0s"; it must be a duration such as 10m0s; the flag applies`},
		{"maxnodestartuptime: 5m", `{"maxNodeStartupTime":"5m0s"}`, ""},
		{"maxnodestartuptime: 0s", "null", prefix + `maxnodestartuptime is "0s"; it must be a duration such as 10m0s; the flag applies`},
		{"magic: yes!", "null", prefix + `magic is "yes!"; there is no such option; the flag applies`},
	} {
		annotations := map[string]string{}
		for key, value := range flow(t, c.annotations) {
			annotations[prefix+key] = value
		}
		o, wrong := k.groupOptions(annotations)
		raw, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		if wrong = strings.TrimPrefix(wrong, "annotation "); string(raw) != c.want || wrong != c.wrong || o.Validate() != nil {
			t.Errorf("%s:\n got %s, %s\nwant %s, %s", c.annotations, raw, wrong, c.want, c.wrong)
		}
	}
}

// flow reads a mapping as YAML has it between braces.
func flow(t *testing.T, text string) map[string]string {
	t.Helper()
	out := map[string]string{}
	if err := yaml.UnmarshalStrict([]byte("{"+text+"}"), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestTemplates are made of capacity annotations, the labels that Machines give their nodes, and
// the taints of Machines.
func TestTemplates(t *testing.T) {
	const cpu, rest = "cpu: '4', memory: 16Gi", "cpu=4 memory=16Gi pods=110"
	for _, c := range []struct{ name, annotations, spec, want string }{
		{"the least", cpu, "", rest + " kubernetes.io/arch=amd64 kubernetes.io/os=linux"},
		{"all", cpu + ", maxPods: '20', ephemeral-disk: 100Gi, gpu-type: nvidia.com/gpu, gpu-count: '2', labels: 'a=b,kubernetes.io/arch=arm64', taints: 'k=v:NoSchedule,l:NoExecute', csi-driver: disks=3", "",
			"cpu=4 ephemeral-storage=100Gi memory=16Gi nvidia.com/gpu=2 pods=20 a=b kubernetes.io/arch=arm64 kubernetes.io/os=linux k=v:NoSchedule l:NoExecute disks=3"},
		{"labels and taints of the Machines", cpu + ", labels: node.cluster.x-k8s.io/b=annotated, taints: 'k=annotated:NoSchedule'",
			"template: {metadata: {labels: {node.cluster.x-k8s.io/a: x, node.cluster.x-k8s.io/b: x, my.node-restriction.kubernetes.io/c: x, node-role.kubernetes.io/worker: '', other: x, x-node.cluster.x-k8s.io/d: x}}, spec: {taints: [{key: k, value: v, effect: NoSchedule, propagation: Always}, {key: k, effect: NoExecute}]}}",
			rest + " kubernetes.io/arch=amd64 kubernetes.io/os=linux my.node-restriction.kubernetes.io/c=x node-role.kubernetes.io/worker= node.cluster.x-k8s.io/a=x node.cluster.x-k8s.io/b=annotated k=annotated:NoSchedule k:NoExecute"},
		{"devices that are no resource", cpu + ", dra-driver: gpu.nvidia.com, gpu-count: '2'", "", rest + " kubernetes.io/arch=amd64 kubernetes.io/os=linux"},
		{"a driver that is none", cpu + ", dra-driver: GPU, gpu-count: '2'", "", `annotation C/dra-driver is "GPU"; it must be a DNS name of at most 63 characters, such as gpu.nvidia.com`},
		{"more devices than a slice has", cpu + ", dra-driver: gpu.nvidia.com, gpu-count: '129'", "", `annotation C/gpu-count is "129"; it must be at most 128 beside C/dra-driver`},
		{"0 pods, which means as many as by default", cpu + ", maxPods: '0'", "", rest + " kubernetes.io/arch=amd64 kubernetes.io/os=linux"},
		{"nothing", "", "", "annotation C/cpu is missing; without it the group can't be scaled up from zero; annotation C/memory is missing; without it the group can't be scaled up from zero"},
		{"no quantities", "cpu: four, memory: '-1'", "", `annotation C/cpu is "four"; it must be a quantity above 0, such as 4 or 16Gi; annotation C/memory is "-1"; it must be a quantity above 0, such as 4 or 16Gi`},
		{"no numbers", cpu + ", maxPods: many, gpu-count: '1.5', gpu-type: nvidia.com/gpu", "", `annotation C/maxPods is "many"; it must be a whole number of at least 0; annotation C/gpu-count is "1.5"; it must be a whole number of at least 0`},
		{"GPUs of no type", cpu + ", gpu-count: '1'", "", "annotation C/gpu-type is missing beside C/gpu-count; it must be the name of a resource, such as nvidia.com/gpu"},
		{"GPUs of a type that is no resource", cpu + ", gpu-count: '1', gpu-type: a100", "", `annotation C/gpu-type is "a100"; it must be the name of a resource, such as nvidia.com/gpu`},
		{"no label", cpu + ", labels: 'a=b,c d'", "", `annotation C/labels is "a=b,c d"; it must be a list of labels, KEY=VALUE,KEY=VALUE, and "c d" is not one`},
		{"no taint", cpu + ", taints: 'a=b,c:Never'", "", `annotation C/taints is "a=b,c:Never"; it must be a list of taints, KEY=VALUE:EFFECT,KEY:EFFECT, and "a=b" is not one; annotation C/taints is "a=b,c:Never"; it must be a list of taints, KEY=VALUE:EFFECT,KEY:EFFECT, and "c:Never" is not one`},
		{"no driver", cpu + ", csi-driver: disks", "", `annotation C/csi-driver has "disks"; it must be DRIVER=COUNT, such as ebs.csi.aws.com=25, several separated by commas`},
	} {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte("{metadata: {name: x}, spec: {"+c.spec+"}}"), &u.Object); err != nil {
			t.Fatal(err)
		}
		annotations := map[string]string{}
		for key, value := range flow(t, c.annotations) {
			annotations[capacityPrefix+key] = value
		}
		u.SetAnnotations(annotations)
		n, err := template(readScalable(u), DefaultArch)
		got := strings.ReplaceAll(fmt.Sprint(err), capacityPrefix, "C/")
		if err == nil {
			got = nodeText(n)
		}
		if got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

// TestDevicesOfADRADriver: there are as many as GPUs, each of the type gpu.
func TestDevicesOfADRADriver(t *testing.T) {
	for _, c := range []struct {
		driver, count string
		want          int
	}{{"gpu.nvidia.com", "4", 4}, {"gpu.nvidia.com", "0", 0}, {"gpu.nvidia.com", "", 0}, {"", "4", 0}} {
		o := &scalable{}
		o.Annotations = map[string]string{draDriverKey: c.driver, gpuCountKey: c.count}
		got := 0
		for _, s := range devices(o) {
			for i := range s.Spec.Devices {
				if got++; s.Spec.Driver != c.driver || *s.Spec.Devices[i].Attributes["type"].StringValue != "gpu" {
					t.Errorf("a device is %+v of %s", s.Spec.Devices[i], s.Spec.Driver)
				}
			}
		}
		if got != c.want {
			t.Errorf("driver %q and count %q: %d devices, want %d", c.driver, c.count, got, c.want)
		}
	}
}

// nodeText writes what a node has, what it is labelled with, and its taints.
func nodeText(n *v1.Node) string {
	var out []string
	for _, list := range []map[string]string{amounts(n.Status.Allocatable), n.Labels} {
		for _, key := range sorted(list) {
			out = append(out, key+"="+list[key])
		}
	}
	for _, t := range n.Spec.Taints {
		out = append(out, t.ToString())
	}
	if drivers := n.Annotations[nodegroup.CSIDriversAnnotation]; drivers != "" {
		out = append(out, drivers)
	}
	return strings.Join(out, " ")
}

// FuzzAnnotations reads any annotations and any object. What is accepted is a group that the core
// can have.
func FuzzAnnotations(f *testing.F) {
	f.Add("0", "5", "4", "16Gi", "110", "nvidia.com/gpu", "2", "a=b", "k=v:NoSchedule", "disks=3", "0.5", "10m", []byte(`{"spec":{"replicas":1,"providerIDList":["a"]}}`))
	f.Add("-1", "x", "9e99", "1Ei", "-", "", "1", "=", ":", "=,", "NaN", "-1h", []byte(`{"spec":{"replicas":"x","template":[]},"status":{"nodeRefs":{}}}`))
	f.Add("2147483648", "", "1e-9", "0", "0", "gpu", "", ",,", "a:b:c", "x=-1", "1e400", "9999999h", []byte(`{"metadata":{"ownerReferences":[null]},"status":{"conditions":[{}],"deprecated":{"v1beta1":[]}}}`))
	f.Add("1", "5", "4e999999999", "1e-999999999", "110", "", "", "", "", "", "", "", []byte(`{}`))
	k := keysOf(DefaultGroup)
	f.Fuzz(func(t *testing.T, lowest, highest, cpu, memory, pods, gpuType, gpus, labels, taints, drivers, ratio, time string, raw []byte) {
		u := &unstructured.Unstructured{}
		if json.Unmarshal(raw, &u.Object) != nil || u.Object == nil {
			u.Object = map[string]any{}
		}
		readMachine(u).instance()
		o := readScalable(u)
		o.Annotations = map[string]string{
			k.min: lowest, k.max: highest, cpuKey: cpu, memoryKey: memory, maxPodsKey: pods, gpuTypeKey: gpuType, gpuCountKey: gpus, labelsKey: labels, taintsKey: taints, nodegroup.CSIDriversAnnotation: drivers,
			k.options + utilizationThreshold: ratio, k.options + provisionTime: time, k.options + unneededTime: time,
		}
		p := Provider{keys: k, cfg: Config{Arch: DefaultArch}}
		g := p.newGroup("g", machinePools, o)
		if g == nil {
			return
		}
		p.fill(g)
		if g.Unreadable == "" {
			if err := g.Validate(); err != nil {
				t.Errorf("%v of %+v", err, o.Annotations)
			}
			if g.Template != nil {
				cluster.NewSchema().ParseNode(g.Template, g.ID)
			}
		}
	})
}

func amounts(list v1.ResourceList) map[string]string {
	out := map[string]string{}
	for name, q := range list {
		out[string(name)] = q.String()
	}
	return out
}

func sorted(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
