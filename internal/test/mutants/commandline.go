package mutants

// commandLine are faults of what people type and see.
var commandLine = []Mutant{
	{"who acts as somebody else is answered as himself", "edge/observe/serving.go", "h = impersonation.WithImpersonation(h, authz, scheme.Codecs)\n", "_ = impersonation.WithImpersonation\n", "./edge/observe", "TestActingAsSomebodyElse", "1"},
	{"a dump has what Berth doesn't read", "internal/dump/dump.go", "trimmed := cluster.Trim(m).(runtime.Object)", "_ = cluster.Trim[metav1.Object]\n\ttrimmed := m.(runtime.Object)", "./internal/dump", "TestADumpHasNoSecrets", "1"},
	{"a dump ends after a page", "internal/dump/dump.go", "opt.Continue == \"\" {", "true {", "./internal/dump", "TestADumpHasNoSecrets", "1"},
	{"a connection that broke is used again", "internal/top/link.go", "		l.drop(from)\n		if !worked", "		if !worked", "./internal/top", "TestAnotherLeaderIsFollowed", "1"},
	{"the cursor stays where it is, not on its node", "internal/top/model.go", "if rows[i].key == m.cursor[m.tab] {", "if false {", "./internal/top", "TestTheCursorStaysOnItsNode", "1"},
	{"a stream that broke is the last", "internal/top/link.go", "		tell(lost{})\n", "		tell(lost{})\n		return\n", "./internal/top", "TestTheStreamIsFollowed", "1"},
	{"changes come by themselves, and are asked for all the same", "internal/top/model.go", "(!m.streaming || m.stale ||", "(true || m.stale ||", "./internal/top", "TestNothingIsAskedWhileNothingChanges", "1"},
	{"a terminal is sent what names and messages have", "internal/term/source.go", "report.Unprintable(r) &&", "false && report.Unprintable(r) &&", "./internal/term", "TestNoControlCharacters", "1"},
	{"a message begins a line", "internal/term/source.go", "append(out, ' '), i+2", "append(out, raw[i:i+2]...), i+2", "./internal/term", "TestNoControlCharacters", "1"},
	{"with a token nobody acts as somebody else", "edge/reach/direct.go", "as.UserName != \"\" {", "as.UserName == \"nobody\" {", "./edge/reach", "TestActingAsSomebodyElse", "1"},
	{"a right is remembered for whatever token", "edge/api/viewer.go", "range slices.Sorted(maps.Keys(extra))", "range slices.Sorted(maps.Keys(extra))[:0]", "./edge/api", "TestRightsAreOfAToken", "1"},
	{"an error of usage is like any error", "internal/term/errors.go", "		return ExitUsage\n", "		return ExitError\n", "./cmd/berth", "TestUsageErrors", "1"},
	{"what is asked of a file bears the time of the question", "edge/api/api.go", "!m.Now.IsZero() {\n		return m.Now.UTC()", "false {\n		return m.Now.UTC()", "./internal/page", "TestAnswersOfAFileBearItsTime", "1"},
	{"an unmet expectation is like any error", "internal/term/errors.go", "		return ExitUnmet\n", "		return ExitError\n", "./cmd/berth", "TestExitCodes", "1"},
	{"the Lease names the host where the pod is known", "edge/leader/identity.go", "	if name == \"\" || len(name) > longestName {", "	if true {", "./edge/leader", "TestThePodsNameIsInTheIdentity", "1"},
	{"flags of a running Berth beside a file are ignored", "edge/reach/validate.go", "		if flag.Changed {", "		if false && flag.Changed {", "./cmd/berth", "TestUsageErrors", "1"},
	{"a pod beside an address is ignored", "edge/reach/validate.go", "if err := f.besideServer(); err != nil {", "if err := f.besideServer(); false {", "./cmd/berth", "TestUsageErrors", "1"},
	{"a check waits for what a server's cache doesn't have", "edge/provider/externalgrpc/check_change.go", "		_, _ = attempt(c, &line{}, c.server.Refresh, &protocol.RefreshRequest{})", "		_ = &protocol.RefreshRequest{}", "./edge/provider/externalgrpc", "TestCheckOfAServerWithACache", "1"},
	{"tables older than the stream's overview count as read", "internal/top/model.go", "m.stale = m.stale || s.at.Before(m.told) && !s.at.IsZero()", "m.stale = m.stale || false && s.at.Before(m.told)", "./internal/top", "TestTablesAreReadAgain", "1"},
	{"an older overview takes the place of the stream's", "internal/top/model.go", "!m.told.IsZero() && s.status.Overview.At.Before(shown.At)", "false && s.status.Overview.At.Before(shown.At)", "./internal/top", "TestTablesAreReadAgain", "1"},
	{"the page ends where nobody leads yet", "internal/page/command.go", "case reach.NoLeader(err):", "case reach.NoLeader(err) && false:", "./internal/page", "TestUIWaitsForALeader", "1"},
	{"whoever stands by answers for ever who leads", "edge/api/api.go", "if p.standby && !a.opt.Meta().Leading {", "if p.standby && false {", "./edge/observe", "TestTheAPIIsServed", "1"},
	{"a certificate of an instance that stands by is wrong for ever", "edge/reach/direct.go", "case leased != \"\":", "case false:", "./edge/reach", "TestAForwarderWaits", "1"},
	{"any server is one that may lead some time", "edge/reach/direct.go", "!observe.MadeByBerth(s.PeerCertificates[0])", "false && observe.MadeByBerth(nil)", "./edge/reach", "TestAForwarderWaits", "1"},
	{"a right that was taken away is waited for", "edge/reach/reach.go", "case apierrors.IsForbidden(err):", "case false:", "./internal/page", "TestUIGivesUpLater", "1"},
	{"a command waits for ever as somebody who isn't known", "internal/page/command.go", "case unauthenticated == maxUnauthenticated:", "case false:", "./internal/page", "TestUISaysAgain", "1"},
	{"answers 401 are counted although others come between", "internal/page/command.go", "			unauthenticated = 0\n", "			unauthenticated--\n", "./internal/page", "TestUISaysAgain", "1"},
	{"a certificate ends a command while the Lease can't be read", "edge/reach/direct.go", "%v, and the Lease can't vouch for it: %w", "%w, and the Lease can't vouch for it: %w", "./edge/reach", "TestWhatWaitingCanEnd", "1"},
	{"a command waits for what waiting can't end", "internal/page/command.go", "case reach.Hopeless(err):", "case false:", "./internal/page", "TestUISaysAgain", "1"},
	{"a lower bound is more than is proved", "core/autoscaler/scaleup/choice.go", "choice.LowerBound = b.mix.LowerBound", "choice.LowerBound = 2 * b.mix.LowerBound", "./core/autoscaler/scaleup", "TestPropertyAlternatives", "200"},
	{"a node doesn't say that its room was given away twice", "edge/observe/history.go", "step.PodSurged, step.RoomTakenTwice:", "step.PodSurged:", "./edge/observe", "TestHistoryOfANode", "1"},
	{"a Berth that only schedules says nothing of a node", "internal/term/explain.go", "		if len(x.Decisions) == 0 {", "		if true {", "./cmd/berth", "TestANodeOfABerthThatOnlySchedules", "1"},
}

func init() { All = append(All, commandLine...) }
