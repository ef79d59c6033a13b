package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/berthproject/berth/core/autoscaler/expander"
	"github.com/berthproject/berth/internal/simulatedgroup"
	"github.com/berthproject/berth/internal/test/peers"
)

// twoGroups is a file of two node groups that only their names tell apart.
const twoGroups = `apiVersion: berth.dev/v1alpha1
kind: SimulatedNodeGroups
groups:
- {name: a, max: 10, template: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}}
- {name: b, max: 10, template: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}}
`

// shops is a cluster in which a pod that comes makes Berth buy a node of one of two groups.
type shops struct {
	t      *testing.T
	client kubernetes.Interface
}

// bought creates a pod that needs a node of its own, and returns the group of the node
// that it comes to run on.
func (s shops) bought(name string) (group string) {
	s.t.Helper()
	create(s.t, s.client, pod(name, "3"))
	eventually(s.t, "the pod "+name+" to run on a new node", func(ctx context.Context) bool { return get(ctx, s.client, name).Status.Phase == v1.PodRunning })
	node, err := s.client.CoreV1().Nodes().Get(s.t.Context(), get(s.t.Context(), s.client, name).Spec.NodeName, metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return node.Labels[simulatedgroup.GroupLabel]
}

// prioritize writes the priorities of node groups.
func (s shops) prioritize(text string) {
	s.t.Helper()
	maps := s.client.CoreV1().ConfigMaps(metav1.NamespaceSystem)
	c := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: expander.PrioritiesConfigMap}, Data: map[string]string{expander.PrioritiesKey: text}}
	if _, err := maps.Update(s.t.Context(), c, metav1.UpdateOptions{}); err == nil {
		return
	}
	if _, err := maps.Create(s.t.Context(), c, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

// TestExpandersThatAskOutside has Berth choose between two equal node groups: by a server of
// the expander protocol, over TLS;
// then by the priorities in a ConfigMap, which change, and which can't be read at last: then
// those before hold on, and an event of the ConfigMap says so.
func TestExpandersThatAskOutside(t *testing.T) {
	t.Parallel()
	c, client := startCluster(t)
	s := shops{t, client}
	flags := append(nodeGroups(t, c, twoGroups), "--scan-interval=2s", "--scale-down-enabled=false")

	var mu sync.Mutex
	var asked []string
	address, cert := peers.ServeExpander(t, func(_ context.Context, request protoreflect.Message) ([]string, error) {
		mu.Lock()
		defer mu.Unlock()
		options := peers.Value(request, "options").List()
		asked = nil
		for i := range options.Len() {
			asked = append(asked, peers.Value(options.Get(i).Message(), "nodeGroupId").String())
		}
		return []string{"b"}, nil
	})
	p, _ := startBerth(t, c, append(flags, "--expander=grpc", "--grpc-expander-url="+address, "--grpc-expander-cert="+cert)...)
	if got := s.bought("by-server"); got != "b" {
		t.Errorf("the server has named b; bought is a node of %s", got)
	}
	mu.Lock()
	if slices.Sort(asked); !slices.Equal(asked, []string{"a", "b"}) {
		t.Errorf("the server was offered %v, want a and b", asked)
	}
	mu.Unlock()
	p.Stop(10 * time.Second)

	s.prioritize("10: [a]\n20: [b]\n")
	_, log := startBerth(t, c, append(flags, "--expander=priority")...)
	if got := s.bought("first"); got != "b" {
		t.Errorf("b has the higher priority; bought is a node of %s", got)
	}
	read := "loaded the priorities of node groups"
	s.prioritize("30: [a]\n20: [b]\n")
	eventually(t, "the new priorities to be read", func(context.Context) bool { return strings.Count(logOf(t, log), read) == 2 })
	if got := s.bought("second"); got != "a" {
		t.Errorf("a has the higher priority now; bought is a node of %s", got)
	}
	s.prioritize("30: [b")
	eventually(t, "an event that the priorities can't be read", func(ctx context.Context) bool {
		list, err := client.EventsV1().Events(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false
		}
		for _, e := range list.Items {
			if e.Regarding.Kind == "ConfigMap" && e.Regarding.Name == expander.PrioritiesConfigMap && e.Reason == expander.PrioritiesInvalid && e.Type == v1.EventTypeWarning {
				return strings.Contains(e.Note, "Wrong configuration for priority expander: ")
			}
		}
		return false
	})
	if got := s.bought("third"); got != "a" {
		t.Errorf("the last priorities that could be read prefer a; bought is a node of %s", got)
	}
}

// unpriced is a file of two node groups without a price, of which the pods of shops leave less unused on the first.
const unpriced = `apiVersion: berth.dev/v1alpha1
kind: SimulatedNodeGroups
groups:
- {name: fits, max: 10, template: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}}
- {name: wide, max: 10, template: {allocatable: {cpu: "16", memory: 64Gi, pods: "10"}}}
`

// TestCostWithoutPrices: with --expander=cost,least-waste and no prices a node is bought by least-waste, and the log, the
// status and the group say that prices are missing.
func TestCostWithoutPrices(t *testing.T) {
	t.Parallel()
	c, client := startCluster(t)
	port := freePort(t)
	_, log := startBerth(t, c, append(nodeGroups(t, c, unpriced), "--bind-address=127.0.0.1", "--secure-port", fmt.Sprint(port), "--scan-interval=2s", "--expander=cost,least-waste")...)
	if got := (shops{t, client}).bought("unpriced"); got != "fits" {
		t.Errorf("least-waste decides where no option has a price; bought is a node of %s, want fits", got)
	}
	if text := logOf(t, log); !strings.Contains(text, "no node group has a price: the next expander of the list chooses") || !strings.Contains(text, "--expander=cost,least-waste") {
		t.Errorf("the log doesn't say that prices are missing:\n%s", text)
	}
	token := tokenFor(t, client, "reader", "/api/v1alpha1/*", "/debug/status")
	var said []byte
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("berth says last:\n%s", said)
		}
	})
	for _, x := range []struct {
		ask  []string
		want string
	}{
		{[]string{"status"}, "No price for 2 of 2 node groups, needed by --expander=cost,least-waste: fits, wide (docs/prices.md)"},
		{[]string{"explain", "group", "fits"}, "chosen by least-waste, no option has a price"},
	} {
		eventually(t, fmt.Sprintf("berth %v to say that prices are missing", x.ask), func(ctx context.Context) bool {
			said, _ = exec.CommandContext(ctx, berth, append(x.ask, "--server", fmt.Sprintf("https://127.0.0.1:%d", port), "--token-file", token, "--insecure-skip-tls-verify")...).CombinedOutput()
			return strings.Contains(string(said), x.want)
		})
	}
}

func logOf(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
