// Package page is berth ui: the web page of a running Berth, of a simulation or of a file, served to the user's
// browser on this machine (edge/loopback).
//
//	command.go  the command
//	offline.go  an API that answers from a file
//	source.go   what answers a question of the command line: a running Berth, or a file
//	film.go     a run at any of its times
//	played.go   what is seen of a run, and what came of it
//	report.go   the page as one file, with its answers inside
//	explain.go  objects of a run as JSON
package page

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"time"

	"github.com/spf13/cobra"
	cliflag "k8s.io/component-base/cli/flag"

	"github.com/berthproject/berth/edge/loopback"
	"github.com/berthproject/berth/edge/reach"
	"github.com/berthproject/berth/internal/term"
)

// options are the flags of berth ui.
type options struct {
	from    Source
	compare []string
	port    int
	browser bool
	// again is how often a command that waits for a leader tries again, and says what it waits for.
	again time.Duration
}

// Command returns berth ui. reached says in its help how a running Berth is reached.
func Command(reached string) *cobra.Command {
	o := &options{again: 10 * time.Second}
	cmd := &cobra.Command{
		Use:   "ui",
		Short: "Show the web page of a live cluster, of a simulation or of a recording",
		Long: `Ui serves Berth's web page on 127.0.0.1 and opens it in a browser. What the page shows
it reads from the leader, with your own rights. The address that is printed works once;
the page can be read, and changes nothing. With --file it shows a file, and needs no
cluster: what a scenario or a dump of objects comes to in a simulation, a recording of
berth run --record, or a report saved with berth shadow report -o json. The page has a
control for the time of a run, and --compare lays other runs over it.

` + reached,
		Example: `  kubectl berth ui
  berth ui --context staging --local-port 8888
  berth ui --file examples/explain/staying.yaml
  berth ui --file recording.jsonl
  berth ui --file examples/night-batch/capped.yaml --compare examples/night-batch/baked.yaml`,
		Args:              term.NoArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	var s cliflag.NamedFlagSets
	fs := s.FlagSet("misc")
	fs.StringArrayVar(&o.compare, "compare", nil, "path to a scenario, a dump or a recording to lay over that of --file; may be repeated")
	fs.IntVar(&o.port, "local-port", 0, "port on 127.0.0.1 to serve the page on (default: any that is free)")
	fs.BoolVar(&o.browser, "browser", true, "open the page in a browser")
	o.from.Register(fs, s.FlagSet("connection"))
	term.SetSections(cmd, s)
	o.from.Complete(cmd)
	return cmd
}

// run serves until the context ends. What can't be shown is an error before anything is served.
func (o *options) run(ctx context.Context, out, log io.Writer) error {
	if o.port < 0 || o.port > 65535 {
		return term.Usage(fmt.Errorf("--local-port is %d; it must be from 1 to 65535, or 0 for any that is free", o.port))
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	answers, err := o.answers(ctx, log, fail)
	if err != nil {
		return err
	}
	server, err := loopback.Listen(ctx, o.port, answers)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s\n", server.Address())
	fmt.Fprintln(log, "The address works once, in one browser. Ctrl-C ends it.")
	if o.browser && term.Width(out) > 0 {
		show(server.Address())
	}
	if err := server.Serve(ctx); err != nil {
		return err
	}
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) { // Ctrl-C is no error
		return err
	}
	return nil
}

// answers returns the API that the page reads. fail is called when waiting for a leader has become hopeless.
func (o *options) answers(ctx context.Context, log io.Writer, fail func(error)) (http.Handler, error) {
	if len(o.compare) > 0 && o.from.File == "" {
		return nil, term.Usage(errors.New("--compare lays runs over that of --file; give --file, too"))
	}
	if err := o.from.Validate(); err != nil {
		return nil, term.Usage(err)
	}
	if o.from.File != "" {
		h, err := Offline(ctx, o.from.File, o.compare, log)
		return h, term.FileError(ctx, err)
	}
	leader := o.from.Forwarder(ctx)
	switch err := leader.Connect(ctx); {
	case reach.NoLeader(err):
		fmt.Fprintf(log, "%v\nThe page waits until an instance leads.\n", err)
		go func() {
			if err := await(ctx, leader.Connect, time.NewTicker(o.again), log); err != nil {
				fail(err)
			}
		}()
	case err != nil:
		return nil, err
	}
	context.AfterFunc(ctx, leader.Close)
	return leader, nil
}

// maxUnauthenticated is how many consecutive answers 401 end a command that waits.
const maxUnauthenticated = 3

// await tries again with each tick, and says why that failed, until it succeeds or ctx ends. It returns an error that
// waiting can't end, or the last of maxUnauthenticated answers 401. It stops the ticker.
func await(ctx context.Context, connect func(context.Context) error, again *time.Ticker, log io.Writer) error {
	defer again.Stop()
	unauthenticated := 0 // consecutive answers 401
	for began := time.Now(); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-again.C:
		}
		err := connect(ctx)
		if unauthenticated++; !reach.Unauthenticated(err) {
			unauthenticated = 0
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			fmt.Fprintln(log, "Berth answers now.")
			return nil
		case reach.Hopeless(err):
			return err
		case unauthenticated == maxUnauthenticated:
			return err
		}
		fmt.Fprintf(log, "Still waiting after %s: %v\n", time.Since(began).Round(time.Second), err)
	}
}

// show opens an address in the user's browser, if there is one: the address is printed, too.
func show(address string) {
	program := []string{"xdg-open"}
	switch runtime.GOOS {
	case "darwin":
		program = []string{"open"}
	case "windows":
		program = []string{"rundll32", "url.dll,FileProtocolHandler"}
	default:
		if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
			return
		}
	}
	cmd := exec.Command(program[0], append(program[1:], address)...)
	if cmd.Start() == nil {
		go func() { _ = cmd.Wait() }()
	}
}
