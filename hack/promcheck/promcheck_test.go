// Package promcheck checks with Prometheus' own library what deploy/chart/files has: the alert
// rules parse, and every expression of rules and dashboard finds its metrics and labels in a
// scrape that edge/observe records.
package promcheck

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/util/teststorage"
)

const folder = "../../deploy/chart/files"

// expression is one of a rule or of the dashboard, with the labels that its text speaks of.
type expression struct {
	where, expr string
	speaksOf    []string
}

var (
	prom       = parser.NewParser(parser.Options{})
	inAlerts   = regexp.MustCompile(`\$labels\.(\w+)`)
	inSeries   = regexp.MustCompile(`(\w+)="`)
	inLegends  = regexp.MustCompile(`{{\s*(\w+)\s*}}`)
	evaluateAt = time.Unix(0, 0).Add(2 * time.Hour)
)

// named returns the labels that a text names.
func named(pattern *regexp.Regexp, text string) (out []string) {
	for _, m := range pattern.FindAllStringSubmatch(text, -1) {
		out = append(out, m[1])
	}
	return out
}

// rules returns the alert rules as Prometheus reads them.
func rules(t *testing.T) []rulefmt.Rule {
	t.Helper()
	groups, errs := rulefmt.ParseFile(filepath.Join(folder, "alerts.yaml"), false, model.UTF8Validation, prom, slog.New(slog.DiscardHandler))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	var out []rulefmt.Rule
	for _, g := range groups.Groups {
		out = append(out, g.Rules...)
	}
	return out
}

// expressions returns all expressions of rules and dashboard.
func expressions(t *testing.T) []expression {
	t.Helper()
	var out []expression
	for _, r := range rules(t) {
		e := expression{where: "alert " + r.Alert, expr: r.Expr}
		for _, text := range r.Annotations {
			e.speaksOf = append(e.speaksOf, named(inAlerts, text)...)
		}
		out = append(out, e)
	}
	raw, err := os.ReadFile(filepath.Join(folder, "grafana-dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct{ Panels []panel }
	if err := json.Unmarshal(raw, &dashboard); err != nil {
		t.Fatal(err)
	}
	for _, p := range flat(dashboard.Panels) {
		for _, x := range p.Targets {
			out = append(out, expression{"panel " + p.Title, chosen.Replace(x.Expr), named(inLegends, x.LegendFormat)})
		}
	}
	return out
}

// panel is a panel of the dashboard; one of the type row may have others.
type panel struct {
	Type, Title, Description string
	Targets                  []struct{ Expr, LegendFormat string }
	Panels                   []panel
}

// flat returns panels and those within them.
func flat(panels []panel) (out []panel) {
	for _, p := range panels {
		out = append(append(out, p), flat(p.Panels)...)
	}
	return out
}

// What Prometheus adds to each series, and what a reader of the dashboard has chosen.
const added = `cluster="c",namespace="kube-system",job="berth"`

var chosen = strings.NewReplacer("$cluster", "c", "$namespace", "kube-system", "$job", "berth")

// scraped returns a storage that has the recorded scrape every 30 seconds for two hours.
func scraped(t *testing.T) query {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "scrape.txt"))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]map[string]bool{}
	var b strings.Builder
	b.WriteString("load 30s\n")
	for _, line := range strings.Split(strings.TrimSpace(string(raw)), "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		name, list, _ := strings.Cut(strings.TrimSuffix(line[:at], "}"), "{")
		list = strings.TrimPrefix(list+","+added, ",")
		fmt.Fprintf(&b, "  %s{%s} %sx240\n", name, list, line[at+1:])
		if names[name] == nil {
			names[name] = map[string]bool{}
		}
		for _, label := range named(inSeries, list) {
			names[name][label] = true
		}
	}
	q := newQuery(t, promqltest.LoadedStorage(t, b.String()))
	q.labels = names
	return q
}

// query is a storage to be asked.
type query struct {
	t       *testing.T
	engine  *promql.Engine
	storage *teststorage.TestStorage
	labels  map[string]map[string]bool // by metric; nil unless it is the recorded scrape
}

func newQuery(t *testing.T, s *teststorage.TestStorage) query {
	t.Helper()
	return query{t: t, engine: promqltest.NewTestEngine(t, false, 5*time.Minute, 1e6), storage: s}
}

// at returns the value of an expression; an error when it has none, or Prometheus warns.
func (q query) at(when time.Time, expr string) (promql.Vector, error) {
	asked, err := q.engine.NewInstantQuery(q.t.Context(), q.storage, nil, expr, when)
	if err != nil {
		return nil, err
	}
	defer asked.Close()
	result := asked.Exec(q.t.Context())
	if result.Err != nil {
		return nil, result.Err
	}
	if len(result.Warnings) > 0 {
		return nil, fmt.Errorf("Prometheus warns: %v", result.Warnings.AsErrors())
	}
	v, err := result.Vector()
	return slices.Clone(v), err
}

// check tells what of an expression isn't in the scrape.
func (q query) check(x expression) error {
	parsed, err := prom.ParseExpr(x.expr)
	if err != nil {
		return err
	}
	var wrong error
	grouped := map[string]bool{} // labels that aggregations keep: the result has them, though they may be empty
	parser.Inspect(parsed, func(n parser.Node, _ []parser.Node) error {
		switch n := n.(type) {
		case *parser.VectorSelector:
			found, err := q.at(evaluateAt, n.String())
			if err == nil && len(found) == 0 {
				err = fmt.Errorf("nothing in the scrape matches %s", n)
			}
			wrong = first(wrong, err)
		case *parser.AggregateExpr:
			wrong = first(wrong, q.groups(n))
			for _, label := range n.Grouping {
				grouped[label] = true
			}
		}
		return nil
	})
	if wrong != nil {
		return wrong
	}
	if _, err := q.at(evaluateAt, x.expr); err != nil {
		return err
	}
	// What is compared away now is there when the comparison holds.
	value := parsed
	if b, ok := value.(*parser.BinaryExpr); ok && b.Op.IsComparisonOperator() {
		value = b.LHS
	}
	found, err := q.at(evaluateAt, value.String())
	if err != nil {
		return err
	}
	for _, label := range x.speaksOf {
		if len(found) > 0 && !grouped[label] && !hasLabel(found, label) {
			return fmt.Errorf("its text speaks of the label %s, which the result hasn't", label)
		}
		if len(found) == 0 {
			return fmt.Errorf("there is no value, so nobody knows whether it has the label %s", label)
		}
	}
	return nil
}

// groups checks that labels which an aggregation names are those of a metric under it. A label
// may be empty in the scrape, and Prometheus doesn't store it then.
func (q query) groups(n *parser.AggregateExpr) error {
	under := map[string]bool{}
	parser.Inspect(n.Expr, func(n parser.Node, _ []parser.Node) error {
		if s, ok := n.(*parser.VectorSelector); ok {
			for label := range q.labels[s.Name] {
				under[label] = true
			}
		}
		return nil
	})
	for _, label := range n.Grouping {
		if !under[label] {
			return fmt.Errorf("no metric under %s has the label %s", n, label)
		}
	}
	return nil
}

func hasLabel(v promql.Vector, label string) bool {
	return slices.ContainsFunc(v, func(s promql.Sample) bool {
		found := false
		s.Metric.Range(func(l labels.Label) { found = found || l.Name == label })
		return found
	})
}

func first(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// TestExpressionsFindTheirMetricsAndLabels evaluates each of them in the recorded scrape.
func TestExpressionsFindTheirMetricsAndLabels(t *testing.T) {
	q := scraped(t)
	all := expressions(t)
	if len(all) < 70 {
		t.Errorf("there are %d expressions", len(all))
	}
	for _, x := range all {
		if err := q.check(x); err != nil {
			t.Errorf("%s: %s: %v", x.where, x.expr, err)
		}
	}
}

// TestDashboardOfOneInstallation: each expression of the dashboard finds nothing in another cluster, another
// namespace, or another job than those that are chosen.
func TestDashboardOfOneInstallation(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(folder, "grafana-dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels     []panel
		Templating struct {
			List []struct{ Name, Definition string }
		}
	}
	if err := json.Unmarshal(raw, &dashboard); err != nil {
		t.Fatal(err)
	}
	var variables []string
	for _, v := range dashboard.Templating.List {
		variables = append(variables, v.Name)
		if v.Name != "datasource" && !strings.HasPrefix(v.Definition, "label_values(berth_build_info") {
			t.Errorf("the variable %s is %q", v.Name, v.Definition)
		}
	}
	if want := []string{"datasource", "cluster", "namespace", "job"}; !slices.Equal(variables, want) {
		t.Errorf("the variables are %q, want %q", variables, want)
	}
	kinds := map[string]int{}
	for _, p := range flat(dashboard.Panels) {
		kinds[p.Type]++
		if p.Type != "row" && p.Description == "" {
			t.Errorf("panel %s has no description", p.Title)
		}
		for _, x := range p.Targets {
			parsed, err := prom.ParseExpr(chosen.Replace(x.Expr))
			if err != nil {
				t.Fatalf("panel %s: %v", p.Title, err)
			}
			parser.Inspect(parsed, func(n parser.Node, _ []parser.Node) error {
				if s, ok := n.(*parser.VectorSelector); ok && !selectsOne(s) {
					t.Errorf("panel %s: %s is of every installation", p.Title, s)
				}
				return nil
			})
		}
	}
	if kinds["stat"] < 6 || kinds["table"] < 3 || dashboard.Panels[1].Type != "stat" {
		t.Errorf("the dashboard has panels of these kinds: %v, and begins with %s; want numbers and tables first", kinds, dashboard.Panels[1].Type)
	}
}

// selectsOne reports whether a selector names the installation that is chosen.
func selectsOne(s *parser.VectorSelector) bool {
	named := map[string]string{}
	for _, m := range s.LabelMatchers {
		if m.Type == labels.MatchEqual {
			named[m.Name] = m.Value
		}
	}
	return named["cluster"] == "c" && named["namespace"] == "kube-system" && named["job"] == "berth"
}

// TestAlertsSayWhatToRun: each alert has a command to begin with, of kubectl berth.
func TestAlertsSayWhatToRun(t *testing.T) {
	for _, r := range rules(t) {
		if !strings.HasPrefix(r.Annotations["runbook"], "kubectl berth ") {
			t.Errorf("%s has the runbook %q, want a command of kubectl berth", r.Alert, r.Annotations["runbook"])
		}
	}
}

// TestWrongExpressionsAreFound puts expressions to the check that it has to refuse.
func TestWrongExpressionsAreFound(t *testing.T) {
	q := scraped(t)
	for _, x := range []struct {
		expression
		want string
	}{
		{expression{expr: "max(cluster_autoscaler_node_count)"}, "nothing in the scrape matches"},
		{expression{expr: `max(cluster_autoscaler_nodes_count{state="Ready"})`}, "nothing in the scrape matches"},
		{expression{expr: `max(cluster_autoscaler_nodes_count{kind="ready"})`}, "nothing in the scrape matches"},
		{expression{expr: `sum by (group) (cluster_autoscaler_node_group_max_count)`}, "no metric under sum by (group)"},
		{expression{expr: `max(cluster_autoscaler_nodes_count)`, speaksOf: []string{"state"}}, "speaks of the label state"},
		{expression{expr: `rate(cluster_autoscaler_errors_total[5m)`}, "parse error"},
	} {
		if err := q.check(x.expression); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: got %v, want …%s…", x.expr, err, x.want)
		}
	}
}

// firing has for each alert series with which it fires after its time, and with which it doesn't.
var firing = map[string]struct{ fires, quiet string }{
	"BerthNoLeader":            {standby, standby + leader},
	"BerthNoRecentPlan":        {`cluster_autoscaler_last_activity{activity="mainSuccessful"} 0x240`, `cluster_autoscaler_last_activity{activity="mainSuccessful"} 0+30x240`},
	"BerthClusterUnhealthy":    {`cluster_autoscaler_cluster_safe_to_autoscale 0x240`, `cluster_autoscaler_cluster_safe_to_autoscale 1x240`},
	"BerthProviderErrors":      {`cluster_autoscaler_errors_total{type="cloudProviderError"} 0+1x240`, `cluster_autoscaler_errors_total{type="cloudProviderError"} 7x240`},
	"BerthScaleUpFailing":      {`cluster_autoscaler_failed_scale_ups_total{reason="timeout"} 0+1x240`, `cluster_autoscaler_failed_scale_ups_total{reason="timeout"} 7x240`},
	"BerthNodeGroupInBackoff":  {`cluster_autoscaler_node_group_backoff_status{node_group="g",reason="timeout"} 1x240`, `cluster_autoscaler_node_group_backoff_status{node_group="g",reason="timeout"} 0x240`},
	"BerthNodeGroupUnhealthy":  {`cluster_autoscaler_node_group_healthiness{node_group="g"} 0x240`, `cluster_autoscaler_node_group_healthiness{node_group="g"} 1x240`},
	"BerthNodesNotRegistering": {`cluster_autoscaler_nodes_count{state="longUnregistered"} 1x240`, `cluster_autoscaler_nodes_count{state="longUnregistered"} 0x240`},
	"BerthPodsPending":         {`berth_oldest_pending_pod_seconds 1801x240`, `berth_oldest_pending_pod_seconds 1800x240`},
	"BerthMaxNodesReached":     {"cluster_autoscaler_nodes_count{state=\"ready\"} 9x240\n  cluster_autoscaler_max_nodes_count 9x240", "cluster_autoscaler_nodes_count{state=\"ready\"} 8x240\n  cluster_autoscaler_max_nodes_count 9x240"},
	"BerthEvictionsFailing":    {`cluster_autoscaler_evicted_pods_total{eviction_result="failed"} 0+1x240`, `cluster_autoscaler_evicted_pods_total{eviction_result="succeeded"} 0+1x240`},
	"BerthBindingErrors":       {`scheduler_schedule_attempts_total{result="error",profile="p"} 0+1x240`, `scheduler_schedule_attempts_total{result="scheduled",profile="p"} 0+1x240`},
	"BerthPreemptionsFailing":  {execution("error", 1) + execution("success", 99), execution("error", 1) + execution("success", 100)},
	"BerthMissedWakeUp":        {`scheduler_pod_scheduled_after_flush_total 0+1x240`, `scheduler_pod_scheduled_after_flush_total 7x240`},
	"BerthInvalidObjects":      {`berth_bad_objects_total 0+1x240`, `berth_bad_objects_total 7x240`},
}

// The series of an instance that stands by, which has none of the cluster's state, and of the one that decides.
const (
	standby = `berth_leading{cluster="c",instance="a"} 0x240` + "\n  "
	leader  = `berth_leading{cluster="c",instance="b"} 1x240` + "\n  "
)

// execution is a series of preemptions that end in a result at a pace.
func execution(result string, pace int) string {
	return fmt.Sprintf("scheduler_preemption_goroutines_execution_total{result=%q} 0+%dx240\n  ", result, pace)
}

// TestAlertsFire has each alert fire in one world and not in another; a leader of which nothing else is known, and an instance
// that stands by, bring none of them about.
func TestAlertsFire(t *testing.T) {
	for _, r := range rules(t) {
		x, ok := firing[r.Alert]
		if !ok {
			t.Errorf("the test has no series for %s", r.Alert)
			continue
		}
		for load, want := range map[string]bool{x.fires: true, x.quiet: false, standby + leader: false} {
			q := newQuery(t, promqltest.LoadedStorage(t, "load 30s\n  "+load+"\n"))
			for _, when := range []time.Time{evaluateAt.Add(-time.Duration(r.For)), evaluateAt} { // it holds all the time in these worlds
				if got, err := q.at(when, r.Expr); err != nil || (len(got) > 0) != want {
					t.Errorf("%s with %s at %s: %v and %v, want it to fire: %t", r.Alert, load, when.UTC(), got, err, want)
				}
			}
		}
	}
}

// TestNobodyLeads has the alert of that fire for each way in which nobody may lead, once for each installation, and not
// while somebody leads.
func TestNobodyLeads(t *testing.T) {
	var expr string
	for _, r := range rules(t) {
		if r.Alert == "BerthNoLeader" {
			expr = r.Expr
		}
	}
	for _, x := range []struct {
		what, load string
		want       []string // clusters, "" for an alert without one
	}{
		{"nothing of Berth is scraped", `up{job="other"} 1x240`, []string{""}},
		{"all stand by", standby + `berth_leading{cluster="c",instance="b"} 0x240`, []string{"c"}},
		{"the leader is gone and another instance stands by", standby + `berth_leading{cluster="c",instance="b"} 1x200 stale`, []string{"c"}},
		{"one of two installations is gone since 20 minutes", leader + `berth_leading{cluster="d"} 1x200 stale`, []string{"d"}},
		{"one of two installations was removed hours ago", leader + `berth_leading{cluster="d"} 1x20 stale`, nil},
		{"the leader has changed", standby + `berth_leading{cluster="c",instance="b"} 1x100 stale` + "\n  " + `berth_leading{cluster="c",instance="d"} 0x100 1x140`, nil},
		{"two installations lead", leader + `berth_leading{cluster="d"} 1x240`, nil},
	} {
		q := newQuery(t, promqltest.LoadedStorage(t, "load 30s\n  "+x.load+"\n"))
		got, err := q.at(evaluateAt, expr)
		if err != nil {
			t.Fatalf("%s: %v", x.what, err)
		}
		var clusters []string
		for _, s := range got {
			clusters = append(clusters, s.Metric.Get("cluster"))
		}
		slices.Sort(clusters)
		if !slices.Equal(clusters, x.want) {
			t.Errorf("%s: the alert fires for %q, want %q", x.what, clusters, x.want)
		}
	}
}
