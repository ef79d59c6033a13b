package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/berthproject/berth/devcluster/storm"
)

// The storm of TestStorm. devcluster storm plays longer ones.
var (
	stormSeed    = flag.Uint64("storm.seed", 1, "seed of the plan of TestStorm")
	stormLasts   = flag.Duration("storm.lasts", 5*time.Minute, "how long TestStorm's misfortunes go on")
	stormDevices = flag.Bool("storm.devices", false, "whether pods of TestStorm claim devices")
	stormKinds   = flag.String("storm.only", "", "kinds of misfortunes of TestStorm, with commas; all by default")
)

// aStorm returns a storm of the program under test.
func aStorm(program string) storm.Options {
	return storm.Options{Berths: 3, Berth: program, Out: os.Stdout}
}

// TestStorm plays a bad day of five minutes: nothing is done twice, nothing is lost.
func TestStorm(t *testing.T) {
	o := aStorm(berth)
	var err error
	if o.Kinds, err = storm.Kinds(*stormKinds, *stormDevices); err != nil {
		t.Fatal(err)
	}
	o.Devices = *stormDevices
	o.Seed, o.Lasts, o.Out = *stormSeed, *stormLasts, &lines{t: t}
	if err := storm.Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

// TestStormLeavesNothingBehind interrupts a storm while the leader is stopped.
func TestStormLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	u := startUp(t, "storm", berth)
	eventually(t, "the leader to be stopped", func(context.Context) bool {
		select {
		case err := <-u.ended:
			t.Fatalf("ended before: %v\n%s", err, u.output())
		default:
		}
		return strings.Contains(u.output(), "goes on …")
	})
	u.stop()
}

// stormUntilInterrupted is the main function of the process that TestStormLeavesNothingBehind
// interrupts.
func stormUntilInterrupted(program string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	o := aStorm(program)
	o.Kinds, o.Lasts = []string{"leader-stop"}, time.Hour
	if err := storm.Run(ctx, o); !errors.Is(err, context.Canceled) {
		return fmt.Errorf("the storm ended with %w, want that it was interrupted", err)
	}
	return nil
}
