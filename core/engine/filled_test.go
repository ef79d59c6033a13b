package engine_test

import (
	"fmt"
	"testing"

	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestFilledColumnsAreBounded asks about pods of five shapes where three columns may be filled at a
// time: who was asked last needn't look at the nodes again, and who was asked the longest ago does.
func TestFilledColumnsAreBounded(t *testing.T) {
	s := nodes(testkit.Node("n0").Alloc("cpu", "16", "memory", "8Gi", "pods", "10"))
	local := &localScript{reads: framework.ReadsPods}
	profile := plugins.Default(s.Schema, plugins.Options{})
	profile.Plugins = append(profile.Plugins, weighted(1, &scripted{name: "Counts", rules: framework.Rules{Local: local}}))
	e := testkit.Must(engine.New(s, profile, engine.Options{Columns: 3}))
	ask := func(cpus int) string {
		if _, ok := e.Best(e.Class(parsed(s, testkit.Pod("p").Req("cpu", fmt.Sprint(cpus))))); !ok {
			t.Errorf("a pod of %d CPUs fits nowhere", cpus)
		}
		return local.evaluated()
	}
	for i, x := range []struct {
		cpus   int
		looks  string
		filled int
	}{
		{1, "n0", 1}, {2, "n0", 2}, {3, "n0", 3},
		{1, "", 3}, {2, "", 3}, {3, "", 3},
		{4, "n0", 3}, // in place of that of 1
		{2, "", 3}, {3, "", 3},
		{5, "n0", 3}, // in place of that of 4
		{2, "", 3}, {3, "", 3},
		{4, "n0", 3}, {3, "", 3},
	} {
		if looks := ask(x.cpus); looks != x.looks || e.Size().Columns != x.filled {
			t.Errorf("question %d, %d CPUs: looks at %q, and %d columns are filled; want %q and %d", i, x.cpus, looks, e.Size().Columns, x.looks, x.filled)
		}
	}
	e.Sweep(func(*engine.Class) bool { return false })
	if n := e.Size().Columns; n != 0 {
		t.Errorf("%d columns are filled after all classes were forgotten", n)
	}
}
