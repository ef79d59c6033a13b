//go:build glpk

package mix_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/autoscaler/mix"
)

// This file puts small problems to glpsol, the solver of the GNU Linear Programming Kit, which shares
// nothing with this package: make nightly ONLY=solver, or go test -tags glpk.

// TestPropertyAnIndependentSolverAgrees solves the relaxation and the problem itself with glpsol. The
// lower bound is the relaxation's optimum or slightly less, and never above the cheapest purchase;
// Solve's own purchase never costs less than that.
func TestPropertyAnIndependentSolverAgrees(t *testing.T) {
	solver, err := exec.LookPath("glpsol")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "problem.lp")
	problems, optimal, price, least := 0, 0, 0.0, 0.0
	rapid.Check(t, func(t *rapid.T) {
		classes, groups := drawInstance(t, 5, 4, 12)
		for i, n := range mix.Solve(classes, groups).Held {
			classes[i].Pods = n
		}
		s := mix.Solve(classes, groups)
		optimum := solveProgram(t, solver, file, purchaseProgram(classes, groups, s.Held))
		if s.LowerBound > optimum*(1+1e-6)+1e-9 {
			t.Fatalf("the lower bound is %v, and the cheapest purchase costs %v", s.LowerBound, optimum)
		}
		if s.Price < optimum*(1-1e-6)-1e-9 {
			t.Fatalf("the price is %v, and the cheapest purchase costs %v", s.Price, optimum)
		}
		problems, price, least = problems+1, price+s.Price, least+optimum
		if s.Price <= optimum*(1+1e-6) {
			optimal++
		}
		for i, n := range s.Held {
			if n < classes[i].Pods {
				return // the bound is for fewer pods than the relaxation's
			}
		}
		relaxed := solveProgram(t, solver, file, relaxationProgram(classes, groups))
		if s.LowerBound > relaxed*(1+1e-6)+1e-9 || s.LowerBound < relaxed*0.999-1e-9 {
			t.Fatalf("the lower bound is %v, want the optimum %v of the relaxation or slightly less", s.LowerBound, relaxed)
		}
	})
	t.Logf("%d problems: %d purchases are the cheapest, all together cost %.4f times the cheapest", problems, optimal, price/least)
}

// program is a linear program in the format of CPLEX: minimise costs subject to rows. No
// variable is below 0.
type program struct {
	costs []string
	rows  []string
	whole []string // variables that are integers
}

func (p *program) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "Minimize\n cost: %s\nSubject To\n", strings.Join(p.costs, " + "))
	for _, row := range p.rows {
		fmt.Fprintf(&out, " %s\n", row)
	}
	if len(p.whole) > 0 {
		fmt.Fprintf(&out, "General\n %s\n", strings.Join(p.whole, "\n "))
	}
	return out.String() + "End\n"
}

// relaxationProgram is the relaxation with pods and nodes in fractions, and a constraint for each
// resource and each pair of a class and a group.
func relaxationProgram(classes []mix.Class, groups []mix.Group) *program {
	p := &program{}
	sums := make([][]string, len(classes))
	for j, g := range groups {
		node := fmt.Sprintf("n%d", j)
		uses := make([][]string, len(g.Allocatable))
		for i, c := range classes {
			if !slices.Contains(c.Takes, j) || holds(classes, groups, i, j) == 0 {
				continue
			}
			pods := fmt.Sprintf("f%d_%d", i, j)
			sums[i] = append(sums[i], pods)
			p.rows = append(p.rows, fmt.Sprintf("%s - %d %s <= 0", pods, holds(classes, groups, i, j), node))
			for k := range uses {
				uses[k] = append(uses[k], fmt.Sprintf("%d %s", c.Request[k], pods))
			}
		}
		for k, use := range uses {
			if len(use) > 0 {
				p.rows = append(p.rows, fmt.Sprintf("%s - %d %s <= 0", strings.Join(use, " + "), g.Allocatable[k], node))
			}
		}
		p.costs = append(p.costs, fmt.Sprintf("%v %s", g.Price, node))
		p.rows = append(p.rows, fmt.Sprintf("%s <= %d", node, g.Room))
	}
	for i, sum := range sums {
		if len(sum) > 0 {
			p.rows = append(p.rows, fmt.Sprintf("%s = %d", strings.Join(sum, " + "), classes[i].Pods))
		}
	}
	return p
}

// purchaseProgram chooses how many nodes to buy of each way to fill one, in whole numbers.
func purchaseProgram(classes []mix.Class, groups []mix.Group, held []int) *program {
	p := &program{}
	sums := make([][]string, len(classes))
	for j, g := range groups {
		var nodes []string
		for _, pods := range fillings(classes, groups, j, held) {
			node := fmt.Sprintf("n%d_%d", j, len(nodes))
			nodes = append(nodes, node)
			for _, c := range pods {
				sums[c.Class] = append(sums[c.Class], fmt.Sprintf("%d %s", c.Pods, node))
			}
			p.costs = append(p.costs, fmt.Sprintf("%v %s", g.Price, node))
		}
		if len(nodes) > 0 {
			p.rows = append(p.rows, fmt.Sprintf("%s <= %d", strings.Join(nodes, " + "), g.Room))
		}
		p.whole = append(p.whole, nodes...)
	}
	for i, n := range held {
		if n > 0 {
			p.rows = append(p.rows, fmt.Sprintf("%s >= %d", strings.Join(sums[i], " + "), n))
		}
	}
	return p
}

// fillings returns all ways to fill a node of a group with at most so many pods of each class, but
// those that leave room for one more.
func fillings(classes []mix.Class, groups []mix.Group, j int, most []int) (all [][]mix.Count) {
	var fill func(i int, pods []mix.Count)
	fill = func(i int, pods []mix.Count) {
		if i < len(classes) {
			fill(i+1, pods)
			for n := 1; n <= most[i]; n++ {
				more := append(slices.Clone(pods), mix.Count{Class: i, Pods: n})
				if refuses(classes, groups, j, more) != "" {
					break
				}
				fill(i+1, more)
			}
			return
		}
		for i := range classes {
			more := slices.Clone(pods)
			at := slices.IndexFunc(more, func(c mix.Count) bool { return c.Class == i })
			if at < 0 {
				at, more = len(more), append(more, mix.Count{Class: i})
			}
			if more[at].Pods++; more[at].Pods <= most[i] && refuses(classes, groups, j, more) == "" {
				return
			}
		}
		if len(pods) > 0 {
			all = append(all, pods)
		}
	}
	fill(0, nil)
	return all
}

// solveProgram returns the optimum that the solver finds, 0 for a program without variables.
func solveProgram(t *rapid.T, solver, file string, p *program) float64 {
	if len(p.costs) == 0 {
		return 0
	}
	if err := os.WriteFile(file, []byte(p.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(solver, "--lp", file, "--write", file+".solution").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, p, out)
	}
	raw, err := os.ReadFile(file + ".solution")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		// s, then bas, rows, columns and twice whether it is feasible; or mip, rows, columns and
		// whether it is optimal; then the optimum.
		f := strings.Fields(line)
		if len(f) == 7 && f[0] == "s" && f[1] == "bas" && f[4] == "f" && f[5] == "f" || len(f) == 6 && f[0] == "s" && f[1] == "mip" && f[4] == "o" {
			optimum, err := strconv.ParseFloat(f[len(f)-1], 64)
			if err != nil {
				t.Fatal(err)
			}
			return optimum
		}
	}
	t.Fatalf("the solver finds no optimum of\n%s\n%s", p, raw)
	return 0
}
