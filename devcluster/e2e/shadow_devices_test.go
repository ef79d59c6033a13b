package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/berthproject/berth/devcluster/devices"
	"github.com/berthproject/berth/internal/test/testkit"
)

// Where TestShadowOfDevices has devices: so many on each of so many nodes.
const (
	shadowNodes   = 4
	shadowDevices = 4
)

// TestShadowOfDevices runs a shadow beside kube-scheduler, which places pods with claims of a template, claims that
// they share and extended resources, on nodes of different sizes. The rules allow every placement, and of pods that
// come one after the other both choose the same nodes or such as are as good. What the shadow saw is recorded, and
// replayed it decides the same; a dump of the cluster says what the devices are in use for.
func TestShadowOfDevices(t *testing.T) {
	t.Parallel()
	log := auditLog(t)
	c, client := startClusterWithLog(t, log)
	makeNodesWithDevices(t, client)
	config := schedulerConfig(t, c, schedulerDefaults)
	port := freePort(t)
	server := fmt.Sprintf("https://127.0.0.1:%d", port)
	recording := filepath.Join(t.TempDir(), "recording")
	p, _ := startBerth(t, c, "--shadow", "--config", config, "--bind-address", "127.0.0.1", "--secure-port", fmt.Sprint(port), "--record="+recording)
	token := tokenFor(t, client, "reader", "/api/v1alpha1/*", "/debug/status")
	var r struct {
		Compared, Waiting, Doubted int
		Verdicts                   counts
	}
	report := func(more ...string) string {
		out, err := exec.CommandContext(t.Context(), berth, append([]string{"shadow", "report", "--server", server, "--token-file", token, "--insecure-skip-tls-verify"}, more...)...).CombinedOutput()
		if err != nil {
			return ""
		}
		return string(out)
	}
	read := func() bool {
		text := report("-o", "json")
		return text != "" && json.Unmarshal([]byte(text), &r) == nil
	}
	eventually(t, "the shadow to know the cluster", func(context.Context) bool { return read() })
	startScheduler(t, c, config)

	total := 0
	one := func(p *v1.Pod) {
		t.Helper()
		create(t, client, p)
		total++
		eventually(t, "the shadow to have compared "+p.Name, func(context.Context) bool { return read() && r.Compared == total })
	}
	for i := range 4 {
		one(deviceful(fmt.Sprint("own-", i)))
		one(sharingOne(fmt.Sprint("sharing-", i)))
		one(askingForOne(fmt.Sprint("extended-", i)))
	}
	if r.Verdicts["same"]+r.Verdicts["equal"] != total {
		t.Errorf("of %d pods that came one after the other: %+v\n%s", total, r.Verdicts, report())
	}
	// Nine devices are in use; eight pods come at once, for seven.
	for i := range 8 {
		create(t, client, deviceful(fmt.Sprint("burst-", i)))
	}
	left := shadowNodes*shadowDevices - 9
	eventually(t, "the shadow to have compared all that have a place", func(context.Context) bool {
		return read() && r.Compared == total+left && r.Doubted == 0
	})
	t.Logf("the report:\n%s", report())
	if r.Verdicts["notAllowed"] != 0 {
		t.Errorf("the report: %+v", r)
	}
	onlyRead(t, log, "shadow")
	checkDump(t, client)
	p.Stop(10 * time.Second)
	raw, err := exec.CommandContext(t.Context(), berth, "simulate", "--replay", recording, "-o", "json").Output()
	if err != nil {
		t.Fatalf("replaying: %v\n%s", err, raw)
	}
	var out struct {
		Decisions        map[string]int
		Digest, Recorded string
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	if out.Recorded == "" || out.Digest != out.Recorded || out.Decisions["Placed"] < total+left {
		t.Errorf("the replay: %+v", out)
	}
}

// makeNodesWithDevices creates nodes of different sizes, with devices, a template of claims and a claim that pods share.
func makeNodesWithDevices(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	driver, err := devices.New(client, shadowDevices)
	if err != nil {
		t.Fatal(err)
	}
	if err := driver.Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range shadowNodes {
		name := fmt.Sprint("gpus-", i)
		makeNode(t, client, name, fmt.Sprintf("%dGi", 8<<i))
		node, err := client.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := driver.Publish(t.Context(), node); err != nil {
			t.Fatal(err)
		}
	}
	claims := client.ResourceV1()
	template := testkit.ResourceClaimTemplate("gpu", testkit.ResourceClaim("", testkit.Request("gpu", devices.Class)))
	if _, err := claims.ResourceClaimTemplates(v1.NamespaceDefault).Create(t.Context(), template, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	shared := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "shared"}, Spec: template.Spec.Spec}
	if _, err := claims.ResourceClaims(v1.NamespaceDefault).Create(t.Context(), shared, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// sharingOne returns a pod that uses the claim shared.
func sharingOne(name string) *v1.Pod {
	p := deviceful(name)
	p.Spec.ResourceClaims[0].ResourceClaimTemplateName, p.Spec.ResourceClaims[0].ResourceClaimName = nil, new("shared")
	return p
}

// askingForOne returns a pod with an extended resource that the class of devices backs.
func askingForOne(name string) *v1.Pod {
	p := pod(name, "100m")
	one := v1.ResourceList{devices.ExtendedResource: resource.MustParse("1")}
	p.Spec.Containers[0].Resources.Limits = one
	p.Spec.Containers[0].Resources.Requests[devices.ExtendedResource] = one[devices.ExtendedResource]
	return p
}

// checkDump writes what the API has of nodes, pods and devices to a file, as kubectl get -o yaml does, and asks about
// the pod that has no place.
func checkDump(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	ctx, all := t.Context(), metav1.ListOptions{}
	var items []runtime.Object
	waiting := ""
	add := func(list runtime.Object, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		objects, err := meta.ExtractList(list)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objects {
			kinds, _, err := scheme.Scheme.ObjectKinds(o)
			if err != nil {
				t.Fatal(err)
			}
			o.GetObjectKind().SetGroupVersionKind(kinds[0])
			if p, ok := o.(*v1.Pod); ok && p.Spec.NodeName == "" {
				waiting = p.Name
			}
			items = append(items, o)
		}
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, all)
	add(nodes, err)
	pods, err := client.CoreV1().Pods(v1.NamespaceDefault).List(ctx, all)
	add(pods, err)
	classes, err := client.ResourceV1().DeviceClasses().List(ctx, all)
	add(classes, err)
	published, err := client.ResourceV1().ResourceSlices().List(ctx, all)
	add(published, err)
	claims, err := client.ResourceV1().ResourceClaims(v1.NamespaceDefault).List(ctx, all)
	add(claims, err)
	raw, err := yaml.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "dump.yaml")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(ctx, berth, "simulate", file, "--explain", "default/"+waiting).CombinedOutput()
	if want := fmt.Sprintf("%d of %d devices of class %s taken", shadowDevices, shadowDevices, devices.Class); err != nil || waiting == "" || !strings.Contains(string(out), want) {
		t.Errorf("of the pod %q, which waits, the dump says (%v)\n%s\nwant %q", waiting, err, out, want)
	}
}
