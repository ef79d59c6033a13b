package main

import (
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berthproject/berth/internal/dump"
	"github.com/berthproject/berth/internal/page"
	"github.com/berthproject/berth/internal/term"
	"github.com/berthproject/berth/internal/top"
)

// This file makes the binary a plugin of kubectl: called as kubectl-berth it has the commands that
// ask a running Berth, and called as kubectl_complete-berth it answers kubectl's completion.
// kubectl finds both by their names.

// Names of the binary as a plugin.
const (
	pluginName     = "kubectl-berth"
	completionName = "kubectl_complete-berth"
)

// commandFor returns the command for the arguments of a process; args[0] is the name that the
// process was called by.
func commandFor(args []string) *cobra.Command {
	name := ""
	if len(args) > 0 {
		name, args = strings.TrimSuffix(filepath.Base(args[0]), ".exe"), args[1:]
	}
	cmd := root()
	switch name {
	case pluginName:
		cmd = plugin()
	case completionName:
		cmd, args = plugin(), append([]string{cobra.ShellCompRequestCmd}, args...)
	}
	cmd.SetArgs(args)
	return cmd
}

// plugin returns the command kubectl berth. It has what a user of a cluster may want; what runs Berth, or
// simulates, is the binary's under its own name.
func plugin() *cobra.Command {
	cmd := &cobra.Command{
		Use:         "berth",
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl berth"},
		Short:       "Show what Berth does in a cluster, and why",
		Long: `Berth schedules the pods of this cluster and scales its node groups. These commands
query the leader about what it is doing, and why.`,
		SilenceUsage:      true,
		SilenceErrors:     true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true}, // kubectl has one
	}
	cmd.AddCommand(statusCommand(), top.Command(reachText), explainCommand(), page.Command(reachText), shadowCommand(), dump.Command(program), versionCommand())
	term.Polish(cmd, versionText())
	return cmd
}
