package term

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berthproject/berth/edge/observe"
)

// This file completes the arguments of berth explain: names come from Berth itself, so that who
// may ask it needs no other right.

// completeWithin is how long a shell waits for names.
const completeWithin = 5 * time.Second

// Completer completes the arguments of berth explain.
type Completer struct {
	// Ask queries a running Berth. Only the leader answers.
	Ask func(ctx context.Context, path string) ([]byte, error)
	// Namespace returns that of pods and pod groups given without one.
	Namespace func() (string, error)
}

// Complete returns what the next argument may be. Without an answer it is nothing: a shell has
// nowhere to show an error.
func (c Completer) Complete(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	const none = cobra.ShellCompDirectiveNoFileComp
	if len(args) == 0 {
		return []cobra.Completion{
			cobra.CompletionWithDesc("pod", "why a pod is where it is, or is pending"), cobra.CompletionWithDesc("podgroup", "where a pod group is, or why it is pending"),
			cobra.CompletionWithDesc("node", "why a node is not removed"), cobra.CompletionWithDesc("nodes", "all nodes by reason"), cobra.CompletionWithDesc("group", "state of a node group"),
		}, none
	}
	if len(args) != 1 {
		return nil, none
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completeWithin)
	defer cancel()
	switch args[0] {
	case "node", "group":
		return c.names(ctx, args[0]+"s", begun), none
	case "pod", "podgroup":
		return c.namespaced(ctx, args[0]+"s", begun), none
	}
	return nil, none
}

// namespaced returns objects of the namespace that is meant by their names, and those of others
// with their namespaces once a namespace is begun.
func (c Completer) namespaced(ctx context.Context, kind, begun string) []cobra.Completion {
	if strings.Contains(begun, "/") {
		return c.names(ctx, kind, begun)
	}
	namespace, err := c.Namespace()
	if err != nil {
		return nil
	}
	names := c.names(ctx, kind, namespace+"/"+begun)
	for i := range names {
		names[i] = strings.TrimPrefix(names[i], namespace+"/")
	}
	if len(names) > 0 {
		return names
	}
	return c.names(ctx, kind, begun)
}

// names returns the names of a kind that begin so, as many as Berth answers with.
func (c Completer) names(ctx context.Context, kind, begun string) []string {
	raw, err := c.Ask(ctx, observe.ExplainPath+"?names="+kind+"&prefix="+url.QueryEscape(begun))
	if err != nil {
		return nil
	}
	answer := observe.Names{}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return nil
	}
	return answer.Names
}
