package term

import (
	"context"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1alpha1 "github.com/berthproject/berth/edge/api/v1alpha1"
)

// This file completes the arguments of berth explain: names come from Berth itself, so that who
// may ask it needs no other right.

// completeWithin is how long a shell waits for names.
const completeWithin = 5 * time.Second

// maxCompleted is how many names a shell is given.
const maxCompleted = "500"

// Completer completes the arguments of berth explain.
type Completer struct {
	// Open returns what answers, and what ends that.
	Open func(ctx context.Context) (Source, func(), error)
	// Namespace returns that of pods and pod groups given without one.
	Namespace func() (string, error)
}

// Complete returns what the next argument may be. Without an answer it is nothing: a shell has
// nowhere to show an error.
func (c Completer) Complete(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	const none = cobra.ShellCompDirectiveNoFileComp
	if len(args) == 0 {
		return []cobra.Completion{
			cobra.CompletionWithDesc("pod", "why a pod is where it is, or is pending"), cobra.CompletionWithDesc("pods", "all pending pods by reason"),
			cobra.CompletionWithDesc("podgroup", "where a pod group is, or why it is pending"), cobra.CompletionWithDesc("podgroups", "all pod groups"),
			cobra.CompletionWithDesc("node", "why a node is not removed"), cobra.CompletionWithDesc("nodes", "all nodes by reason"),
			cobra.CompletionWithDesc("group", "state of a node group"), cobra.CompletionWithDesc("groups", "all node groups"),
		}, none
	}
	if len(args) != 1 {
		return nil, none
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completeWithin)
	defer cancel()
	switch kind := kindOf(args[0]); kind {
	case nodeKind, groupKind:
		return c.names(ctx, kind, begun), none
	case podKind, podGroupKind:
		return c.namespaced(ctx, kind, begun), none
	}
	return nil, none
}

// namespaced returns objects of the namespace that is meant by their names, and those of others
// with their namespaces once a namespace is begun.
func (c Completer) namespaced(ctx context.Context, kind *kind, begun string) []cobra.Completion {
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

// listed is an item of any list.
type listed struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

func (x listed) String() string {
	if x.Namespace == "" {
		return x.Name
	}
	return x.Namespace + "/" + x.Name
}

// names returns the names of a kind that begin so, as many as Berth answers with.
func (c Completer) names(ctx context.Context, kind *kind, begun string) (out []string) {
	from, end, err := c.Open(ctx)
	if err != nil {
		return nil
	}
	defer end()
	path := kind.list
	if kind != groupKind { // whose list takes no query
		path += "?limit=" + maxCompleted + "&q=" + url.QueryEscape(begun)
	}
	list, err := Read[struct {
		v1alpha1.List
		Items []listed `json:"items"`
	}](ctx, from, path)
	if err != nil {
		return nil
	}
	for _, x := range list.Items {
		if strings.HasPrefix(x.String(), begun) {
			out = append(out, x.String())
		}
	}
	return out
}
