package mutants

// commandLine are faults of what people type and see.
var commandLine = []Mutant{
	{"who acts as somebody else is answered as himself", "edge/observe/serving.go", "h = impersonation.WithImpersonation(h, authz, scheme.Codecs)\n", "_ = impersonation.WithImpersonation\n", "./edge/observe", "TestActingAsSomebodyElse", "1"},
	{"a dump has what Berth doesn't read", "internal/dump/dump.go", "trimmed := cluster.Trim(m).(runtime.Object)", "_ = cluster.Trim[metav1.Object]\n\ttrimmed := m.(runtime.Object)", "./internal/dump", "TestADumpHasNoSecrets", "1"},
	{"a dump ends after a page", "internal/dump/dump.go", "opt.Continue == \"\" {", "true {", "./internal/dump", "TestADumpHasNoSecrets", "1"},
	{"a connection that broke is used again", "internal/top/top.go", "		l.drop()\n		if !worked", "		if !worked", "./internal/top", "TestAnotherLeaderIsFollowed", "1"},
	{"the cursor stays where it is, not on its node", "internal/top/model.go", "if rows[i].key == m.cursor[m.tab] {", "if false {", "./internal/top", "TestTheCursorStaysOnItsNode", "1"},
	{"an unmet expectation is like any error", "internal/term/errors.go", "		return ExitUnmet\n", "		return ExitError\n", "./cmd/berth", "TestExitCodes", "1"},
	{"the Lease names the host where the pod is known", "edge/leader/identity.go", "	if name == \"\" || len(name) > longestName {", "	if true {", "./edge/leader", "TestThePodsNameIsInTheIdentity", "1"},
}

func init() { All = append(All, commandLine...) }
