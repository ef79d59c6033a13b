package mutants

// interruptions are faults of what is done about nodes that the cloud takes, and of homes.
var interruptions = []Mutant{
	{"a home is kept where its volume can't be reached", "core/lifecycle/homes/room.go", "!ref.Ephemeral && claim != nil && cluster.ClaimBound(claim)", "false && claim != nil && !ref.Ephemeral", "./core", "TestScripts/autoscale_interruption_volumes", "1"},
	{"a claim of one pod at a time keeps its replacement from a home", "core/plugins/volumerestrictions/volumerestrictions.go", "if ref.Ephemeral || ref.Inherited {", "if ref.Ephemeral {", "./core", "TestScripts/autoscale_interruption_volumes", "1"},
	{"a home is kept on a node that is going", "core/lifecycle/homes/search.go", "n.Name != h.from && !autoscaler.Going(n.NodeInfo)", "n.Name != h.from && (true || !autoscaler.Going(n.NodeInfo))", "./core", "TestScripts/autoscale_interruption_tolerant", "1"},
	{"pods that can't have homes are evicted at once", "core/lifecycle/interruption/interruption.go", `case homeless != "" && late.IsZero()`, `case false && homeless != "" && late.IsZero()`, "./core", "TestScripts/autoscale_interruption_homeless", "1"},
	{"pods that can't have homes hold a node up for ever", "core/lifecycle/interruption/interruption.go", "late.IsZero() && t.Now.Before(hold):", "late.IsZero():", "./core", "TestScripts/autoscale_interruption_homeless", "1"},
	{"no home is looked for where devices are free", "core/lifecycle/homes/search.go", "unplaced(t.State.Schema.AsWanted(h.pod)))", "h.pod)", "./core", "TestScripts/autoscale_interruption_homeless", "1"},
	{"a drain that has failed is begun again at once", "core/lifecycle/interruption/interruption.go", "case t.Now.Before(x.retry):", "case false:", "./core", "TestScripts/autoscale_interruption_failing", "1"},
	{"a node comes back without the mark of its interruption", "core/lifecycle/nodedeletion/provider.go", "m.interruptions.AsMarked(d.on(node))", "d.on(node)", "./core", "TestScripts/autoscale_interruption_failing", "1"},
	{"a user's taint is taken for an interruption", "core/autoscaler/interruption.go", `"berth.dev/interrupted/in-state"`, `"berth.dev/interrupted"`, "./core/autoscaler", "TestNobodyCanWriteTheTaintOfAnInterruption", "1"},
	{"a resize that becomes deferred isn't seen", "core/cluster/pod_fields.go", " && samePendingResize(a.Object, b.Object)", "", "./core", "TestScripts/autoscale_resize", "1"},
	{"a resize whose node is gone is looked at in every Step", "core/lifecycle/resizing/resizing.go", "so will the pod be\n			x.retry = t.Now.Add(retryAfter)\n", "so will the pod be\n", "./core", "TestScripts/autoscale_resize_gone", "1"},
	{"a pod moves for a resize before it has room", "core/lifecycle/resizing/resizing.go", `case !ok || k.Node == "":`, "case !ok:", "./core", "TestScripts/autoscale_resize", "1"},
	{"a pod moves for a resize whatever its budget", "core/lifecycle/resizing/resizing.go", "if b.Status.DisruptionsAllowed < 1 &&", "if false &&", "./core", "TestScripts/autoscale_resize_stays", "1"},
	{"a home has room for what an infeasible resize has left", "core/lifecycle/homes/room.go", "s.Schema.AsWanted(pod)", "pod", "./core", "TestScripts/autoscale_resize", "1"},
	{"the room for a resize that was carried out stays reserved", "core/lifecycle/resizing/resizing.go", "		m.homes.ReleasePod(t, uid)\n	}\n}\n", "	}\n}\n", "./core", "TestScripts/autoscale_resize", "1"},
}

func init() { All = append(All, interruptions...) }
