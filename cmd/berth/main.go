// Command berth schedules the pods of a Kubernetes cluster and sizes it.
//
//	main.go        the commands, and the program's exit
//	kubectl.go     the binary as a plugin of kubectl
//	run*.go        berth run: flags, what is refused, and how the parts are put together
//	record.go      a recording of berth run
//	provider.go    berth provider: simulated node groups, and the check of a provider's server
//	prices.go      price files of the lists that clouds publish
//	migrate.go     values of the chart for what another program is started with
//	status.go, explain.go, shadow*.go
//	               what asks a running Berth or a file and prints the answer
//	simulate.go, replay.go, plan.go
//	               what needs no cluster: simulations, replays and single plans
//
// What must hold:
//   - here are flags and wiring only: whatever decides, waits or talks to somebody is a package;
//   - results go to standard output, and all else (logs, notes, progress, errors) to standard error,
//     so that the output of -o json can be piped;
//   - whatever can be refused without a cluster or a file is refused first, by the flag's name;
//   - the exit code is 2 after an error of arguments, flags or the files that they name, 3 when a simulation misses
//     what its scenario expects, and 1 after any other error. An interrupt is no error of berth run.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/berthproject/berth/core/compat"
	"github.com/berthproject/berth/internal/dump"
	"github.com/berthproject/berth/internal/page"
	"github.com/berthproject/berth/internal/term"
	"github.com/berthproject/berth/internal/top"
	"github.com/berthproject/berth/internal/version"
)

// An interrupt or SIGTERM ends the command's context; a second one does nothing more, since what is
// under way then is the orderly end.
func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cmd := commandFor(os.Args)
	if err := cmd.ExecuteContext(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %s\n", program(cmd), term.Printable(err))
		os.Exit(term.ExitCode(err))
	}
}

// root returns the command berth with all its commands. Cobra prints neither usage nor errors:
// main prints the error once, and usage would hide it.
func root() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "berth",
		Short: "Pod scheduler and node autoscaler for Kubernetes",
		Long: `Berth does the work of kube-scheduler and Cluster Autoscaler with one model of
the cluster and one implementation of the scheduling rules.`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	cmd.AddCommand(runCommand(), statusCommand(), top.Command(reachText), explainCommand(), simulateCommand(), planCommand(), page.Command(reachText), shadowCommand(), providerCommand(), pricesCommand(), migrateCommand(), dump.Command(program), versionCommand())
	term.Polish(cmd, versionText())
	return cmd
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  term.NoArguments,
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprint(cmd.OutOrStdout(), versionText())
		},
	}
}

// versionText returns what this program is, one fact a line.
func versionText() string { return version.Get().Text(compat.Names()) }

// program returns what the user has typed to call this program: berth or kubectl berth.
func program(cmd *cobra.Command) string { return cmd.Root().CommandPath() }
