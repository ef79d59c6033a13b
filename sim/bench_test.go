package sim_test

import (
	"context"
	"os"
	"testing"

	"github.com/berthproject/berth/sim"
	"github.com/berthproject/berth/sim/scenario"
)

func TestTmp(t *testing.T) {
	runs, err := scenario.Load([]string{os.Getenv("SCEN")})
	if err != nil {
		t.Fatal(err)
	}
	w, err := sim.New(runs[0], sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := w.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Log(s.Digest, s.Decisions, s.VirtualSeconds)
}
