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
	{"a second mark gives up by the time of the first", "core/lifecycle/interruption/interruption.go", "x.since, x.until = t.Now, time.Time{} // the cloud", "x.since = t.Now // the cloud", "./core", "TestScripts/autoscale_interruption_again", "1"},
	{"homes with devices beyond the sixteenth have no turn", "core/lifecycle/homes/search.go", "m.aloneAfter = last", "m.aloneAfter = 0 * last", "./core", "TestScripts/autoscale_interruption_devices", "1"},
	{"whatever changes takes the turn from homes with devices", "core/lifecycle/homes/search.go", "if turn { // otherwise", "if true { // otherwise", "./core", "TestScripts/autoscale_interruption_devices", "1"},
	{"homes with devices are tried once", "core/lifecycle/homes/search.go", "m.retry = t.Now.Add(retryAfter)", "m.retry = time.Time{}", "./core", "TestScripts/autoscale_interruption_(devices|homeless)", "1"},
	{"a pod whose eviction was refused and that has lost its room is looked at in every Step", "core/lifecycle/resizing/resizing.go", `x.why, x.retry = "no node has room for its replacement", t.Now.Add(retryAfter)`, `x.why = "no node has room for its replacement"`, "./core", "TestScripts/autoscale_resize_refused", "1"},
	{"an eviction that is under way is forgotten with its resize", "core/lifecycle/resizing/resizing.go", "case x != nil && (x.stage == asked || x.stage == told):", "case x != nil && x.stage == told:", "./core", "TestScripts/autoscale_resize_refused", "1"},
	{"a home has the size of a resize that has changed since", "core/lifecycle/homes/anticipate.go", "if h != nil && h.left.IsZero() && !h.taken &&", "if false && h != nil && h.left.IsZero() && !h.taken &&", "./core", "TestScripts/autoscale_resize_refused", "1"},
	{"a hopeless resize keeps others of its controller waiting", "core/lifecycle/resizing/resizing.go", "and no node group helps: \" + k.Why\n", "and no node group helps: \" + k.Why\n\t\treturn\n", "./core", "TestScripts/autoscale_resize_hopeless", "1"},
	{"a replacement moves again at once", "core/lifecycle/resizing/resizing.go", "Add(max(m.cfg.After, min(longestWait, p.Object.CreationTimestamp.Sub(of.server))))", "Add(m.cfg.After)", "./core", "TestScripts/autoscale_resize_refused", "1"},
	{"homes that never had room fill the ledger", "core/lifecycle/homes/anticipate.go", "case !h.told:", "case false:", "./core", "TestScripts/autoscale_resize_hopeless", "1"},
	{"the overview has no pending resizes", "core/explain/overview.go", "o.Unpriced, o.Resizes = v.unpriced(), v.pendingResizes()", "o.Unpriced = v.unpriced()", "./core/explain", "TestOverviewSaysWhichResizesArePending", "1"},
}

func init() { All = append(All, interruptions...) }
