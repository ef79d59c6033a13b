package soak
import ("testing";"fmt";"os";"github.com/berthproject/berth/engine")
func TestTmp(t *testing.T) {
	h := record(t, 3)
	for i, o := range []engine.Options{{}, {Unclassed: true}} {
		f,_ := os.Create(fmt.Sprint("/tmp/v",i))
		for _, d := range h.play(t, o, false, true) { fmt.Fprintln(f, d) }
	}
}
