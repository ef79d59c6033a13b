package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"
	cliflag "k8s.io/component-base/cli/flag"

	"github.com/berthproject/berth/internal/page"
	"github.com/berthproject/berth/internal/term"
)

// This file asks a running Berth, or a file, about pods, pod groups, node groups or nodes, and prints the answer.

// explainFlags are the flags of berth explain.
type explainFlags struct {
	from   page.Source
	output *term.Output
}

// reachText says in the help of each command that asks a running Berth how it is reached.
const reachText = `The command finds the pod that holds the Lease and queries it over a port-forward
through the API server, with the credentials of your kubeconfig. You need the role
berth-viewer; docs/kubectl-berth.md has the commands that grant it. With --server
the command connects to that address instead.`

// explainCommand returns berth explain. Arguments are checked before anything is asked, so that a
// mistyped kind needs no cluster to be told.
func explainCommand() *cobra.Command {
	f := &explainFlags{output: term.NewOutput(term.Text, term.Wide, term.Name)}
	cmd := &cobra.Command{
		Use:   "explain (pod | podgroup) [NAMESPACE/]NAME | (node | group) NAME | pods | podgroups | nodes | groups",
		Short: "Explain why a pod or a pod group is pending or where it is, the state of node groups, and why nodes are not removed",
		Long: `Explain queries a running Berth about a pod: its state, which plugin rejects which
nodes and by how much the nearest one falls short, what would help, the scores of
the nodes that fit, and the decisions about it so far. For a pending pod it also
shows why each node group was or was not scaled up, which node is upcoming, and
when it is expected.

For a pod group it shows how many members have a node and where, what the others
wait for, and the decisions about the group as a whole.

For a node group it shows its size and limits, whether and why it is in backoff,
what is launching, and its last scale-up with the reason; without a name it prints
one line per group.

For a node it shows why it is not removed, with the pod or limit that blocks its
removal, since when, and what would change that; or, for a removable node, since
when it is unneeded, what it waits for, and which nodes have room for its pods. For
all nodes it shows how many are kept for which reason, how many are removable, and
what they cost. For all pods it shows the pending ones by reason. Times are UTC.

Kinds are written as in kubectl: pod/NAME, plurals, and po, no, ng (node group) and pg
(pod group). With --file the question is put to a file, and no cluster is needed: what
a scenario or a dump of objects comes to in a simulation, or the end of a recording.

` + reachText,
		Example: `  kubectl berth explain pod web-0
  kubectl berth explain pod web-0 --namespace shop
  kubectl berth explain podgroup train --namespace shop
  berth explain group
  berth explain group spot-a
  berth explain nodes
  berth explain node/worker-7
  berth explain nodes -o wide
  berth explain pods -o jsonpath='{.items[*].name}'
  berth explain pod default/waits --file examples/explain/dump.yaml
  berth explain node worker-7 --server https://localhost:10259 --token-file token --insecure-skip-tls-verify`,
		// Args can only return an error, so RunE reads the arguments again.
		Args: func(cmd *cobra.Command, args []string) error {
			_, err := f.topic(program(cmd), args)
			return err
		},
		ValidArgsFunction: f.completer().Complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := f.topic(program(cmd), args)
			if err != nil {
				return err
			}
			return f.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), t)
		},
	}
	var s cliflag.NamedFlagSets
	fs := s.FlagSet("misc")
	fs.StringVarP(&f.from.Namespace, "namespace", "n", "", "namespace of a pod or pod group given without one (default: that of the context)")
	f.output.Register(fs)
	f.from.Register(fs, s.FlagSet("connection"))
	term.SetSections(cmd, s)
	f.from.Complete(cmd)
	f.output.Complete(cmd)
	return cmd
}

// topic reads the arguments; called is what the user has typed to call this program.
// A namespace may stand before the name, in --namespace or in the context, in this order.
func (f *explainFlags) topic(called string, args []string) (term.Topic, error) {
	return term.TopicOf(called, args, f.from.PodNamespace)
}

// completer completes the names of what can be asked about.
// It is made before flags are parsed, and opens the connection when a name is completed,
// without progress messages in the user's prompt.
func (f *explainFlags) completer() term.Completer {
	open := func(ctx context.Context) (term.Source, func(), error) { return f.from.Open(ctx, io.Discard) }
	return term.Completer{Open: open, Namespace: f.from.PodNamespace}
}

// run asks about a topic, and prints the answer. An older berth prints what it knows of a newer Berth's answer.
func (f *explainFlags) run(ctx context.Context, out, log io.Writer, t term.Topic) error {
	// An output that isn't known is refused before a connection is made.
	if _, err := f.output.Own(); err != nil {
		return err
	}
	from, end, err := f.from.Open(ctx, log)
	if err != nil {
		return err
	}
	defer end()
	return t.Explain(ctx, out, from, f.output)
}
