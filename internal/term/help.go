package term

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
)

// This file prints help as kube-scheduler does: flags in sections, wrapped to the terminal's width.

// AddSections adds the flags of sections to those of a command, in the order of the sections.
func AddSections(commandLine *pflag.FlagSet, sections cliflag.NamedFlagSets) {
	commandLine.SortFlags = false
	for _, name := range sections.Order {
		sections.FlagSets[name].SortFlags = false
		commandLine.AddFlagSet(sections.FlagSets[name])
	}
}

// SetSections adds the flags of sections to a command, and lists them by section in its help.
func SetSections(cmd *cobra.Command, sections cliflag.NamedFlagSets) {
	AddSections(cmd.Flags(), sections)
	cmd.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		out := cmd.OutOrStdout()
		PrintHelp(out, cmd, sections, Width(out))
	})
}

// PrintHelp prints the help of a command. A width of 0 wraps nothing.
func PrintHelp(out io.Writer, cmd *cobra.Command, sections cliflag.NamedFlagSets, width int) {
	for _, name := range []string{"help", "version"} { // cobra adds them late
		if f := cmd.Flags().Lookup(name); f != nil && sections.FlagSet("global").Lookup(name) == nil {
			sections.FlagSet("global").AddFlag(f)
		}
	}
	fmt.Fprintf(out, "%s\n\nUsage:\n  %s\n\nExamples:\n%s\n", cmd.Long, cmd.UseLine(), cmd.Example)
	cliflag.PrintSections(out, sections, width)
}
