package controlplane

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// interrupted is the exit code of a program that was interrupted, as shells have it for Ctrl-C.
const interrupted = 130

// RunCommand runs a program of the dev cluster, and returns its exit code. Its context ends when the user presses Ctrl-C,
// closes the terminal or sends SIGTERM; the program then cleans up, whatever else is sent.
func RunCommand(cmd *cobra.Command) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if len(os.Args) > 1 && os.Args[1] == "component" {
		stop() // components set up their own signal handling
		ctx = context.Background()
	}
	silent := context.AfterFunc(ctx, func() { fmt.Fprintln(os.Stderr, "\nstopping …") })
	defer silent()
	err := cmd.ExecuteContext(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		fmt.Fprintf(os.Stderr, "%s: interrupted; every process has ended\n", cmd.Name())
		return interrupted
	case err != nil:
		fmt.Fprintf(os.Stderr, "%s: %v\n", cmd.Name(), err)
		return 1
	}
	return 0
}
