package controlplane

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/berthproject/berth/internal/test/devpki"
)

// This file is a cluster as a whole: in which order components start and stop, with which
// flags, ports and files. What must hold: after an error of Start, and after Stop, no
// process is left and no file but those of a data directory that was given.

// Options of a cluster. The zero value chooses everything.
type Options struct {
	DataDir    string    // stays after Stop when given; by default temporary, removed by Stop
	Kubeconfig string    // path of the kubeconfig, a new file; by default in the data directory
	Port       int       // of the API server; 0 for a free one
	Progress   io.Writer // gets lines that say what is being started; may be nil
	NoKubelets bool      // starts controllers and no kubelets
	// NoControllers starts neither controllers nor kubelets.
	NoControllers bool
	// Fairness has the API server limit requests by PriorityLevelConfigurations and
	// FlowSchemas, as clusters do. Without it nothing is limited, which benchmarks want.
	Fairness bool
	// PodGroups turns on the feature gates of pod groups, which are off by default: the API server serves
	// Workloads and PodGroups and keeps spec.schedulingGroup of pods, and the controller of Jobs makes
	// their groups. The versions before 1.37 refuse to start with it.
	PodGroups bool
	// APIServerFlags are more flags of the API server.
	APIServerFlags []string
	// APIServer is the path of a kube-apiserver of another version (hack/build-apiserver) to run in
	// place of this binary's; by default what the environment variable APIServerVariable names, if anything.
	APIServer string
	// AuditLog is the path of a file to which the API server writes what the service accounts
	// of kube-system ask for; "" for none. It stays after Stop.
	AuditLog string
}

// APIServerVariable names an environment variable: see Options.APIServer.
const APIServerVariable = "DEVCLUSTER_KUBE_APISERVER"

// Cluster is a running control plane.
type Cluster struct {
	Kubeconfig string // its path
	Config     *rest.Config
	apiServer  string // the program, "" for this binary
	dir        string
	keep       bool                // the directory was given
	audited    bool                // there is an audit log
	procs      []*Process          // in the order of their start
	args       map[string][]string // what each was started with, by name
	starts     map[string]int      // how often each was started
	// certs signs every certificate of the cluster, also those that are rotated while it runs.
	certs  *devpki.Authority
	etcd   string // its URL for clients
	failed chan error
}

// errDied says that a component has ended before the API served.
var errDied = errors.New("the control plane did not come up")

// Start starts a control plane and returns when its API serves. After an error no
// process and no temporary file is left. Between choosing a free port and listening on it
// another process may take the port, so Start tries a second time, with other ports.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	for again := false; ; again = true {
		c := &Cluster{apiServer: cmp.Or(o.APIServer, os.Getenv(APIServerVariable)), dir: o.DataDir, keep: o.DataDir != "", args: map[string][]string{}, starts: map[string]int{}, failed: make(chan error, 8)}
		err := c.bringUp(ctx, o)
		if err == nil {
			return c, nil
		}
		c.Stop()
		if again || c.keep || !errors.Is(err, errDied) {
			return nil, err
		}
		fmt.Fprintf(o.Progress, "%v\ntrying again …\n", err)
	}
}

// bringUp starts the components in the order in which they need each other. What it has
// started when it fails, Stop ends.
func (c *Cluster) bringUp(ctx context.Context, o Options) error {
	if err := c.makeDir(); err != nil {
		return err
	}
	ports, err := choosePorts(o.Port)
	if err != nil {
		return err
	}
	certs, err := c.certificates(filepath.Join(c.dir, "pki"))
	if err != nil {
		return fmt.Errorf("making certificates: %w", err)
	}
	if err := c.makeKubeconfig(o.Kubeconfig, ports.server, certs); err != nil {
		return err
	}
	fmt.Fprintln(o.Progress, "starting etcd and kube-apiserver …")
	c.certs = certs
	client, peer := fmt.Sprintf("https://127.0.0.1:%d", ports.etcd), fmt.Sprintf("https://127.0.0.1:%d", ports.etcdPeer)
	c.etcd = client
	if err := c.start("etcd", "--data-dir", filepath.Join(c.dir, "etcd"), "--client-url", client, "--peer-url", peer, "--pki", certs.Dir()); err != nil {
		return err
	}
	flags := apiServerFlags(ports.server, client, certs)
	if !o.Fairness {
		flags = append(flags, "--enable-priority-and-fairness=false")
	}
	if o.NoControllers { // nobody would take the taint of a new node away, or make a namespace's account
		flags = append(flags, "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition")
	}
	if c.audited = o.AuditLog != ""; c.audited {
		audit, err := c.auditFlags(o.AuditLog)
		if err != nil {
			return fmt.Errorf("writing the audit policy: %w", err)
		}
		flags = append(flags, audit...)
	}
	if o.PodGroups {
		flags = append(flags, podGroupGates, "--runtime-config="+podGroupAPI+"=true")
	}
	if err := c.start("kube-apiserver", append(flags, o.APIServerFlags...)...); err != nil {
		return err
	}
	if err := c.waitReady(ctx, 5*time.Minute); err != nil {
		return err
	}
	if o.NoControllers {
		return nil
	}
	fmt.Fprintln(o.Progress, "starting kube-controller-manager and the simulated kubelets …")
	if err := c.start("kube-controller-manager", c.controllerFlags(ports.controllers, certs, o.PodGroups)...); err != nil {
		return err
	}
	if err := c.waitAccount(ctx, 3*time.Minute); err != nil {
		return err
	}
	if o.NoKubelets {
		return nil
	}
	return c.start("kubelets", "--kubeconfig", c.Kubeconfig, "--port", strconv.Itoa(ports.kubelets))
}

// makeDir makes the data directory, a temporary one unless it was given.
func (c *Cluster) makeDir() (err error) {
	if c.keep {
		if err := os.MkdirAll(c.dir, 0o700); err != nil {
			return fmt.Errorf("making the data directory: %w", err)
		}
		return nil
	}
	c.dir, err = MakeTemp("berth-devcluster-")
	return err
}

// makeKubeconfig writes the kubeconfig to a path, by default into the data directory, and
// reads it back as Config. A file that exists isn't overwritten.
func (c *Cluster) makeKubeconfig(path string, port int, certs *devpki.Authority) (err error) {
	if path != "" {
		if _, err := os.Stat(path); err == nil {
			return fmt.Errorf("--kubeconfig %s exists and would be overwritten; give another path or remove it", path)
		}
	}
	c.Kubeconfig = cmp.Or(path, filepath.Join(c.dir, "kubeconfig"))
	if err := writeKubeconfig(c.Kubeconfig, fmt.Sprintf("https://127.0.0.1:%d", port), certs); err != nil {
		return fmt.Errorf("writing the kubeconfig: %w", err)
	}
	c.Config, err = clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	return err
}

// writeKubeconfig writes a kubeconfig whose one user is an administrator. Certificates are in it, not
// named, so that a copy of the file works alone.
func writeKubeconfig(path, server string, certs *devpki.Authority) error {
	read := func(name string) []byte {
		raw, _ := os.ReadFile(certs.Path(name)) // written a moment ago
		return raw
	}
	cfg := api.NewConfig()
	cfg.Clusters["devcluster"] = &api.Cluster{Server: server, CertificateAuthorityData: read("ca.crt")}
	cfg.AuthInfos["admin"] = &api.AuthInfo{ClientCertificateData: read("admin.crt"), ClientKeyData: read("admin.key")}
	cfg.Contexts["devcluster"] = &api.Context{Cluster: "devcluster", AuthInfo: "admin"}
	cfg.CurrentContext = "devcluster"
	return clientcmd.WriteToFile(*cfg, path)
}

// StartComponent starts one more component of this binary, or an API server of another version,
// which its caller has to stop; its log is in the cluster's directory.
func (c *Cluster) StartComponent(component string, args ...string) (*Process, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if c.apiServer != "" && component == "kube-apiserver" {
		program = c.apiServer
	} else {
		args = append([]string{"component", component}, args...)
	}
	c.starts[component]++
	log := component + ".log"
	if n := c.starts[component]; n > 1 { // the earlier log stays
		log = fmt.Sprintf("%s.%d.log", component, n)
	}
	p, err := StartProcess(component, filepath.Join(c.dir, log), program, args...)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", component, err)
	}
	return p, nil
}

// Dir returns where the cluster's files are while it runs.
func (c *Cluster) Dir() string { return c.dir }

// start starts a component that Stop ends, and whose own ending Failed delivers.
func (c *Cluster) start(component string, args ...string) error {
	p, err := c.StartComponent(component, args...)
	if err != nil {
		return err
	}
	c.procs = append(c.procs, p)
	c.args[component] = args
	c.report(p)
	return nil
}

// report makes Failed deliver how a process ends, unless somebody ends it on purpose.
func (c *Cluster) report(p *Process) {
	go func() {
		if err := p.Wait(); err != nil {
			// Of a process that a full disk has stopped, the log may not say so.
			if full := checkSpace(c.dir, spaceLeft); full != nil {
				err = fmt.Errorf("%w\n%w", full, err)
			}
			c.failed <- err
		}
	}()
}

// Failed delivers the error of a component that stopped by itself. Each error is
// delivered once.
func (c *Cluster) Failed() <-chan error { return c.failed }

// Process returns a component's process by name, or nil. After a restart it is the new one.
func (c *Cluster) Process(name string) *Process {
	for _, p := range c.procs {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// waitReady returns when the API server is ready. It is an error when a component ends
// before, and when the limit has passed.
func (c *Cluster) waitReady(ctx context.Context, limit time.Duration) error {
	return c.poll(ctx, limit, "the API server did not serve", func(ctx context.Context, client kubernetes.Interface) bool {
		_, err := client.CoreV1().RESTClient().Get().AbsPath("/readyz").Timeout(5 * time.Second).DoRaw(ctx)
		return err == nil
	})
}

// waitAccount returns when the namespace default has its service account and the cluster's
// certificate authority: no pod can be created, or its containers started, before.
func (c *Cluster) waitAccount(ctx context.Context, limit time.Duration) error {
	return c.poll(ctx, limit, "the namespace default did not get its service account", func(ctx context.Context, client kubernetes.Interface) bool {
		_, err := client.CoreV1().ServiceAccounts(v1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		if err == nil {
			_, err = client.CoreV1().ConfigMaps(v1.NamespaceDefault).Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
		}
		return err == nil
	})
}

// poll asks the API until something holds, and returns an error that says what did not come
// true, in words, when the limit has passed or a component has ended.
func (c *Cluster) poll(ctx context.Context, limit time.Duration, not string, holds func(context.Context, kubernetes.Interface) bool) error {
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-c.failed:
			return fmt.Errorf("%w: %w", errDied, err)
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return fmt.Errorf("%s within %s; the end of the API server's log:\n%s", not, limit, tail(filepath.Join(c.dir, "kube-apiserver.log"), 15))
			}
			return ctx.Err()
		case <-tick.C:
			if holds(ctx, client) {
				return nil
			}
		}
	}
}

// Stop ends all components, the last started first, and removes the cluster's files,
// unless the data directory was given.
func (c *Cluster) Stop() {
	limit := 10 * time.Second
	if !c.keep && !c.audited {
		limit = time.Second // nobody will read what they would write at their end
	}
	var all sync.WaitGroup
	for _, p := range c.procs {
		all.Go(func() { p.Stop(limit) })
	}
	all.Wait()
	if !c.keep && c.dir != "" {
		os.RemoveAll(c.dir)
		if c.Kubeconfig != "" {
			_ = os.Remove(c.Kubeconfig) // it names a cluster that is gone
		}
	}
}

// ports are those that the components serve on.
type ports struct{ server, etcd, etcdPeer, controllers, kubelets int }

// choosePorts returns free ports, with that of the API server as given unless it is 0.
func choosePorts(server int) (ports, error) {
	if server != 0 {
		if err := checkFree(server); err != nil {
			return ports{}, err
		}
	}
	free, err := freePorts(5)
	if err != nil {
		return ports{}, err
	}
	return ports{cmp.Or(server, free[0]), free[1], free[2], free[3], free[4]}, nil
}

// checkFree returns an error unless a port on loopback can be listened on.
func checkFree(port int) error {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return fmt.Errorf("port %d is in use: %w; give another --port, or 0 to have one chosen", port, err)
	}
	return l.Close()
}

// FreePort returns a port on loopback that was free a moment ago.
func FreePort() (int, error) {
	free, err := freePorts(1)
	if err != nil {
		return 0, err
	}
	return free[0], nil
}

// freePorts returns ports on loopback that differ, and that were free a moment ago.
func freePorts(n int) ([]int, error) {
	var out []int
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("finding a free port: %w", err)
		}
		defer l.Close()
		out = append(out, l.Addr().(*net.TCPAddr).Port)
	}
	return out, nil
}
