package storm

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/berthproject/berth/devcluster/controlplane"
)

// running returns a Berth whose process has logged something.
func running(t *testing.T, log string) *berth {
	t.Helper()
	b := &berth{log: filepath.Join(t.TempDir(), "log"), process: &controlplane.Process{}}
	if err := os.WriteFile(b.log, []byte(log), 0o600); err != nil {
		t.Fatal(err)
	}
	return b
}

// TestLeaderIsWhoBeganLast has one that stands by, two that lead, since one of them was stopped
// and doesn't know yet, and one that led before it ended.
func TestLeaderIsWhoBeganLast(t *testing.T) {
	const leading = `I1122 19:02:%s.543309   23564 leader.go:82] "leading" lease="kube-system/berth"` + "\n"
	at := func(seconds string) string {
		return "I1122 19:01:00.000000 1 a.go:1] \"hello\"\n" + fmt.Sprintf(leading, seconds)
	}
	standby, first, second, ended := running(t, `I1122 19:09:00.000000 1 leader.go:88] "standing by: another instance is the leader" leader="x"`), running(t, at("10")), running(t, at("15")), running(t, at("50"))
	ended.process = nil
	if got := leader([]*berth{standby, second, first, ended}); got != second {
		t.Errorf("the leader is %+v, want the one that began at 15", got)
	}
	if got := leader([]*berth{standby, ended}); got != nil {
		t.Errorf("the leader is %+v, want none", got)
	}
}
