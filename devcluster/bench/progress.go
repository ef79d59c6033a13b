package bench

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"
)

// progress says how far a benchmark is: on a terminal in one line that each text replaces,
// elsewhere, as in a pipe or a file, in lines of their own, seldom.
type progress struct {
	to       io.Writer
	terminal bool
	now      func() time.Time
	width    int       // of the text that stands in the line
	last     time.Time // when a line of its own was written
}

// betweenLines is how long no further line is written where there is no terminal.
const betweenLines = 10 * time.Second

func newProgress(to io.Writer) *progress {
	f, ok := to.(*os.File)
	return &progress{to: to, terminal: ok && term.IsTerminal(int(f.Fd())), now: time.Now}
}

// show says how far it is; an empty text clears the line.
func (p *progress) show(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if p.terminal {
		fmt.Fprintf(p.to, "\r%-*s", p.width, text)
		if p.width = len(text); text == "" {
			fmt.Fprint(p.to, "\r")
		}
		return
	}
	if now := p.now(); text != "" && now.Sub(p.last) >= betweenLines {
		p.last = now
		fmt.Fprintln(p.to, text)
	}
}
