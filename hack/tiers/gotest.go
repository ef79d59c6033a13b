package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"
)

// This file reads what go test -json prints. People see a line for each package, one for each
// top-level test that took long, and all that a failed test said; the log gets everything.

// event is a line of go test -json (go doc test2json).
// Test is "" for what is about the package as a whole, and has a "/" for a subtest.
type event struct {
	Action     string
	Package    string
	ImportPath string // of build output
	Test       string
	Output     string
	// Elapsed is in seconds; it comes with the end of a test or a package.
	Elapsed float64
}

// slow is from when on a test has a line of its own.
const slow = 10 * time.Second

// duration is how long a package or a test took.
type duration struct {
	pkg, test string
	took      time.Duration
}

// failure is a test that failed, or a package that did without one of its tests: test is "" then.
type failure struct {
	pkg, test string
	seed      string   // the flag that makes properties draw the same cases, "" if none was printed
	repeat    []string // the commands that the test itself names
}

// results is what one go test told, in the order in which it did. Subtests are among the failures and
// the skipped ones, but not among the tests that ran.
type results struct {
	ran      map[string]bool // top-level tests
	packages []duration
	tests    []duration
	failures []failure
	skipped  []string // each with its reason
}

var seedFlag = regexp.MustCompile(`-rapid\.seed=\d+`)

// goTest reads the output of a go test -json until its end. It writes what people see to out, and
// everything to log.
func goTest(in io.Reader, out, log io.Writer) (*results, error) {
	r := &reader{out: out, log: log, results: &results{ran: map[string]bool{}}, said: map[[2]string][]string{}, failed: map[string]bool{}}
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			r.line(line)
		}
		if err == io.EOF {
			return r.results, nil
		} else if err != nil {
			return r.results, err
		}
	}
}

// reader turns events into what people see. What a test says is held back until it has ended: that of
// a test that passes is dropped, and the lines of parallel tests don't mix.
type reader struct {
	out, log io.Writer
	*results
	said   map[[2]string][]string // output by package and test, until the test has ended
	failed map[string]bool        // packages in which a test failed
}

// line reads one line. Everything goes to the log, whatever becomes of it on the screen.
func (r *reader) line(line string) {
	var e event
	if json.Unmarshal([]byte(line), &e) != nil { // go's own messages, such as downloads
		fmt.Fprint(r.out, line)
		fmt.Fprint(r.log, line)
		return
	}
	fmt.Fprint(r.log, e.Output)
	key := [2]string{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		fmt.Fprint(r.out, e.Output)
	case "output":
		if e.Test == "" && strings.HasPrefix(e.Output, "ok  \t") {
			fmt.Fprint(r.out, "  ", e.Output)
			return
		}
		r.said[key] = append(r.said[key], e.Output)
	case "run":
		if !strings.Contains(e.Test, "/") {
			r.ran[e.Test] = true
		}
	case "pass", "skip", "fail":
		r.ended(e, r.said[key])
		delete(r.said, key)
	}
}

// ended records the end of a test, or of a package if the event has none. A package fails with each of
// its tests: it is a failure of its own only when none of them has failed, as when it doesn't
// compile.
func (r *reader) ended(e event, said []string) {
	took := time.Duration(e.Elapsed * float64(time.Second))
	switch {
	case e.Action == "fail":
		fmt.Fprint(r.out, strings.Join(said, ""))
		if e.Test != "" || !r.failed[e.Package] {
			text := strings.Join(said, "")
			r.failures = append(r.failures, failure{e.Package, e.Test, seedFlag.FindString(text), repeatsIn(text)})
		}
		r.failed[e.Package] = true
	case e.Action == "skip" && e.Test != "":
		r.skipped = append(r.skipped, fmt.Sprintf("%s in %s: %s", e.Test, e.Package, reason(said)))
	case took >= slow && e.Test != "" && !strings.Contains(e.Test, "/"):
		fmt.Fprintf(r.out, "    %-50s %s\n", e.Test, took.Round(time.Second))
	}
	switch {
	case e.Test == "":
		r.packages = append(r.packages, duration{pkg: e.Package, took: took})
	case !strings.Contains(e.Test, "/"):
		r.tests = append(r.tests, duration{e.Package, e.Test, took})
	}
}

// reason returns why a test was skipped: what it said last before "--- SKIP".
func reason(said []string) string {
	why := "it gives no reason"
	for _, line := range said {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "--- ") {
			why = line
		}
	}
	return why
}
