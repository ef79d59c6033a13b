package live

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/cluster"
)

func groupStatus(target, registered, ready, deleting int) []core.GroupStatus {
	return []core.GroupStatus{{NodeGroup: cluster.NodeGroup{ID: "g", Min: 1, Max: 9, Target: target}, Registered: registered, Ready: ready, Deleting: deleting}}
}

// TestStatusCountsEachNodeOnce adds the counts of a group up.
func TestStatusCountsEachNodeOnce(t *testing.T) {
	for _, c := range []struct {
		target, registered, ready, deleting int
		notStarted, unregistered            int
	}{
		{target: 5, registered: 3, ready: 1, deleting: 1, notStarted: 1, unregistered: 2},
		{target: 2, registered: 3, ready: 2, deleting: 1}, // the target falls before the node goes
	} {
		h := statusOf(time.Unix(0, 0), groupStatus(c.target, c.registered, c.ready, c.deleting)).NodeGroups[0].Health
		r := h.NodeCounts.Registered
		if r.NotStarted != c.notStarted || h.NodeCounts.Unregistered != c.unregistered || r.Total != r.Ready+r.NotStarted+r.BeingDeleted ||
			h.CloudProviderTarget != c.target || h.MinSize != 1 || h.MaxSize != 9 {
			t.Errorf("%+v gives %+v", c, h)
		}
	}
}

// TestStatusIsUpdatedOnceInAPeriodAndTheLatestWaits hands three over without anybody
// writing them.
func TestStatusIsUpdatedOnceInAPeriodAndTheLatestWaits(t *testing.T) {
	w := newStatusWriter(nil, 10*time.Second)
	start := time.Unix(1000, 0)
	for _, x := range []struct {
		after  time.Duration
		target int
		want   int // of the status that waits
	}{{0, 1, 1}, {9 * time.Second, 2, 1}, {10 * time.Second, 3, 3}} {
		w.update(start.Add(x.after), func() []core.GroupStatus { return groupStatus(x.target, 0, 0, 0) })
		s := <-w.latest
		if got := s.NodeGroups[0].Health.CloudProviderTarget; got != x.want {
			t.Errorf("after %s target %d waits to be written, want %d", x.after, got, x.want)
		}
		w.latest <- s
	}
	(*statusWriter)(nil).update(start, nil) // without a provider there is none
}

// TestStatusIsCreatedAndUpdated writes it twice to an API that doesn't have it.
func TestStatusIsCreatedAndUpdated(t *testing.T) {
	client := fake.NewClientset()
	w := newStatusWriter(client, 0)
	for _, want := range []string{"cloudProviderTarget: 1", "cloudProviderTarget: 2"} {
		target := int(want[len(want)-1] - '0')
		if err := w.write(t.Context(), statusOf(time.Unix(0, 0), groupStatus(target, 0, 0, 0))); err != nil {
			t.Fatal(err)
		}
		cm, err := client.CoreV1().ConfigMaps(StatusNamespace).Get(t.Context(), StatusName, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		text := cm.Data["status"]
		if !strings.Contains(text, want) || !strings.Contains(text, `time: "1970-01-01T00:00:00Z"`) || !strings.Contains(text, "autoscalerStatus: Running") {
			t.Errorf("got\n%s\nwant …%s…", text, want)
		}
	}
}
