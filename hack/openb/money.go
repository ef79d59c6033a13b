package main

import (
	"context"
	"fmt"
	"io"

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
// variants as seeds.
func writeMoney(ctx context.Context, w io.Writer, trace *openb.Trace, seeds int) error {
	kinds := openbmix.Variants
	fmt.Fprintf(w, "What cost pays for nodes for all pods at once, beside the least that any purchase costs\n\n")
	fmt.Fprintf(w, "| variant | seed | pods | price | bound | ratio |\n|---|---|---|---|---|---|\n")
	for i := range max(1, 2*seeds/len(kinds)) * len(kinds) {
		if err := ctx.Err(); err != nil {
			return err
		}
		b := buy(trace, kinds[i%len(kinds)], uint64(i/len(kinds)))
		fmt.Fprintf(w, "| %s | %d | %d | %.2f | %.2f | %.4f |\n", b.kind, b.seed, b.pods, b.price, b.bound, b.price/b.bound)
	}
	_, err := fmt.Fprintln(w)
	return err
}

func buy(trace *openb.Trace, kind string, seed uint64) bought {
	pods := openbmix.Variant(trace, kind, seed)
	s := mix.Solve(openbmix.Instance(trace.Nodes, pods))
	return bought{kind, seed, len(pods), s.Price, s.LowerBound}
}
