package engine

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/berthproject/berth/internal/test/testkit"
)

// checkTree compares a tree with the list of its slots' keys, and looks at its levels.
func checkTree(t rapid.TB, tr *tree, want []scoreKey, skipped func(int) bool) {
	t.Helper()
	highest := func(skip func(int) bool) (key scoreKey, slot int) {
		for i, k := range want {
			if k > key && !skip(i) {
				key, slot = k, i
			}
		}
		return key, slot
	}
	none := func(int) bool { return false }
	key, slot := highest(none)
	if tr.n != len(want) {
		t.Fatalf("the tree has %d slots, want %d", tr.n, len(want))
	}
	for i, k := range want {
		if tr.at(i) != k {
			t.Fatalf("slot %d has key %d, want %d", i, tr.at(i), k)
		}
	}
	if got := tr.top(); got != key {
		t.Fatalf("top is %d, want %d of %v", got, key, want)
	}
	if k, s := tr.best(); k != key || key != 0 && s != slot {
		t.Fatalf("best is %d in slot %d, want %d in slot %d of %v", k, s, key, slot, want)
	}
	key, slot = highest(skipped)
	if k, s := tr.bestExcept(skipped); k != key || key != 0 && s != slot {
		t.Fatalf("best except some is %d in slot %d, want %d in slot %d of %v", k, s, key, slot, want)
	}
	for k := range tr.levels {
		if last := k == len(tr.levels)-1; (len(tr.levels[k]) <= fanout) != last {
			t.Fatalf("level %d of %d has %d entries; only the last has at most %d", k, len(tr.levels), len(tr.levels[k]), fanout)
		}
		if k == 0 {
			continue
		}
		for i, got := range tr.levels[k] {
			if want := slices.Max(tr.levels[k-1][i*fanout : min((i+1)*fanout, len(tr.levels[k-1]))]); got != want {
				t.Fatalf("entry %d of level %d is %d, want the maximum below it, %d", i, k, got, want)
			}
		}
	}
}

// TestPropertyTreeFilledAtOnceEqualsAListOfKeys makes trees of keys that are all there at once, in memory that
// another tree may have used before.
func TestPropertyTreeFilledAtOnceEqualsAListOfKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var tr tree
		for range rapid.IntRange(0, 300).Draw(t, "slots before") {
			tr.add(1)
		}
		for tr.n > 0 {
			tr.pop()
		}
		list := []scoreKey{}
		for range rapid.IntRange(0, 5000).Draw(t, "slots") {
			list = append(list, scoreKey(testkit.Uniform(t, 40, "key")))
		}
		copy(tr.sized(len(list)), list)
		tr.fill()
		even := func(slot int) bool { return slot%2 == 0 }
		checkTree(t, &tr, list, even)
		tr.add(7)
		checkTree(t, &tr, append(list, 7), even)
	})
}

func TestPropertyTreeEqualsAListOfKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var tr tree
		var list []scoreKey
		key := rapid.Custom(func(t *rapid.T) scoreKey { return scoreKey(rapid.IntRange(0, 40).Draw(t, "key")) })
		grow := rapid.SampledFrom([]int{0, 10, 250, 270}).Draw(t, "slots at first") // about one block, and one block of blocks
		for range grow {
			k := key.Draw(t, "key")
			tr.add(k)
			list = append(list, k)
		}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch k := rapid.IntRange(0, 6).Draw(t, "step"); {
			case k <= 1 || len(list) == 0:
				k := key.Draw(t, "key")
				tr.add(k)
				list = append(list, k)
			case k <= 3:
				tr.pop()
				list = list[:len(list)-1]
			case k <= 5:
				i, k := rapid.IntRange(0, len(list)-1).Draw(t, "slot"), key.Draw(t, "key")
				tr.set(i, k)
				list[i] = k
			default:
				slots := rapid.SliceOfN(rapid.IntRange(0, len(list)-1), 1, 40).Draw(t, "slots")
				for _, i := range slots {
					list[i] = key.Draw(t, "key")
					tr.write(i, list[i])
				}
				for _, i := range slots {
					tr.lift(i)
				}
			}
			modulus := rapid.IntRange(1, 4).Draw(t, "skip each")
			checkTree(t, &tr, list, func(i int) bool { return i%modulus == 0 })
		}
	})
}

// Where levels begin and end: a block of one, of fanout, and of fanout blocks.
func TestTreeGrowsAndShrinksLevelByLevel(t *testing.T) {
	var tr tree
	var list []scoreKey
	none := func(int) bool { return false }
	checkTree(t, &tr, list, none)
	for i := range fanout*fanout + 2 {
		k := scoreKey(i%7 + 1)
		tr.add(k)
		list = append(list, k)
		checkTree(t, &tr, list, none)
	}
	if len(tr.levels) != 3 {
		t.Errorf("%d slots take %d levels, want 3", len(list), len(tr.levels))
	}
	for len(list) > 0 {
		tr.pop()
		list = list[:len(list)-1]
		checkTree(t, &tr, list, none)
	}
}

// bestExcept must not look into blocks that can't win: each node that stands out would
// cost a pass over its whole group otherwise.
func TestBestExceptLooksOnlyWhereItCanWin(t *testing.T) {
	var tr tree
	for i := range 10 * fanout {
		tr.add(scoreKey(1000 - i))
	}
	asked := 0
	tr.bestExcept(func(slot int) bool { asked++; return slot == 0 })
	if asked != 2 {
		t.Errorf("asked about %d slots, want the best and the second", asked)
	}
}
