// Command berth schedules the pods of a Kubernetes cluster and sizes it.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/berthproject/berth/internal/version"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cmd := commandFor(os.Args)
	if err := cmd.ExecuteContext(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", program(cmd), err)
		os.Exit(1)
	}
}

func root() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "berth",
		Short: "Pod scheduler and node autoscaler for Kubernetes",
		Long: `Berth does the work of kube-scheduler and Cluster Autoscaler with one model of
the cluster and one implementation of the scheduling rules.`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	hasVersion(cmd)
	cmd.AddCommand(runCommand(), statusCommand(), topCommand(), explainCommand(), simulateCommand(), planCommand(), shadowCommand(), providerCommand(), versionCommand())
	return cmd
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprint(cmd.OutOrStdout(), versionText())
		},
	}
}

// hasVersion gives a command the flag --version, which prints what berth version does.
func hasVersion(cmd *cobra.Command) {
	cmd.Version = versionText()
	cmd.SetVersionTemplate("{{.Version}}")
	cmd.InitDefaultVersionFlag()
}

// versionText returns what this program is, one fact a line.
func versionText() string {
	v := version.Get()
	text := fmt.Sprintf("berth %s (rules of kube-scheduler 1.36)\n", v.Version)
	for _, line := range []struct{ what, value string }{{"commit", v.Revision}, {"committed", v.Time}, {"built with", v.Go}} {
		if line.value != "" {
			text += line.what + " " + line.value + "\n"
		}
	}
	return text
}

// program returns what the user has typed to call this program: berth or kubectl berth.
func program(cmd *cobra.Command) string { return cmd.Root().CommandPath() }
