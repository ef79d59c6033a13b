package script

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// States prints the states that a machine describes after each command of a script: those
// that changed since the command before it. A command that prints none has changed none.
type States struct {
	last map[string][]string // the lines of the command before, by subject
	wake time.Time           // of the command before
	all  bool                // the next Text prints all states
}

// ShowAll makes the next Text print all states. It is for the command "states".
func (s *States) ShowAll() { s.all = true }

// Text returns the lines that describe a subject which changed since the call before, and "over"
// for each subject that isn't described any more. A line begins with its subject, as in
// "node n1: draining" or "the home of pod p is kept". The wake is printed as the time from
// now, when the instant changed or is none any more.
func (s *States) Text(lines []string, now, wake time.Time) string {
	var out strings.Builder
	states := map[string][]string{}
	for _, line := range lines {
		states[subject(line)] = append(states[subject(line)], line)
	}
	for _, line := range lines {
		if is := subject(line); s.all || !slices.Equal(states[is], s.last[is]) {
			fmt.Fprintf(&out, "now %s\n", line)
		}
	}
	var over []string
	for is := range s.last {
		if states[is] == nil {
			over = append(over, is)
		}
	}
	slices.Sort(over)
	for _, is := range over {
		fmt.Fprintf(&out, "over: %s\n", is)
	}
	switch {
	case !wake.IsZero() && (s.all || !wake.Equal(s.wake)):
		fmt.Fprintf(&out, "wake in %s\n", wake.Sub(now))
	case wake.IsZero() && !s.wake.IsZero():
		out.WriteString("no wake\n")
	}
	s.last, s.wake, s.all = states, wake, false
	return out.String()
}

// subject returns what a line describes: the words before the first verb or colon.
func subject(line string) string {
	end := len(line)
	for _, verb := range []string{": ", " is ", " was ", " has ", " in the state "} {
		if i := strings.Index(line, verb); i >= 0 {
			end = min(end, i)
		}
	}
	return line[:end]
}
