package main

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

// complete returns what the next argument may be. Without an answer it is nothing: a shell has
// nowhere to show an error.
func (f *explainFlags) complete(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	const none = cobra.ShellCompDirectiveNoFileComp
	if len(args) == 0 {
		return []cobra.Completion{
			cobra.CompletionWithDesc("pod", "why a pod is where it is, or is pending"), cobra.CompletionWithDesc("node", "why a node is not removed"),
			cobra.CompletionWithDesc("nodes", "all nodes by reason"), cobra.CompletionWithDesc("group", "state of a node group"),
		}, none
	}
	if len(args) != 1 {
		return nil, none
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completeWithin)
	defer cancel()
	switch args[0] {
	case "node", "group":
		names, _ := f.names(ctx, args[0]+"s", begun)
		return names, none
	case "pod":
		return f.completePod(ctx, begun)
	}
	return nil, none
}

// completePod returns pods of the namespace that is meant by their names, and those of others
// with their namespaces once a namespace is begun.
func (f *explainFlags) completePod(ctx context.Context, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	const none = cobra.ShellCompDirectiveNoFileComp
	if strings.Contains(begun, "/") {
		names, _ := f.names(ctx, "pods", begun)
		return names, none
	}
	namespace, err := f.reach.PodNamespace()
	if err != nil {
		return nil, none
	}
	names, _ := f.names(ctx, "pods", namespace+"/"+begun)
	for i := range names {
		names[i] = strings.TrimPrefix(names[i], namespace+"/")
	}
	if len(names) > 0 {
		return names, none
	}
	others, _ := f.names(ctx, "pods", begun)
	return others, none
}

// names returns the names of a kind that begin so, as many as Berth answers with. Only the leader
// answers.
func (f *explainFlags) names(ctx context.Context, kind, begun string) ([]string, error) {
	raw, err := f.reach.Ask(ctx, observe.ExplainPath+"?names="+kind+"&prefix="+url.QueryEscape(begun))
	if err != nil {
		return nil, err
	}
	answer := observe.Names{}
	return answer.Names, json.Unmarshal(raw, &answer)
}
