package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	cliflag "k8s.io/component-base/cli/flag"

	"github.com/berthproject/berth/edge/observe"
	"github.com/berthproject/berth/edge/reach"
	"github.com/berthproject/berth/internal/term"
)

// This file asks a running Berth about a pod, a pod group, node groups or nodes (edge/reach), and prints the
// answer.

// explainFlags are the flags of berth explain.
type explainFlags struct {
	reach  reach.Flags
	output string // text or json
}

// reachText says in the help of each command that asks a running Berth how it is reached.
const reachText = `The command finds the pod that holds the Lease and queries it over a port-forward
through the API server, with the credentials of your kubeconfig. You need the role
berth-viewer; docs/kubectl-berth.md has the commands that grant it. With --server
the command connects to that address instead.`

// explainCommand returns berth explain. Arguments are checked before anything is asked, so that a
// mistyped kind needs no cluster to be told.
func explainCommand() *cobra.Command {
	f := &explainFlags{}
	cmd := &cobra.Command{
		Use:   "explain pod [NAMESPACE/]NAME | podgroup [NAMESPACE/]NAME | group [NAME] | node NAME | nodes",
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
what they cost. Times are UTC.

` + reachText,
		Example: `  kubectl berth explain pod web-0
  kubectl berth explain pod web-0 --namespace shop
  kubectl berth explain podgroup train --namespace shop
  berth explain group
  berth explain group spot-a
  berth explain nodes
  berth explain node worker-7
  berth explain node worker-7 --server https://localhost:10259 --token-file token --insecure-skip-tls-verify`,
		Args: func(cmd *cobra.Command, args []string) error {
			_, err := f.topic(program(cmd), args)
			return err
		},
		ValidArgsFunction: term.Completer{Ask: f.reach.Ask, Namespace: f.reach.PodNamespace}.Complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := f.topic(program(cmd), args)
			if err != nil {
				return err
			}
			return f.run(cmd.Context(), cmd.OutOrStdout(), t)
		},
	}
	var s cliflag.NamedFlagSets
	fs := s.FlagSet("misc")
	fs.StringVarP(&f.reach.Namespace, "namespace", "n", "", "namespace of a pod or pod group given without one (default: that of the context)")
	fs.StringVarP(&f.output, "output", "o", "text", "text or json")
	f.reach.Register(s.FlagSet("connection"))
	term.SetSections(cmd, s)
	return cmd
}

// topic reads the arguments; called is what the user has typed to call this program.
func (f *explainFlags) topic(called string, args []string) (term.Topic, error) {
	return term.TopicOf(called, args, f.reach.PodNamespace)
}

// run asks about a topic, and prints the answer: as it came with --output=json. An older berth prints
// what it knows of a newer Berth's answer.
func (f *explainFlags) run(ctx context.Context, out io.Writer, t term.Topic) error {
	if f.output != "text" && f.output != "json" {
		return fmt.Errorf("--output is %q; it must be text or json", f.output)
	}
	raw, err := f.reach.Ask(ctx, observe.ExplainPath+"?"+t.Query)
	if err != nil {
		return err
	}
	if f.output == "json" {
		_, err := out.Write(raw)
		return err
	}
	if err := t.Print(out, raw); err != nil {
		return fmt.Errorf("printing the response of Berth: %w", err)
	}
	return nil
}
