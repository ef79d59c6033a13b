package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/berthproject/berth/core/autoscaler/mix"
	"github.com/berthproject/berth/internal/test/openbmix"
	"github.com/berthproject/berth/sim/trace/openb"
)

// This file buys nodes for lists of pods that are drawn from the trace (openbmix.Variant).

// bought is what a variant came to.
type bought struct {
	kind         string
	seed         uint64
	pods         int
	price, bound float64
}

// writeMoney prints the table: each kind of variant, with so many seeds that there are twice as many
// variants as seeds. It fails if a ratio is above what it may be at most.
func writeMoney(ctx context.Context, w io.Writer, trace *openb.Trace, o *options) error {
	kinds := openbmix.Variants
	fmt.Fprintf(w, "What cost pays for nodes for all pods at once, beside the least that any purchase costs\n\n")
	fmt.Fprintf(w, "| variant | seed | pods | price | bound | ratio |\n|---|---|---|---|---|---|\n")
	var above []string
	for i := range max(1, 2*o.seeds/len(kinds)) * len(kinds) {
		if err := ctx.Err(); err != nil {
			return err
		}
		b := buy(trace, kinds[i%len(kinds)], uint64(i/len(kinds)))
		fmt.Fprintf(w, "| %s | %d | %d | %.2f | %.2f | %.4f |\n", b.kind, b.seed, b.pods, b.price, b.bound, b.price/b.bound)
		if o.atMost > 0 && !(b.bound > 0 && b.price/b.bound <= o.atMost) {
			above = append(above, fmt.Sprintf("%s with seed %d", b.kind, b.seed))
		}
	}
	if len(above) > 0 {
		return fmt.Errorf("the price is more than %g times the bound of %s", o.atMost, strings.Join(above, ", "))
	}
	_, err := fmt.Fprintln(w)
	return err
}

func buy(trace *openb.Trace, kind string, seed uint64) bought {
	pods := openbmix.Variant(trace, kind, seed)
	s := mix.Solve(openbmix.Instance(trace.Nodes, pods))
	return bought{kind, seed, len(pods), s.Price, s.LowerBound}
}
