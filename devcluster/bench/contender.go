package bench

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/devcluster/controlplane"
)

// This file is a contender's processes. What they use is counted together; the process that
// serves node groups is nobody's, as a cloud is.

// contender is what places the pods of a run: a scheduler, with an autoscaler where the case has
// node groups, or a bare loop.
type contender struct {
	processes []*controlplane.Process
	port      int      // of the scheduler's metrics, 0 of a bare loop
	scaling   []string // flags by which Berth gets its nodes; none without node groups
}

// usage returns what all processes have used; memory is the sum of their peaks.
func (c *contender) usage() (sum controlplane.Usage) {
	for _, p := range c.processes {
		u := p.Usage()
		sum.CPU, sum.PeakRSS = sum.CPU+u.CPU, sum.PeakRSS+u.PeakRSS
	}
	return sum
}

// stop ends all processes of the contender, so that the next one has the machine to itself.
func (c *contender) stop() {
	for _, p := range c.processes {
		p.Stop(10 * time.Second)
	}
}

// bare reports whether the contender makes calls without scheduling.
func (a *attempt) bare() bool { return a.name == BareBinds || a.name == BareBindEvents }

// start starts the contender. One that ends by itself ends the run.
func (a *attempt) start() error {
	if a.bare() {
		return a.started(a.cluster.StartComponent("bindloop", "--kubeconfig", a.cluster.Kubeconfig, "--namespace", measured,
			"--events="+strconv.FormatBool(a.name == BareBindEvents), "--victims", beforehand, "--victims-each", strconv.Itoa(a.c.victims)))
	}
	port, flags, err := a.flags()
	if err != nil {
		return err
	}
	a.port = port
	if a.name == Berth {
		return a.startBerth("berth", slices.Concat(flags, a.scaling)...)
	}
	if err := a.started(a.cluster.StartComponent("kube-scheduler", flags...)); err != nil || a.scaling == nil {
		return err
	}
	if _, flags, err = a.flags(); err != nil {
		return err
	}
	return a.startBerth("autoscaler", slices.Concat(flags, a.scaling, []string{"--mode=autoscaler"})...)
}

// flags returns those that both schedulers take, and the port that they serve at by them.
func (a *attempt) flags() (port int, flags []string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, nil, fmt.Errorf("finding a free port: %w", err)
	}
	defer l.Close()
	port = l.Addr().(*net.TCPAddr).Port
	if a.c.hasPodGroups() {
		flags = []string{"--feature-gates=" + controlplane.PodGroupFeatures}
	}
	return port, append(flags, "--config", a.file, "--bind-address", "127.0.0.1", "--secure-port", strconv.Itoa(port),
		"--authentication-kubeconfig", a.cluster.Kubeconfig, "--authorization-kubeconfig", a.cluster.Kubeconfig,
		"--authorization-always-allow-paths", "/metrics"), nil
}

// startBerth starts a berth run whose log is in a file of that name.
func (a *attempt) startBerth(log string, flags ...string) error {
	return a.started(controlplane.StartProcess(log, filepath.Join(a.cluster.Dir(), log+".log"), a.o.Berth, append([]string{"run"}, flags...)...))
}

// started takes a process in, unless it could not be started.
func (a *attempt) started(p *controlplane.Process, err error) error {
	if err != nil {
		return err
	}
	a.processes = append(a.processes, p)
	go func() { a.died <- p.Wait() }()
	return nil
}

// serveGroups starts a process that has node groups, and has the contender's Berth use them. stop
// ends the process.
func (a *attempt) serveGroups(groups string) (stop func(), err error) {
	dir, err := os.MkdirTemp(a.cluster.Dir(), "node-groups-")
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "groups.yaml")
	if err := os.WriteFile(file, []byte(groups), 0o600); err != nil {
		return nil, err
	}
	served, err := a.cluster.ServeNodeGroups(a.o.Berth, file, dir)
	if err != nil {
		return nil, err
	}
	if a.scaling, err = served.Flags(served.Address); err != nil {
		served.Stop(time.Second)
		return nil, err
	}
	return func() { served.Stop(10 * time.Second) }, nil
}

const groupsHead = "apiVersion: berth.dev/v1alpha1\nkind: SimulatedNodeGroups\ngroups:\n"

// zoneGroups returns a node group for each zone, of nodes like those of the other cases.
func zoneGroups(s Size) string {
	out := groupsHead
	for i := range 3 {
		n := newNode(i)
		zone, has := n.Labels[v1.LabelTopologyZone], n.Status.Allocatable
		out += fmt.Sprintf(`- name: %s
  max: %d
  launchDelay: {min: 2s, max: 10s}
  template:
    labels: {%s: %s}
    allocatable: {cpu: "%s", memory: "%s", pods: "%s"}
`, zone, s.Nodes, v1.LabelTopologyZone, zone, has.Cpu(), has.Memory(), has.Pods())
	}
	return out
}

// nodeSizes are the values of the label sizeLabel on the nodes of sizeGroups.
var nodeSizes = []string{"small", "medium", "large"}

const sizeLabel = "example.com/size"

// sizeGroups returns a node group for each zone and size.
func sizeGroups(s Size) string {
	out := groupsHead
	for k, size := range nodeSizes {
		for i := range 3 {
			zone := newNode(i).Labels[v1.LabelTopologyZone]
			out += fmt.Sprintf(`- name: %[1]s-%[2]s
  max: %[3]d
  pricePerHour: %[4]g
  launchDelay: {min: 5s, max: 15s}
  template:
    labels: {%[5]s: %[2]s, %[6]s: %[1]s}
    allocatable: {cpu: "%[7]d", memory: "%[8]dGi", pods: "110"}
`, size, zone, s.Pods, 0.2*float64(int(1)<<k), v1.LabelTopologyZone, sizeLabel, 4<<k, 16<<k)
		}
	}
	return out
}
