package storm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/berthproject/berth/devcluster/account"
	"github.com/berthproject/berth/devcluster/api"
	"github.com/berthproject/berth/devcluster/controlplane"
)

// This file is what the storm rages on. What must hold: after stop no process, proxy or file
// is left, however start ended.

// bed is a dev cluster with Berths, each behind a proxy of its own.
// It is built by one goroutine, and stopped by it.
type bed struct {
	cluster *controlplane.Cluster
	client  kubernetes.Interface // not through a proxy
	berths  []*berth
	groups  *controlplane.NodeGroups
	toNodes *proxy // between all Berths and the node groups
	gangs   bool   // the API server serves pod groups: it isn't of another version
	dir     string // of logs and kubeconfigs
	keep    bool   // the directory was given

	driver    *driver // nil without devices
	endBerths context.CancelFunc
	running   sync.WaitGroup // of Berths
	failed    chan error     // a Berth that could not be started, or the node groups, which ended
}

// configuration is the one of deploy/ that the Berths run by.
const configuration = "external"

// berthUser is whom the API server takes Berth for: the account of that configuration, by a
// certificate instead of a token, because certificates can expire within seconds.
var berthUser = account.User(configuration)

// groupLabel is the label of the simulated provider's nodes.
const groupLabel = "berth.dev/node-group"

// Groups: pods of the general one share nodes; those of the whole ones take a node each; and the nodes of each
// rack are for gangs.
const general = "general"

var (
	wholeGroups = []string{"whole-0", "whole-1", "whole-2", "whole-3"}
	rackGroups  = []string{"rack-0", "rack-1"}
)

// startBed starts everything and returns when a Berth leads.
func startBed(ctx context.Context, o Options) (_ *bed, err error) {
	// A missing binary is noticed before a cluster is started for it.
	if _, err := exec.LookPath(o.Berth); err != nil {
		return nil, fmt.Errorf("--berth: %w; build it with make build", err)
	}
	b := &bed{dir: o.Logs, keep: o.Logs != "", failed: make(chan error, 8)}
	// stop works on a bed of which only a part was started.
	defer func() {
		if err != nil {
			b.stop()
		}
	}()
	if b.keep {
		err = os.MkdirAll(b.dir, 0o700)
	} else {
		b.dir, err = os.MkdirTemp("", "berth-storm-")
	}
	if err != nil {
		return nil, fmt.Errorf("making a directory for logs: %w", err)
	}
	// An API server given by the variable may be of a version without pod groups.
	b.gangs = os.Getenv(controlplane.APIServerVariable) == ""
	if b.cluster, err = controlplane.Start(ctx, controlplane.Options{Progress: o.Out, Fairness: true, PodGroups: b.gangs}); err != nil {
		return nil, err
	}
	if b.client, err = api.New(b.cluster.Config); err != nil {
		return nil, err
	}
	// The storm runs with the rights that users get, no more.
	if err := account.Deploy(ctx, b.client, configuration); err != nil {
		return nil, err
	}
	if err := makeFixedNodes(ctx, b.client); err != nil {
		return nil, err
	}
	if o.Devices {
		if err := makeDeviceNodes(ctx, b.client); err != nil {
			return nil, err
		}
		b.driver = &driver{client: b.client}
		b.driver.start()
	}
	if err := b.startGroups(o); err != nil {
		return nil, err
	}
	fmt.Fprintf(o.Out, "starting %d Berths …\n", o.Berths)
	if err := b.startBerths(o); err != nil {
		return nil, err
	}
	// Until then no misfortune may happen: what it does couldn't be told from a failed
	// start.
	return b, b.waitLeader(ctx, time.Minute)
}

// startGroups starts the process that has the node groups, and a proxy before it.
// The process outlives Berths, as a cloud does.
func (b *bed) startGroups(o Options) (err error) {
	file := filepath.Join(b.dir, "groups.yaml")
	if err := os.WriteFile(file, []byte(groupsFile(o.Seed)), 0o600); err != nil {
		return err
	}
	if b.groups, err = b.cluster.ServeNodeGroups(o.Berth, file, b.dir); err != nil {
		return err
	}
	// The goroutine ends with the process, which stop ends.
	go func() {
		if err := b.groups.Wait(); err != nil {
			b.failed <- err
		}
	}()
	b.toNodes, err = newProxy("node-groups", b.groups.Address)
	return err
}

// startBerths starts the Berths, each with a kubeconfig that leads to its proxy.
// Intervals and delays are short, so that a storm of minutes sees many scale-ups and
// removals.
func (b *bed) startBerths(o Options) error {
	provider, err := b.groups.Flags(b.toNodes.address())
	if err != nil {
		return err
	}
	// Not of the caller's context: after Ctrl-C Berths are ended in order, by stop.
	ctx, end := context.WithCancel(context.Background())
	b.endBerths = end
	for i := range o.Berths {
		name := fmt.Sprint("berth-", i)
		p, err := newProxy(name, strings.TrimPrefix(b.cluster.Config.Host, "https://"))
		if err != nil {
			return err
		}
		x := &berth{name: name, program: o.Berth, dir: b.dir, proxy: p}
		b.berths = append(b.berths, x)
		if err := b.issue(x, 24*time.Hour); err != nil {
			return err
		}
		kubeconfig, err := b.kubeconfig(x)
		if err != nil {
			return err
		}
		x.args = slices.Concat([]string{"run", "--kubeconfig", kubeconfig, "--secure-port=0",
			"--scan-interval=2s", "--scale-down-unneeded-time=6s", "--scale-down-delay-after-add=3s", "--scale-down-delay-after-failure=5s",
			"--max-scale-down-parallelism=20", "--max-drain-parallelism=5", "--node-delete-delay-after-taint=1s",
			"--max-pod-eviction-time=20s", // so a drain that a budget holds up ends within the checker's patience
			"--initial-node-group-backoff-duration=5s", "--max-node-group-backoff-duration=20s",
			"-v=2"}, provider, o.BerthFlags)
		b.running.Go(func() {
			if err := x.run(ctx); err != nil {
				b.failed <- err
			}
		})
	}
	return nil
}

// issue writes a client certificate for a Berth that is valid for a time.
// Storms issue certificates that expire within seconds, to see Berth load a new one.
func (b *bed) issue(x *berth, valid time.Duration) error {
	return b.cluster.IssueClient(x.name, berthUser, valid)
}

// kubeconfig writes the file that leads a Berth to its proxy, with its certificate by name, so
// that a new one is found.
// The path of the certificate stays, and what is in the file changes.
func (b *bed) kubeconfig(x *berth) (string, error) {
	path := filepath.Join(b.dir, x.name+".kubeconfig")
	c := b.cluster.ClientFiles(x.name)
	return path, clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"storm": {Server: "https://" + x.proxy.address(), CertificateAuthority: c.CA}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"berth": {ClientCertificate: c.Cert, ClientKey: c.Key}},
		Contexts:       map[string]*clientcmdapi.Context{"storm": {Cluster: "storm", AuthInfo: "berth"}},
		CurrentContext: "storm",
	}, path)
}

// waitLeader returns when a Berth leads.
// The error has the ends of the logs, since the directory is removed.
func (b *bed) waitLeader(ctx context.Context, limit time.Duration) error {
	err := waitFor(ctx, limit, "a Berth to lead", func() bool { return leader(b.berths) != nil })
	if err != nil {
		return fmt.Errorf("%w; the Berths' logs end with\n%s", err, b.tails())
	}
	return nil
}

// secretsInLogs returns an error that names the log of a Berth which has the secret of a pod, or
// could not be read.
// Logs are checked after the storm: a secret that leaks once has leaked.
func (b *bed) secretsInLogs() error {
	for _, berth := range b.berths {
		logs, err := filepath.Glob(filepath.Join(b.dir, berth.name+".*.log"))
		if err == nil && len(logs) == 0 {
			err = errors.New("there are none")
		}
		if err != nil {
			return fmt.Errorf("searching the logs of %s for secrets: %w", berth.name, err)
		}
		// A Berth that restarted has several logs.
		for _, log := range logs {
			text, err := os.ReadFile(log)
			if err != nil {
				return fmt.Errorf("searching a log for secrets: %w", err)
			}
			// The text is in the environment of each pod of the load.
			if bytes.Contains(text, []byte(planted)) {
				return fmt.Errorf("%w: the log %s has the secret of a pod", ErrBroken, log)
			}
		}
	}
	return nil
}

// tails returns the ends of the Berths' logs.
// It may be called while Berths run: a log that is being written is read as far as it is.
func (b *bed) tails() string {
	var out strings.Builder
	for _, x := range b.berths {
		x.mu.Lock()
		log := x.log
		x.mu.Unlock()
		raw, _ := os.ReadFile(log) // without a log there is nothing to say
		lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
		fmt.Fprintf(&out, "%s:\n  %s\n", x.name, strings.Join(lines[max(0, len(lines)-5):], "\n  "))
	}
	return out.String()
}

// broken returns the error of something that ended by itself and isn't started again. Berths aren't among
// these: they end when they lose the Lease, as they should.
// It never blocks, and is asked between misfortunes.
func (b *bed) broken() error {
	select {
	case err := <-b.cluster.Failed():
		return err
	case err := <-b.failed:
		return err
	default:
		return nil
	}
}

// stop ends Berths, proxies and the cluster, and removes what they have written.
// Berths end before what they talk to, so that their logs end without errors about it. It
// is called once.
func (b *bed) stop() {
	if b.driver != nil {
		b.driver.stop()
	}
	if b.endBerths != nil {
		b.endBerths()
		b.running.Wait()
	}
	for _, x := range b.berths {
		x.proxy.down()
	}
	if b.toNodes != nil {
		b.toNodes.down()
	}
	if b.groups != nil {
		b.groups.Stop(10 * time.Second)
	}
	if b.cluster != nil {
		b.cluster.Stop()
	}
	if !b.keep && b.dir != "" {
		os.RemoveAll(b.dir)
	}
}

// groupsFile returns the node groups' file.
// The whole groups have nodes that are as large as one of their pods.
func groupsFile(seed uint64) string {
	var out strings.Builder
	fmt.Fprintf(&out, "apiVersion: berth.dev/v1alpha1\nkind: SimulatedNodeGroups\nseed: %d\ngroups:\n", seed)
	group := func(name, cpu, more string, max int) {
		fmt.Fprintf(&out, "- name: %s\n  min: 0\n  max: %d\n  launchDelay: {min: 1s, max: 3s}\n  startup: {min: 500ms, max: 2s}\n  template:\n    allocatable: {cpu: %q, memory: 16Gi, pods: \"110\"}\n%s", name, max, cpu, more)
	}
	group(general, "4", "", 20)
	for _, name := range wholeGroups {
		group(name, "2", "    taints: [{key: storm/whole, effect: NoSchedule}]\n", 12)
	}
	for _, name := range rackGroups {
		group(name, "2", fmt.Sprintf("    labels: {%s: %s, %s: %s}\n", poolLabel, rackPool, rackLabel, name), 5)
	}
	return out.String()
}

// Pools are fixed nodes, of no group, but for the racks.
const (
	poolLabel = "storm/pool"
	rackPool  = "racks" // nodes that are bought for gangs
	rackLabel = "storm/rack"
	basePool  = "base"  // where there is always room
	fullPool  = "full"  // that is full of pods of low priority
	namedPool = "named" // nodes that are deleted and created again
	namedSize = 2       // how many of those there are
)

// makeFixedNodes creates the nodes of the pools.
func makeFixedNodes(ctx context.Context, client kubernetes.Interface) error {
	for pool, n := range map[string]int{basePool: 4, fullPool: 2, namedPool: namedSize} {
		for i := range n {
			if _, err := client.CoreV1().Nodes().Create(ctx, fixedNode(pool, i), metav1.CreateOptions{}); err != nil {
				return fmt.Errorf("creating a node: %w", err)
			}
		}
	}
	return nil
}

// fixedNode returns the i-th node of a pool, always the same.
// A node that is deleted and created again must be like the one before.
func fixedNode(pool string, i int) *v1.Node {
	name := fmt.Sprintf("%s-%d", pool, i)
	labels := map[string]string{poolLabel: pool, v1.LabelHostname: name, rackLabel: fmt.Sprintf("%s-%d", pool, i%2)}
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	n.Status.Allocatable = v1.ResourceList{v1.ResourceCPU: resource.MustParse("4"), v1.ResourceMemory: resource.MustParse("16Gi"), v1.ResourcePods: resource.MustParse("110")}
	return n
}

// waitFor polls until something holds, and returns an error that says what it waited for.
// holds runs in the caller's goroutine.
func waitFor(ctx context.Context, limit time.Duration, what string, holds func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for !holds() {
		pause(ctx, 100*time.Millisecond)
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return fmt.Errorf("waited %s in vain for %s", limit, what)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}
