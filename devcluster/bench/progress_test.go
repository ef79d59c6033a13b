package bench

import (
	"bytes"
	"testing"
	"time"
)

// TestProgress has a benchmark say how far it is each second: on a terminal in one line, in a pipe
// in whole lines without a carriage return, one every ten seconds.
func TestProgress(t *testing.T) {
	for _, x := range []struct {
		name     string
		terminal bool
		want     string
	}{
		{"terminal", true, "\r10 of 12\r11 of 12\r12 of 12\r        \r"},
		{"pipe", false, "10 of 12\n"},
	} {
		var out bytes.Buffer
		p := newProgress(&out)
		if p.terminal {
			t.Error("a buffer is taken for a terminal")
		}
		now := time.Unix(1000, 0)
		p.terminal, p.now = x.terminal, func() time.Time { return now }
		for i := 10; i <= 12; i++ {
			p.show("%d of 12", i)
			now = now.Add(time.Second)
		}
		p.show("")
		if out.String() != x.want {
			t.Errorf("%s: got %q, want %q", x.name, out.String(), x.want)
		}
	}
	var out bytes.Buffer
	p, now := newProgress(&out), time.Unix(1000, 0)
	p.now = func() time.Time { return now }
	for i := range 21 {
		p.show("%d", i)
		now = now.Add(time.Second)
	}
	if want := "0\n10\n20\n"; out.String() != want {
		t.Errorf("21 seconds in a pipe: got %q, want %q", out.String(), want)
	}
}
