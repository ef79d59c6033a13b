package script_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/berthproject/berth/internal/test/testkit/script"
)

// This file specifies which arguments of commands are read and refused, with the messages.

// recorder is a testing.TB that keeps the message of Fatalf.
type recorder struct {
	testing.TB
	failure string
}

func (r *recorder) Helper() {}

func (r *recorder) Fatalf(format string, values ...any) {
	r.failure = fmt.Sprintf(format, values...)
	panic(r)
}

// failure returns the message with which a command ends the test, "" if it doesn't.
func failure(t *testing.T, line string, read func(*script.Args)) string {
	t.Helper()
	cmd, given, err := datadriven.ParseLine(line)
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{TB: t}
	func() {
		defer func() {
			if p := recover(); p != nil && p != any(r) {
				panic(p)
			}
		}()
		a := script.NewArgs(r, &datadriven.TestData{Pos: "script.txt:7", Cmd: cmd, CmdArgs: given})
		read(a)
		a.Done()
	}()
	return r.failure
}

// command reads one argument of each form.
func command(a *script.Args) {
	a.Name()
	a.Flag("flag")
	a.List("list")
	a.String("text", "")
	a.OneOf("kind", "a", "b")
	a.Int("int", 0)
	a.Duration("duration", time.Second)
	a.Quantity("quantity", "1")
}

func TestArgumentsAreRefused(t *testing.T) {
	for line, want := range map[string]string{
		"cmd":                    "script.txt:7: cmd: the first argument must be a name",
		"cmd text=a":             "cmd: the first argument must be a name",
		"cmd n txt=a":            "cmd: takes no argument txt=a, or not twice; it knows NAME flag list=… text=… kind=… int=… duration=… quantity=…",
		"cmd n m":                "cmd: takes no argument m",
		"cmd n text=a text=b":    "cmd: takes no argument text=b, or not twice",
		"cmd n flag=yes":         "cmd: flag takes no value",
		"cmd n text":             "cmd: text takes one value",
		"cmd n text=(a,b)":       "cmd: text takes one value",
		"cmd n list":             "cmd: list takes a value",
		"cmd n kind=c":           `cmd: kind is "c"; it may be a, b`,
		"cmd n int=two":          `cmd: int: strconv.Atoi: parsing "two"`,
		"cmd n duration=5":       `cmd: duration: time: missing unit`,
		"cmd n quantity=1x":      `cmd: quantity: quantities must match`,
		"cmd n text=a flag":      "",
		"cmd flag flag":          "", // the name is equal to a key
		"cmd n list=(a,b) int=3": "",
	} {
		got := failure(t, line, command)
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s\n got: %s\nwant: %s", line, got, want)
		}
	}
	if got, want := failure(t, "cmd", func(a *script.Args) { a.Required("by") }), "cmd: wants by=…"; !strings.Contains(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestArgumentsAreRead(t *testing.T) {
	got := failure(t, "cmd n flag list=(a,b) none=() text=t kind=b int=3 duration=1m quantity=2Gi", func(a *script.Args) {
		if name := a.Name(); name != "n" {
			t.Errorf("name is %q, want n", name)
		}
		if !a.Flag("flag") || a.Flag("other") {
			t.Error("want flag and not other")
		}
		if list := a.List("list"); !slices.Equal(list, []string{"a", "b"}) {
			t.Errorf("list is %q, want a and b", list)
		}
		if none, absent := a.List("none"), a.List("absent"); none == nil || len(none) != 0 || absent != nil {
			t.Errorf("none is %#v, want an empty list, and absent %#v, want nil", none, absent)
		}
		for _, c := range []struct{ got, want any }{
			{a.String("text", ""), "t"}, {a.String("absent", "def"), "def"}, {a.OneOf("kind", "a", "b"), "b"}, {a.OneOf("absent", "a", "b"), "a"},
			{a.Int("int", 1), 3}, {a.Int("absent", 1), 1}, {a.Duration("duration", time.Second), time.Minute},
			{a.Duration("absent", time.Second), time.Second}, {a.Quantity("quantity", "1"), "2Gi"}, {a.Quantity("absent", "500m"), "500m"},
		} {
			if c.got != c.want {
				t.Errorf("got %v, want %v", c.got, c.want)
			}
		}
	})
	if got != "" {
		t.Errorf("refused: %s", got)
	}
}
