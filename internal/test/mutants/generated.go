package mutants

// Generator is a run of tests that draw what they play: properties, random worlds, the oracle.
// None of them knows the fault that it finds.
type Generator struct {
	Dir      string // the module's folder relative to the root, "" for the root
	Pkg, Run string // a package, and a pattern for go test's -run
	Args     string // flags of the test that say how much is drawn, beside the fixed seed
}

// Subtle are faults that were found long after the tests of their time had passed, most by reading, one
// plant for each. Generators has those that random tests find by now; the others have a test of
// their own only.
var Subtle = []string{
	// The autoscaler.
	"instances that came don't count for those that were ordered first",
	"a node says for ever what its group's nodes are like",
	"explaining takes as long as it takes",
	"the relaxation is solved whatever its size",
	"a deleted node counts as being removed while the API shows it",
	"a node goes though it has moved to another group",
	"all nodes are looked at for each instance that is late",
	"a refusal takes back what a call without an answer may still do",
	"a creation in the future moves the API server's clock",
	"a candidate goes though its group rolls out",
	"a node whose instance is gone hides the one that replaces it",
	"groups offer anew in each round",
	"the API server's answers say nothing of its clock",
	"an instance whose ID comes again has the time of the first",
	"as many coming nodes stand in the state as a target says",
	"a grace period beyond all bounds overflows",
	"a group is gone when one list doesn't have it",
	// What a provider lists; random worlds found these.
	"an instance stays the group's that has listed it first",
	"a group that is listed twice is read twice",
	// The scheduler and the edges.
	"a resize of a whole pod isn't seen",
	"names are compared by whoever owns the core",
	"a report of a pod that is being bound is tried again",
	"the history has no bound in bytes",
	"victims draw no budget down",
	"a volume that isn't known yet counts as usable",
	"a skew as large as the API allows overflows",
	"nodes in an extender's answer are read whole",
	"an extender's answer counts for the pod as it is now",
	"credentials go to any pod that the Lease names",
	"a bind of a pod that is gone goes on",
	"a bind worker asks for ever where a pod is",
	"events of long names have longer ones",
}

// rapid is how properties are run, before the number of cases.
const rapid = "-rapid.seed=1 -rapid.nofailfile -rapid.shrinktime=1ms -rapid.checks="

// Generators has the random tests that find a fault, by the fault's name.
var Generators = map[string]Generator{
	"explaining takes as long as it takes":                              {Pkg: "./core/autoscaler/scaleup", Run: "TestPropertyAPlanAsksLittleAfterItsTime", Args: rapid + "100"},
	"groups offer anew in each round":                                   {Pkg: "./core/autoscaler/scaleup", Run: "TestPropertyWorkIsLinearInThePairs", Args: rapid + "100"},
	"as many coming nodes stand in the state as a target says":          {Pkg: "./core/autoscaler/scaleup", Run: "TestPropertyTargetsAreNoWork", Args: rapid + "200"},
	"a candidate goes though its group rolls out":                       {Pkg: "./core/autoscaler/scaledown", Run: "TestPropertyNodesOfAGroupThatRollsOutStay", Args: rapid + "100"},
	"a grace period beyond all bounds overflows":                        {Pkg: "./core/lifecycle/draining", Run: "TestPropertyGracePeriodsAreWithinTheirTier", Args: rapid + "100"},
	"an extender's answer counts for the pod as it is now":              {Pkg: "./core", Run: "TestPropertyAnAnswerCountsForThePodThatItIsAbout", Args: rapid + "400"},
	"a bind of a pod that is gone goes on":                              {Pkg: "./core", Run: "TestPropertyOutcomesLeaveNothingBehind", Args: rapid + "400"},
	"a skew as large as the API allows overflows":                       {Dir: "devcluster", Pkg: "./conformance", Run: "TestPropertyOracle", Args: rapid + "3000"},
	"the history has no bound in bytes":                                 {Pkg: "./edge/observe", Run: "TestPropertyHistoryIsTheLastThatHaveRoom", Args: rapid + "100"},
	"names are compared by whoever owns the core":                       {Pkg: "./edge/observe", Run: "TestPropertyTheCoreComparesNoNames", Args: rapid + "100"},
	"nodes in an extender's answer are read whole":                      {Pkg: "./edge/extender", Run: "TestPropertyOfNodesInAnAnswerTheNamesCount", Args: rapid + "100"},
	"a report of a pod that is being bound is tried again":              {Pkg: "./edge/live", Run: "TestPropertyNothingIsReportedOfAPodAfterItsBinding", Args: rapid + "400"},
	"a volume that isn't known yet counts as usable":                    {Pkg: "./edge/live", Run: "TestPropertyAPodIsBoundOnceItsVolumeIsKnown", Args: rapid + "100"},
	"a bind worker asks for ever where a pod is":                        {Pkg: "./edge/live", Run: "TestPropertyABindComesToAnEnd", Args: rapid + "400"},
	"events of long names have longer ones":                             {Pkg: "./edge/live", Run: "TestPropertyNamesOfEventsAreNames", Args: rapid + "100"},
	"the relaxation is solved whatever its size":                        {Pkg: "./core/autoscaler/mix", Run: "TestPropertySolveIsBounded", Args: rapid + "1000"},
	"all nodes are looked at for each instance that is late":            {Pkg: "./core/lifecycle/nodegroups", Run: "TestPropertyListsAreReadInLinearWork", Args: rapid + "100"},
	"instances that came don't count for those that were ordered first": {Pkg: "./core/lifecycle/nodegroups", Run: "TestPropertyNodesAreGivenUpInTheirTimeAndNotBefore", Args: rapid + "100"},
	"an instance whose ID comes again has the time of the first":        {Pkg: "./core/lifecycle/nodegroups", Run: "TestPropertyAnInstanceHasItsTimeFromItsFirstList", Args: rapid + "100"},
	"a group is gone when one list doesn't have it":                     {Pkg: "./core/lifecycle/nodegroups", Run: "TestPropertyAGroupIsGoneWhenTwoListsDoNotHaveIt", Args: rapid + "100"},
	"a node says for ever what its group's nodes are like":              {Pkg: "./core/lifecycle/nodegroups", Run: "TestPropertyTaintsOfNewNodes", Args: rapid + "100"},
	"a node whose instance is gone hides the one that replaces it":      {Pkg: "./core/lifecycle/nodegroups", Run: "TestPropertyWhatIsListedAndNoNodeIsComing", Args: rapid + "100"},
	"a creation in the future moves the API server's clock":             {Pkg: "./core/lifecycle", Run: "TestPropertyCreationsMoveTheClockAMinuteAtMost", Args: rapid + "100"},
	"credentials go to any pod that the Lease names":                    {Pkg: "./edge/reach", Run: "TestPropertyCredentialsGoWhereTheAPIServerVouches", Args: rapid + "100"},

	"a resize of a whole pod isn't seen": {Pkg: "./core/cluster", Run: "TestPropertyRequestsAreAsTheLibraryHasThem", Args: rapid + "400"},
	"victims draw no budget down":        {Pkg: "./core", Run: "TestPropertyPreemptionsAtOnceKeepBudgets", Args: rapid + "400"},
	// Random worlds.
	"a node goes though it has moved to another group":                {Pkg: "./sim/soak", Run: "TestSoak", Args: "-seeds=20 -first=30"},
	"a refusal takes back what a call without an answer may still do": {Pkg: "./sim/soak", Run: "TestDraining", Args: "-seeds=30 -first=100"},
	"an instance stays the group's that has listed it first":          {Pkg: "./sim/soak", Run: "TestDraining", Args: "-seeds=20 -first=30"},
	"a group that is listed twice is read twice":                      {Pkg: "./sim/soak", Run: "TestSoak", Args: "-seeds=30 -first=100"},
	"the API server's answers say nothing of its clock":               {Pkg: "./sim/soak", Run: "TestSoak", Args: "-seeds=150 -first=1"},
	"a deleted node counts as being removed while the API shows it":   {Pkg: "./sim/soak", Run: "TestSoak", Args: "-seeds=100 -first=1"},
}
