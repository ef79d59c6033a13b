package nodebudget_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/berthproject/berth/core/autoscaler/nodebudget"
	"github.com/berthproject/berth/internal/test/testkit"
)

func at(text string) time.Time { return testkit.Must(time.Parse("2006-01-02 15:04:05", text)) }

// TestABudgetIsActiveFromEachTimeOfItsScheduleOn has a budget for working hours. 2026-03-02 is
// a Monday.
func TestABudgetIsActiveFromEachTimeOfItsScheduleOn(t *testing.T) {
	b := testkit.Must(nodebudget.Parse("nodes=0;schedule=0 9 * * mon-fri;duration=8h"))
	for _, c := range []struct {
		now  string
		want bool
	}{
		{"2026-03-02 08:59:59", false},
		{"2026-03-02 09:00:00", true},
		{"2026-03-02 16:59:59", true},
		{"2026-03-02 17:00:00", false},
		{"2026-03-01 12:00:00", false}, // a Sunday
		{"2026-03-06 12:00:00", true},
	} {
		if got := b.Active(at(c.now)); got != c.want {
			t.Errorf("%s at %s: active %t, want %t", b, c.now, got, c.want)
		}
	}
	if always := testkit.Must(nodebudget.Parse("nodes=0")); !always.Active(at("2026-03-01 12:00:00")) {
		t.Error("a budget without a schedule isn't active")
	}
}

// TestAPercentageIsRoundedUp: so does Karpenter, and a small group can lose a node at all.
func TestAPercentageIsRoundedUp(t *testing.T) {
	for _, c := range []struct {
		text        string
		nodes, want int
	}{
		{"nodes=10%", 5, 1}, {"nodes=10%", 10, 1}, {"nodes=10%", 11, 2}, {"nodes=0%", 100, 0}, {"nodes=100%", 7, 7}, {"nodes=3", 100, 3}, {"nodes=10%", 0, 0},
	} {
		b := testkit.Must(nodebudget.Parse(c.text))
		if got := b.Limit(c.nodes); got != c.want {
			t.Errorf("%s of %d nodes: %d, want %d", c.text, c.nodes, got, c.want)
		}
	}
}

// TestBudgetsAreRefusedByWhatIsWrong, and what can be said is said again by String and in JSON.
func TestBudgetsAreRefusedByWhatIsWrong(t *testing.T) {
	const badMinute = `%q is not a valid minute; it must be a number from 0 to 59, a range such as 0-59, or * for all, each optionally with a step such as /2; separate several with commas`
	for _, c := range []struct{ text, want string }{
		{"", `unknown key ""; the keys are nodes, reasons, schedule and duration, as in nodes=10%, separated by semicolons`},
		{"nodes=ten", `nodes is "ten"; it must be a number of nodes of at least 0, or a whole percentage from 0% to 100%`},
		{"nodes=-1", `nodes is "-1"; it must be a number of nodes of at least 0, or a whole percentage from 0% to 100%`},
		{"nodes=101%", `nodes is "101%"; it must be a number of nodes of at least 0, or a whole percentage from 0% to 100%`},
		{"nodes=1;nodes=2", "nodes is given twice; give it once"},
		{"reasons=empty", "the number of nodes is missing; add nodes=5 or nodes=10%"},
		{"nodes=1;reasons=drifted", `unknown reason "drifted"; reasons must be one or more of empty, underutilized and consolidation, separated by commas, or left out for all`},
		{"nodes=1;schedule=@daily", "schedule and duration go together; give both, or neither for a budget that is always active"},
		{"nodes=1;duration=8h", "schedule and duration go together; give both, or neither for a budget that is always active"},
		{"nodes=1;schedule=@daily;duration=8", `duration is "8"; it must be at least a minute, such as 8h or 1h30m`},
		{"nodes=1;schedule=@daily;duration=1s", `duration is "1s"; it must be at least a minute, such as 8h or 1h30m`},
		{"nodes=1;schedule=0 9 * *;duration=8h", `schedule is "0 9 * *"; it must have five fields (minute, hour, day of the month, month, day of the week), such as "0 9 * * 1-5", or be @hourly, @daily, @weekly, @monthly or @yearly`},
		{"nodes=1;schedule=60 9 * * *;duration=8h", `schedule is "60 9 * * *"; ` + fmt.Sprintf(badMinute, "60")},
		{"nodes=1;schedule=9-5 9 * * *;duration=8h", `schedule is "9-5 9 * * *"; ` + fmt.Sprintf(badMinute, "9-5")},
		{"nodes=1;schedule=*/0 9 * * *;duration=8h", `schedule is "*/0 9 * * *"; ` + fmt.Sprintf(badMinute, "*/0")},
		{"nodes=1;schedule=0 0 30 2 *;duration=8h", `schedule is "0 0 30 2 *"; it matches no date`},
	} {
		if _, err := nodebudget.Parse(c.text); fmt.Sprint(err) != c.want {
			t.Errorf("%q:\n got %v\nwant %s", c.text, err, c.want)
		}
	}
	for _, text := range []string{"nodes=5", "nodes=10%;reasons=underutilized,consolidation", "nodes=0;reasons=empty;schedule=0 9 * * 1-5;duration=8h0m0s"} {
		b := testkit.Must(nodebudget.Parse(text))
		var again nodebudget.Budget
		err := json.Unmarshal(testkit.Must(json.Marshal(b)), &again)
		if b.String() != text || again.String() != text || err != nil {
			t.Errorf("%q is written as %q, and read from JSON as %q, %v", text, b, again, err)
		}
	}
}

// TestTheMostRestrictiveActiveBudgetCounts takes nodes of a group of ten, of which one is on its
// way out already.
func TestTheMostRestrictiveActiveBudgetCounts(t *testing.T) {
	const noon = "2026-03-02 12:00:00"
	for _, c := range []struct {
		name    string
		budgets []string
		take    nodebudget.Reason
		want    int // how many go
	}{
		{"of one", []string{"nodes=3"}, nodebudget.Empty, 2},
		{"of two", []string{"nodes=90%", "nodes=20%"}, nodebudget.Empty, 1},
		{"none may", []string{"nodes=5", "nodes=0"}, nodebudget.Empty, 0},
		{"not for this reason", []string{"nodes=5", "nodes=0;reasons=empty"}, nodebudget.Underutilized, 4},
		{"for this reason", []string{"nodes=5", "nodes=0;reasons=empty,underutilized"}, nodebudget.Underutilized, 0},
		{"not active", []string{"nodes=5", "nodes=0;schedule=0 22 * * *;duration=4h"}, nodebudget.Empty, 4},
		{"active", []string{"nodes=5", "nodes=0;schedule=0 11 * * *;duration=4h"}, nodebudget.Empty, 0},
	} {
		var budgets []nodebudget.Budget
		for _, text := range c.budgets {
			budgets = append(budgets, testkit.Must(nodebudget.Parse(text)))
		}
		counter := nodebudget.NewCounter(budgets, at(noon))
		counter.Add("g", nodebudget.Unavailable)
		for range 9 {
			counter.Add("g", nodebudget.Available)
		}
		for range 50 {
			counter.Add("other", nodebudget.Unavailable)
		}
		got, room := 0, counter.Room("g", c.take)
		for range 9 {
			if counter.Remove("g", c.take, nodebudget.Available) == "" {
				got++
			}
		}
		if got != c.want || room != c.want {
			t.Errorf("%s: %d nodes go, and there was room for %d, want %d", c.name, got, room, c.want)
		}
	}
	budget := []nodebudget.Budget{testkit.Must(nodebudget.Parse("nodes=1"))}
	counter := nodebudget.NewCounter(budget, at(noon))
	counter.Add("g", nodebudget.Unavailable)
	counter.Add("g", nodebudget.Available)
	if why := counter.Remove("g", nodebudget.Empty, nodebudget.Unavailable); why != "" {
		t.Errorf("a node that isn't ready may not go since it isn't ready: %s", why)
	}
	want := `1 of 2 nodes of group g are being removed or not ready, and the budget allows 1 (--node-disruption-budget="nodes=1")`
	if why := counter.Remove("g", nodebudget.Empty, nodebudget.Available); why != want {
		t.Errorf("got  %s\nwant %s", why, want)
	}
	inactive := []nodebudget.Budget{testkit.Must(nodebudget.Parse("nodes=0;schedule=0 22 * * *;duration=4h"))}
	if counter := nodebudget.NewCounter(inactive, at(noon)); counter != nil {
		t.Error("there is a counter of no budget")
	}
}
