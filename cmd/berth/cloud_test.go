package main

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/compat"
	"github.com/berthproject/berth/edge/apiserver"
	"github.com/berthproject/berth/edge/incumbent"
	"github.com/berthproject/berth/edge/live"
	"github.com/berthproject/berth/edge/observe"
	"github.com/berthproject/berth/edge/provider"
	"github.com/berthproject/berth/edge/provider/simulated"
)

// severalGroups is a file of simulated node groups.
const severalGroups = "../../examples/demo/groups.yaml"

// optionsOf returns what berth run has the live edge run with, and what ends it.
func optionsOf(t *testing.T, args ...string) (live.Options, func()) {
	t.Helper()
	o, end, err := processOf(t, fake.NewClientset(), args...).options(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return o, end
}

// processOf returns a berth run with simulated node groups that has connected to an API.
func processOf(t *testing.T, client kubernetes.Interface, args ...string) *process {
	t.Helper()
	f, fs := parsed(t, append([]string{"--cloud-provider=simulated", "--cloud-config=" + filepath.FromSlash(severalGroups)}, args...)...)
	if err := f.validate(); err != nil {
		t.Fatal(err)
	}
	cfg, err := f.schedulerConfig(fs, compat.Newest)
	if err != nil {
		t.Fatal(err)
	}
	cloud, err := f.provider().Load()
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	return &process{flags: f, cfg: cfg, cloud: cloud, api: &apiserver.Connection{Rest: &rest.Config{}, Client: client}, log: log,
		server: observe.NewServer(log), health: live.NewHealth(true), incumbents: incumbent.New(f.incumbents(&cfg), client, log)}
}

// TestABerthThatNeverLedEnds as one that has led does.
func TestABerthThatNeverLedEnds(t *testing.T) {
	_, end := optionsOf(t)
	end()
}

// TestNodesNameTheGroupsThatAreBerths has a provider with several groups, of which --nodes names
// one: the others, and their nodes, are nobody's.
func TestNodesNameTheGroupsThatAreBerths(t *testing.T) {
	groups := func(o live.Options) []nodegroup.Group {
		t.Helper()
		list, err := o.Provider.Groups(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	o, _ := optionsOf(t)
	all := groups(o)
	if len(all) < 2 {
		t.Fatalf("%s has %d groups; the test wants several", severalGroups, len(all))
	}
	ours, others := all[0].ID, all[1].ID
	o, _ = optionsOf(t, "--nodes=1:2:"+ours)
	if named := groups(o); len(named) != 1 || named[0].ID != ours || named[0].Min != 1 || named[0].Max != 2 {
		t.Errorf("the groups are %+v, want %s only, with at least 1 and at most 2 nodes", named, ours)
	}
	for group, want := range map[string]string{ours: ours, others: ""} {
		n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"berth.dev/node-group": group}}}
		if got := o.Provider.GroupOf(n); got != want {
			t.Errorf("a node of %s belongs to %q, want %q", group, got, want)
		}
	}
}

// TestPricesComeFromTheFile of groups that --nodes names. What becomes of the file is told to the server.
func TestPricesComeFromTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "prices.yaml")
	write := func(price string) {
		t.Helper()
		text := "apiVersion: berth.dev/v1alpha1\nkind: NodePrices\ncurrency: EUR\nrules: [{match: {node.kubernetes.io/instance-type: large}, pricePerHour: " + price + "}]\n"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("2")
	p := processOf(t, fake.NewClientset(), "--node-prices="+path, "--nodes=0:1:large-cpu", "--nodes=0:1:small-cpu")
	o, end, err := p.options(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	for _, want := range []string{"1", "0"} {
		list, err := o.Provider.Groups(t.Context())
		if err != nil || len(list) != 2 || list[0].Price != 2 || list[1].Price != 0.17 {
			t.Errorf("the groups are %+v, %v; want two, the first at the file's price", list, err)
		}
		families, err := p.server.Metrics.Registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		reloaded := ""
		for _, f := range families {
			if f.GetName() == "berth_node_prices_last_reload_successful" {
				reloaded = fmt.Sprint(f.GetMetric()[0].GetGauge().GetValue())
			}
		}
		if reloaded != want {
			t.Errorf("the server was told %q of the file, want %s", reloaded, want)
		}
		write("-2")
	}
	f, _ := parsed(t, "--cloud-provider=simulated", "--cloud-config="+severalGroups, "--node-prices="+path)
	if _, err := f.provider().Load(); err == nil || !strings.HasPrefix(err.Error(), "--node-prices: node prices in "+path) {
		t.Errorf("a file with a mistake at the start: %v", err)
	}
}

// TestAShadowsProviderOnlyReads: the simulated one is told of nodes by the API, and makes none when
// the shadow begins.
func TestAShadowsProviderOnlyReads(t *testing.T) {
	o, end := optionsOf(t, "--shadow")
	defer end()
	priced, _ := o.Provider.(*provider.Priced)
	if _, ok := priced.Provider.(simulated.Seen); !ok || o.Core.Shadow == nil || o.Core.Autoscale == nil {
		t.Errorf("the provider is a %T, and the core's shadow %v; want one that looks only", priced.Provider, o.Core.Shadow)
	}
	if err := o.OnBecomeLeader(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestTheConfigurationIsNotChangedByTheCore: the server reads it from another goroutine.
func TestTheConfigurationIsNotChangedByTheCore(t *testing.T) {
	p := processOf(t, fake.NewClientset(), "--mode=autoscaler", "--allowed-scheduler-names=default-scheduler", "--allowed-scheduler-names=other")
	before := p.cfg
	_, end, err := p.options(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	if !reflect.DeepEqual(before, p.cfg) || len(before.Profiles) == 0 {
		t.Errorf("the configuration was\n%+v\nand is\n%+v", before, p.cfg)
	}
}
