package live

import (
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/explain"
	"github.com/berthproject/berth/core/lifecycle/nodegroups"
	"github.com/berthproject/berth/core/step"
)

// theirStatus is the status as programs read it that were written for Cluster Autoscaler: its
// fields are those of pkg/clusterstate/api of August 2026, all of them.
type theirStatus struct {
	Time, AutoscalerStatus, Message string
	ClusterWide                     struct {
		Health struct {
			Status                            string
			NodeCounts                        theirCounts
			LastProbeTime, LastTransitionTime metav1.Time
		}
		ScaleUp struct {
			Status                            string
			LastProbeTime, LastTransitionTime metav1.Time
		}
		ScaleDown theirScaleDown
	}
	NodeGroups []struct {
		Name   string
		Health struct {
			Status                                string
			NodeCounts                            theirCounts
			CloudProviderTarget, MinSize, MaxSize int
			LastProbeTime, LastTransitionTime     metav1.Time
		}
		ScaleUp struct {
			Status                            string
			BackoffInfo                       struct{ ErrorCode, ErrorMessage string }
			LastProbeTime, LastTransitionTime metav1.Time
		}
		ScaleDown theirScaleDown
	}
}

type theirScaleDown struct {
	Status                            string
	Candidates                        int
	LastProbeTime, LastTransitionTime metav1.Time
}

type theirCounts struct {
	Registered struct {
		Total, Ready, NotStarted, Suspended, BeingDeleted int
		Unready                                           struct{ Total, ResourceUnready int }
	}
	LongUnregistered, Unregistered int
}

// read reads a status as those programs do, and fails when it has a field that they don't know.
func read(t *testing.T, text string) theirStatus {
	t.Helper()
	var s theirStatus
	if err := yaml.UnmarshalStrict([]byte(text), &s); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return s
}

// written returns a status as the ConfigMap has it.
func written(t *testing.T, s Status) string {
	t.Helper()
	text, err := yaml.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// scaling is a cluster with a group that grows and one that backs off.
func scaling() *explain.ScalingStatus {
	counts := explain.NodeCounts{Registered: 15, Ready: 1, NotStarted: 2, Unready: 4, ResourceUnready: 3, Suspended: 5, Deleted: 3, Unregistered: 7, LongUnregistered: 8, Leaving: 4, LeavingReady: 1}
	return &explain.ScalingStatus{
		Known: true, Nodes: counts, Candidates: 2, Planned: time.Unix(900, 0),
		Groups: []explain.GroupStatus{
			{NodeGroup: cluster.NodeGroup{ID: "grows", Min: 1, Max: 30, Target: 20}, NodeCounts: counts, Candidates: 2, Coming: 9, Healthy: true},
			{NodeGroup: cluster.NodeGroup{ID: "rests", Max: 3}, Healthy: true, Backoff: &nodegroups.Backoff{Code: "QUOTA_EXCEEDED", Reason: "quota CPUS: " + strings.Repeat("é", 600)}},
			{NodeGroup: cluster.NodeGroup{ID: "sick", Max: 3}, Backoff: &nodegroups.Backoff{Code: "timeout"}},
			{NodeGroup: cluster.NodeGroup{ID: "idle", Max: 3}, Healthy: true},
		},
	}
}

// TestProgramsForClusterAutoscalerReadTheStatus reads each field with their types.
func TestProgramsForClusterAutoscalerReadTheStatus(t *testing.T) {
	text := written(t, statusOf(time.Unix(1000, 0), scaling(), &Status{}))
	for _, name := range []string{ // as they are written there: programs in other languages tell capitals apart
		"autoscalerStatus", "clusterWide", "nodeGroups", "health", "scaleUp", "scaleDown", "nodeCounts", "registered", "notStarted", "beingDeleted", "resourceUnready",
		"longUnregistered", "cloudProviderTarget", "minSize", "maxSize", "backoffInfo", "errorCode", "errorMessage", "lastProbeTime", "lastTransitionTime",
	} {
		if !strings.Contains(text, " "+name+":") && !strings.HasPrefix(text, name+":") && !strings.Contains(text, "\n"+name+":") {
			t.Errorf("there is no field %s", name)
		}
	}
	got := read(t, text)
	if got.AutoscalerStatus != "Running" || got.Time != "1970-01-01 00:16:40 +0000 UTC" || got.Message != "" {
		t.Errorf("got %q at %q with message %q", got.AutoscalerStatus, got.Time, got.Message)
	}
	var counts theirCounts
	counts.Registered.Total, counts.Registered.Ready, counts.Registered.NotStarted = 15, 1, 2
	counts.Registered.Suspended, counts.Registered.BeingDeleted = 5, 3
	counts.Registered.Unready.Total, counts.Registered.Unready.ResourceUnready = 4, 3
	counts.Unregistered, counts.LongUnregistered = 7, 8
	now, planned := metav1.Unix(1000, 0), metav1.Unix(900, 0)
	wide := got.ClusterWide
	if h := wide.Health; h.Status != "Healthy" || h.NodeCounts != counts || !h.LastProbeTime.Equal(&now) || !h.LastTransitionTime.Equal(&now) {
		t.Errorf("the cluster's health: %+v", h)
	}
	if u := wide.ScaleUp; u.Status != "InProgress" || !u.LastProbeTime.Equal(&now) || !u.LastTransitionTime.Equal(&now) {
		t.Errorf("the cluster's scale-up: %+v", u)
	}
	if d := wide.ScaleDown; d.Status != "CandidatesPresent" || d.Candidates != 2 || !d.LastProbeTime.Equal(&planned) || !d.LastTransitionTime.Equal(&planned) {
		t.Errorf("the cluster's scale-down: %+v", d)
	}
	if h := got.NodeGroups[0].Health; h.Status != "Healthy" || h.NodeCounts != counts || h.CloudProviderTarget != 20 || h.MinSize != 1 || h.MaxSize != 30 || !h.LastProbeTime.Equal(&now) {
		t.Errorf("a group's health: %+v", h)
	}
	for i, want := range []struct{ name, health, up, code, down string }{
		{"grows", "Healthy", "InProgress", "", "CandidatesPresent"},
		{"rests", "Healthy", "Backoff", "QUOTA_EXCEEDED", "NoCandidates"},
		{"sick", "Unhealthy", "Unhealthy", "", "NoCandidates"},
		{"idle", "Healthy", "NoActivity", "", "NoCandidates"},
	} {
		g := got.NodeGroups[i]
		if g.Name != want.name || g.Health.Status != want.health || g.ScaleUp.Status != want.up || g.ScaleUp.BackoffInfo.ErrorCode != want.code || g.ScaleDown.Status != want.down {
			t.Errorf("got %+v, want %+v", g, want)
		}
	}
	if text := got.NodeGroups[1].ScaleUp.BackoffInfo.ErrorMessage; len(text) > maxErrorMessage || !strings.HasPrefix(text, "quota CPUS: éé") || !strings.HasSuffix(text, "é...") {
		t.Errorf("the message has %d bytes: %s", len(text), text)
	}
}

// TestConditionsRememberSinceWhenTheyHold writes statuses one after the other.
func TestConditionsRememberSinceWhenTheyHold(t *testing.T) {
	s, last := scaling(), Status{}
	for _, x := range []struct {
		at     int64
		change func()
		since  string // of health, scale-up and scale-down of the cluster, and of those of the first group
	}{
		{1000, func() {}, "1000 1000 900 1000 1000 900"},
		{1010, func() { s.Planned = time.Unix(1005, 0) }, "1000 1000 900 1000 1000 900"},
		{1020, func() { s.Sick = "half of it is gone" }, "1020 1000 900 1000 1000 900"},
		{1030, func() { s.Groups[0].Coming = 0 }, "1020 1030 900 1000 1030 900"},
		{1040, func() { s.Candidates, s.Groups[0].Candidates, s.Planned = 0, 0, time.Unix(1035, 0) }, "1020 1030 1035 1000 1030 1035"},
		{1050, func() { s.Sick, s.Groups[0].Healthy = "", false }, "1050 1030 1035 1050 1050 1035"},
	} {
		x.change()
		last = statusOf(time.Unix(x.at, 0), s, &last)
		var got []string
		g := last.NodeGroups[0]
		for _, c := range []Condition{last.ClusterWide.Health.Condition, last.ClusterWide.ScaleUp, last.ClusterWide.ScaleDown.Condition, g.Health.Condition, g.ScaleUp.Condition, g.ScaleDown.Condition} {
			got = append(got, strconv.FormatInt(c.LastTransitionTime.Unix(), 10))
		}
		if got := strings.Join(got, " "); got != x.since {
			t.Errorf("at %d since %s, want %s", x.at, got, x.since)
		}
	}
}

// TestStatusIsInitializingBeforeTheGroupsAreKnown has nothing else.
func TestStatusIsInitializingBeforeTheGroupsAreKnown(t *testing.T) {
	got := read(t, written(t, statusOf(time.Unix(1000, 0), &explain.ScalingStatus{}, &Status{})))
	if got.AutoscalerStatus != "Initializing" || got.ClusterWide.Health.Status != "" || got.NodeGroups != nil {
		t.Errorf("got %+v", got)
	}
}

// TestStatusListsItsGroups: what is written can be read, once the groups are known.
func TestStatusListsItsGroups(t *testing.T) {
	for _, x := range []struct {
		status Status
		want   []string
		fails  bool
	}{
		{statusOf(time.Unix(0, 0), &explain.ScalingStatus{}, &Status{}), nil, true},
		{statusOf(time.Unix(0, 0), &explain.ScalingStatus{Known: true}, &Status{}), nil, false},
		{statusOf(time.Unix(0, 0), &explain.ScalingStatus{Known: true, Groups: []explain.GroupStatus{{NodeGroup: cluster.NodeGroup{ID: "a"}}, {NodeGroup: cluster.NodeGroup{ID: "b"}}}}, &Status{}), []string{"a", "b"}, false},
	} {
		text, err := yaml.Marshal(x.status)
		if err != nil {
			t.Fatal(err)
		}
		got, err := StatusGroups(&v1.ConfigMap{Data: map[string]string{statusKey: string(text)}})
		if !slices.Equal(got, x.want) || (err != nil) != x.fails {
			t.Errorf("got %q and %v, want %q and an error: %t, of\n%s", got, err, x.want, x.fails, text)
		}
	}
}

// TestStatusIsUpdatedOnceInAPeriodAndTheLatestWaits hands three over without anybody
// writing them.
func TestStatusIsUpdatedOnceInAPeriodAndTheLatestWaits(t *testing.T) {
	w := newStatusWriter(nil, "ns", "name", 10*time.Second, slog.New(slog.DiscardHandler))
	start := time.Unix(1000, 0)
	for _, x := range []struct {
		after  time.Duration
		target int
		want   int // of the status that waits
	}{{0, 1, 1}, {9 * time.Second, 2, 1}, {10 * time.Second, 3, 3}} {
		w.update(start.Add(x.after), func() explain.ScalingStatus {
			s := scaling()
			s.Groups[0].Target = x.target
			return *s
		})
		s := <-w.latest
		if got := s.NodeGroups[0].Health.CloudProviderTarget; got != x.want {
			t.Errorf("after %s target %d waits to be written, want %d", x.after, got, x.want)
		}
		w.latest <- s
	}
	if w := newStatusWriter(nil, "ns", "", time.Second, nil); w != nil {
		t.Error("without a name there is a writer")
	}
	(*statusWriter)(nil).update(start, nil) // and none is asked
}

// TestStatusIsCreatedAndUpdated writes it twice to an API that doesn't have it. What somebody else
// has put into the ConfigMap meanwhile stays.
func TestStatusIsCreatedAndUpdated(t *testing.T) {
	client := fake.NewClientset()
	maps := client.CoreV1().ConfigMaps("ns")
	w := newStatusWriter(client, "ns", "name", 0, slog.New(slog.DiscardHandler))
	get := func() *v1.ConfigMap {
		cm, err := maps.Get(t.Context(), "name", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return cm
	}
	for i, at := range []int64{1000, 1010} {
		s := statusOf(time.Unix(at, 0), scaling(), &Status{})
		if err := w.write(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		cm := get()
		if got := read(t, cm.Data["status"]); got.Time != s.Time || cm.Annotations["cluster-autoscaler.kubernetes.io/last-updated"] != s.Time {
			t.Errorf("status of %s with annotations %v, want of %s", got.Time, cm.Annotations, s.Time)
		}
		if i == 1 {
			if cm.Labels["by"] != "somebody" || cm.Data["other"] != "kept" {
				t.Errorf("what somebody else has written is gone: %+v", cm)
			}
			continue
		}
		cm.Labels, cm.Data["other"] = map[string]string{"by": "somebody"}, "kept"
		if _, err := maps.Update(t.Context(), cm, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestStatusEventsAreOfTheConfigMap places an event before the first status is written and after
// it, and none where no status is written.
func TestStatusEventsAreOfTheConfigMap(t *testing.T) {
	client := fake.NewClientset()
	client.PrependReactor("create", "configmaps", func(a clienttesting.Action) (bool, runtime.Object, error) {
		cm := a.(clienttesting.CreateAction).GetObject().(*v1.ConfigMap)
		cm.UID = "its-uid"
		return true, cm, nil
	})
	w := newStatusWriter(client, "ns", "name", 0, slog.New(slog.DiscardHandler))
	for _, uid := range []types.UID{"", "its-uid"} {
		e := step.StatusEvent("g", "ScaledUpGroup", "ScalingUp", "more")
		if !w.locate(&e) || e.Namespace != "ns" || e.Name != "name" || e.UID != uid || e.Kind != "ConfigMap" {
			t.Errorf("got %+v, want one of ns/name with UID %q", e, uid)
		}
		if err := w.write(t.Context(), statusOf(time.Unix(1000, 0), scaling(), &Status{})); err != nil {
			t.Fatal(err)
		}
	}
	e := step.StatusEvent("g", "ScaledUpGroup", "ScalingUp", "more")
	if (*statusWriter)(nil).locate(&e) {
		t.Error("an event is placed though no status is written")
	}
}

// TestStatusThatCannotBeWrittenIsSaidOnce fails twice, and works again.
func TestStatusThatCannotBeWrittenIsSaidOnce(t *testing.T) {
	var log strings.Builder
	w := newStatusWriter(nil, "ns", "name", 0, slog.New(slog.NewTextHandler(&log, nil)))
	for _, err := range []error{nil, errors.New("forbidden"), errors.New("forbidden"), nil, nil} {
		w.report(t.Context(), err)
	}
	if got := log.String(); strings.Count(got, "failed to write") != 1 || strings.Count(got, "succeeds again") != 1 || !strings.Contains(got, "configMap=ns/name err=forbidden") {
		t.Errorf("the log has\n%s", got)
	}
}
