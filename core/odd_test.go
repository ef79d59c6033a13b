package core_test

import (
	"encoding/json"
	"flag"
	"runtime/debug"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core/door"
	"github.com/berthproject/berth/internal/test/testkit"
)

// odd is by how many values each value of the objects is replaced, all of OddValues when 0. All
// take a quarter of an hour.
var odd = flag.Int("odd", 1, "by how many odd values each value of the objects is replaced; 0 for all")

// sample is of how many odd objects one is shown with -short.
const sample = 7

// TestAnyValueOfAnObjectMayBeOdd shows objects of each kind in which every field is set, one of
// them to something odd.
func TestAnyValueOfAnObjectMayBeOdd(t *testing.T) {
	tried, shown := 0, 0
	texts := []string{"n0"} // a name that others go by
	if *odd == 0 {
		texts = append(texts, "claim", "7")
	}
	for _, kind := range objectKinds {
		for _, text := range texts {
			o, ok := kind().(metav1.Object)
			if !ok {
				continue // a Scalable, which no API object is
			}
			testkit.Fill(o, text)
			raw, err := json.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			var document any
			if err := json.Unmarshal(raw, &document); err != nil {
				t.Fatal(err)
			}
			show := func() {
				if tried++; testing.Short() && tried%sample != 0 {
					return
				}
				raw, err := json.Marshal(document)
				if err != nil {
					t.Fatal(err)
				}
				o := kind()
				if door.Read(raw, o) != nil {
					return
				}
				defer func() {
					if p := recover(); p != nil {
						t.Fatalf("a panic: %v\n%s\n%s", p, debug.Stack(), raw)
					}
				}()
				shown++
				newFuzzed(t).run(false, inputOf(o))
			}
			show()
			testkit.Oddly(document, *odd, show)
		}
	}
	if shown < 2000 && !testing.Short() || shown < 2000/sample {
		t.Errorf("%d objects were shown; want more", shown)
	}
	t.Logf("%d shown", shown)
}
