package term

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/term"
)

// This file is a terminal that is drawn on.

// ctrlC is what a terminal in raw mode sends for Ctrl-C.
const ctrlC = 3

// screen is a terminal that is drawn on: in raw mode, on its alternate screen, without a cursor. One
// goroutine draws; another one, which keys starts, only reads what is typed.
type screen struct {
	in            *os.File // nil when the input is no terminal
	out           *os.File
	before        *term.State // of in
	width, height int
	palette       palette
}

// openScreen takes a terminal over. Its caller must call restore, also after an error of its own. When
// openScreen itself fails before it has drawn, the terminal is as it was.
func openScreen(in io.Reader, out *os.File) (*screen, error) {
	s := &screen{out: out, palette: paletteFor(out)}
	if f, ok := in.(*os.File); ok && isTerminal(f) {
		before, err := term.MakeRaw(int(f.Fd())) //nolint:gosec // file descriptors are small
		if err != nil {
			return nil, fmt.Errorf("putting the terminal into raw mode: %w; use --once", err)
		}
		s.in, s.before = f, before
	}
	s.resized()
	if s.width <= 0 || s.height <= 0 {
		s.restore()
		return nil, errors.New("the size of the terminal is unknown; use --once")
	}
	_, err := fmt.Fprint(out, "\x1b[?1049h\x1b[?25l")
	return s, err
}

// restore leaves the terminal as it was.
func (s *screen) restore() {
	_, _ = fmt.Fprint(s.out, "\x1b[?25h\x1b[?1049l")
	if s.before != nil {
		_ = term.Restore(int(s.in.Fd()), s.before) //nolint:gosec // file descriptors are small
	}
}

// resized reads the size, and reports whether it has changed.
func (s *screen) resized() bool {
	width, height, err := term.GetSize(int(s.out.Fd())) //nolint:gosec // file descriptors are small
	if err != nil || width == s.width && height == s.height {
		return false
	}
	s.width, s.height = width, height
	return true
}

// draw replaces what is shown, in one write: each line overwrites the one before it and clears its rest,
// so that nothing flickers.
func (s *screen) draw(lines []line) error {
	text := "\x1b[H"
	for i, l := range lines {
		if i > 0 {
			text += "\r\n"
		}
		text += l.text(s.palette, s.width) + "\x1b[K"
	}
	_, err := io.WriteString(s.out, text+"\x1b[J")
	return err
}

// keys delivers what is typed, as long as the process lives: nothing ends a read from a terminal.
func (s *screen) keys() <-chan byte {
	out := make(chan byte)
	if s.in == nil {
		return out
	}
	go func() {
		key := make([]byte, 1)
		for {
			if n, err := s.in.Read(key); err != nil || n == 0 {
				return
			}
			out <- key[0]
		}
	}()
	return out
}
