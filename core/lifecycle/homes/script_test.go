package homes_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle/homes"
	"github.com/berthproject/berth/internal/test/lifecycletest"
	"github.com/berthproject/berth/internal/test/testkit"
	"github.com/berthproject/berth/internal/test/testkit/script"
)

// fixture is the machine with what plays the core around it.
type fixture struct {
	*lifecycletest.Bench
	t       *testing.T
	machine *homes.Machine
	out     strings.Builder
	states  script.States
}

// TestScripts runs testdata/scripts/*.txt. A script's output is what was decided, and what
// changed by the command: homes, and when the machine wants to be woken. Advance follows each
// command, as inputs are followed by a Step. The commands:
//
//	config [time=5m] [no-room]
//	node NAME [cpu=4] [zone=ZONE] [going]
//	node-gone NAME
//	pod NAME on=NODE [cpu=1] [priority=0] [owner=KIND/NAME] [hash=HASH] [apart] [claims] [scheduler=NAME] [leaving] [uid=UID]    the API shows it; apart: no two of these in one zone
//	          hash: of the pod template; the ReplicaSet is a Deployment's if its name ends with it
//	gone POD
//	owner KIND/NAME wanted=N existing=N
//	owner-gone KIND/NAME
//	keep NODE homes=(POD/NODE,…)
//	evicted POD | surging POD
//	free NODE
//	arrives NAME …                    with the arguments of a pod: a new one without a node
//	comes NAME on=NODE …              a new one that is on a node already
//	displaced                         the pods that a plan is told of
//	fits NAME on=NODE …               whether a node takes a pod, with what is kept there
//	tick DURATION
//	states                            all homes
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		s := &fixture{t: t, Bench: lifecycletest.NewBench()}
		s.machine = homes.New(homes.Config{Time: 5 * time.Minute}, s.Scheduler)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			args := script.NewArgs(t, d)
			s.run(d, args)
			args.Done()
			s.machine.Advance(s.Turn)
			for _, broken := range append(s.machine.Invariants(), s.machine.InvariantsIn(s.State)...) {
				d.Fatalf(t, "broken invariant: %s", broken)
			}
			return s.output()
		})
	})
}

func (s *fixture) run(d *datadriven.TestData, args *script.Args) {
	t := s.Turn
	switch d.Cmd {
	case "config":
		s.machine = homes.New(homes.Config{Time: args.Duration("time", 5*time.Minute), NoRoom: args.Flag("no-room")}, s.Scheduler)
	case "node":
		s.Node(node(args))
	case "node-gone":
		s.State.RemoveNode(args.Name())
	case "pod":
		p := s.pod(args)
		s.State.Place(p, p.Object.Spec.NodeName)
		if p.Object.DeletionTimestamp != nil {
			s.machine.PodTerminating(t, p.UID)
		}
	case "gone":
		uid := testkit.Pod(args.Name()).UID
		s.machine.PodTerminating(t, uid)
		s.State.Remove(uid)
	case "owner", "owner-gone":
		s.owner(d.Cmd, args)
	case "keep":
		if why := s.machine.Reserve(t, removal(args)); why != "" {
			fmt.Fprintf(&s.out, "not kept: %s\n", why)
		}
	case "evicted":
		s.machine.PodEvicted(t, s.State.PodOn(testkit.Pod(args.Name()).UID))
	case "surging":
		s.machine.SuccessorRequested(t, s.State.PodOn(testkit.Pod(args.Name()).UID))
	case "free":
		s.machine.ReleaseUnevicted(t, args.Name())
	case "arrives":
		p := s.pod(args)
		at := ""
		if room := s.machine.PodAppearedPending(t, p); room != nil {
			at = room.Name
		}
		s.State.Nominate(p, at) // as reservation does
		fmt.Fprintf(&s.out, "a place on %q\n", at)
	case "comes":
		p := s.pod(args)
		s.machine.PodAppearedBound(t, p)
		s.State.Place(p, p.Object.Spec.NodeName)
	case "displaced":
		for _, p := range s.machine.Displaced(s.State) {
			fmt.Fprintf(&s.out, "displaced: %s\n", p.Name())
		}
	case "fits":
		p := s.pod(args)
		e := s.Scheduler.Engine(p)
		fmt.Fprintln(&s.out, e.FitsOn(e.Class(p), s.State.NodeByName(p.Object.Spec.NodeName)))
	case "states":
		s.states.ShowAll()
	case "tick":
		if err := s.Pass(args.Name()); err != nil {
			args.Fail("%v", err)
		}
	default:
		args.Fail("unknown command")
	}
}

func node(args *script.Args) *v1.Node {
	b := testkit.Node(args.Name()).Alloc("cpu", args.Quantity("cpu", "4"), "memory", "64Gi")
	if zone := args.String("zone", ""); zone != "" {
		b.Zone(zone)
	}
	if args.Flag("going") {
		b.Taint(autoscaler.ToBeDeletedTaint, "900", v1.TaintEffectNoSchedule)
	}
	return b.Obj()
}

func (s *fixture) pod(args *script.Args) *cluster.Pod {
	b := testkit.Pod(args.Name()).Req("cpu", args.Quantity("cpu", "1")).Priority(int32(args.Int("priority", 0))).On(args.String("on", ""))
	if kind, name, ok := strings.Cut(args.String("owner", ""), "/"); ok {
		b.Owner(map[string]string{"Job": "batch/v1", "Widget": "example.com/v1"}[kind], kind, name)
		if b.OwnerReferences[0].APIVersion == "" {
			b.OwnerReferences[0].APIVersion = "apps/v1"
		}
	}
	if hash := args.String("hash", ""); hash != "" {
		b.Label("pod-template-hash", hash)
	}
	if args.Flag("apart") {
		b.Label("app", "apart").Apart(v1.LabelTopologyZone, "app", "apart")
	}
	if args.Flag("claims") {
		b.Uses("data")
	}
	if args.Flag("leaving") {
		b.Terminating()
	}
	if uid := args.String("uid", ""); uid != "" {
		b.UID = types.UID(uid)
	}
	b.Spec.SchedulerName = args.String("scheduler", b.Spec.SchedulerName)
	return s.State.Schema.ParsePod(b.Obj())
}

func (s *fixture) owner(cmd string, args *script.Args) {
	kind, name, _ := strings.Cut(args.Name(), "/")
	if cmd == "owner-gone" {
		s.State.RemoveWorkload(cluster.WorkloadKind(kind), "default", name)
		return
	}
	s.State.SetWorkload(&cluster.Workload{Kind: cluster.WorkloadKind(kind), Namespace: "default", Name: name, Selector: labels.SelectorFromSet(labels.Set{"owner": name}),
		Replicas: cluster.Replicas{Wanted: int32(args.Int("wanted", 0)), Existing: int32(args.Int("existing", 0))}})
}

func removal(args *script.Args) *autoscaler.Removal {
	r := &autoscaler.Removal{Node: args.Name()}
	for _, x := range args.List("homes") {
		pod, node, _ := strings.Cut(x, "/")
		r.Homes = append(r.Homes, autoscaler.Home{Pod: testkit.Pod(pod).UID, Node: node})
	}
	return r
}

func (s *fixture) output() string {
	r := s.Flush()
	s.out.WriteString(strings.ReplaceAll(lifecycletest.Text(&r), "decided: ", ""))
	s.out.WriteString(s.states.Text(s.machine.Unsettled(), s.Now, s.machine.NextWake()))
	defer s.out.Reset()
	if s.out.Len() == 0 {
		return "nothing\n"
	}
	return s.out.String()
}
