package main

import (
	"io"
	"reflect"
	"strings"
	"testing"
)

// told is what a go test -json prints of a package with one test of each kind: one that passes and
// took long, one that is skipped, and one whose subtest fails.
const told = `{"Action":"start","Package":"m/p"}
{"Action":"run","Package":"m/p","Test":"TestLong"}
{"Action":"output","Package":"m/p","Test":"TestLong","Output":"=== RUN   TestLong\n"}
{"Action":"output","Package":"m/p","Test":"TestLong","Output":"chatter\n"}
{"Action":"pass","Package":"m/p","Test":"TestLong","Elapsed":12}
{"Action":"run","Package":"m/p","Test":"TestSkipped"}
{"Action":"output","Package":"m/p","Test":"TestSkipped","Output":"=== RUN   TestSkipped\n"}
{"Action":"output","Package":"m/p","Test":"TestSkipped","Output":"    a_test.go:1: needs a browser\n"}
{"Action":"output","Package":"m/p","Test":"TestSkipped","Output":"--- SKIP: TestSkipped (0.00s)\n"}
{"Action":"skip","Package":"m/p","Test":"TestSkipped","Elapsed":0}
{"Action":"run","Package":"m/p","Test":"TestBad"}
{"Action":"run","Package":"m/p","Test":"TestBad/one"}
{"Action":"output","Package":"m/p","Test":"TestBad/one","Output":"got 1, want 2 (or -rapid.seed=77)\n"}
{"Action":"fail","Package":"m/p","Test":"TestBad/one","Elapsed":1}
{"Action":"output","Package":"m/p","Test":"TestBad","Output":"--- FAIL: TestBad\n"}
{"Action":"fail","Package":"m/p","Test":"TestBad","Elapsed":1}
{"Action":"output","Package":"m/p","Output":"FAIL\n"}
{"Action":"fail","Package":"m/p","Elapsed":14}
`

func TestPeopleSeeWhatFailedAndWhatTookLong(t *testing.T) {
	var out strings.Builder
	r, err := goTest(strings.NewReader(told), &out, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"TestLong", "12s", "got 1, want 2", "--- FAIL: TestBad"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("people don't see %q in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "chatter") {
		t.Errorf("people see what a test said that passed:\n%s", out.String())
	}
	if want := []string{"TestSkipped in m/p: a_test.go:1: needs a browser"}; !reflect.DeepEqual(r.skipped, want) {
		t.Errorf("skipped is %q, want %q", r.skipped, want)
	}
	if want := []failure{{pkg: "m/p", test: "TestBad/one", seed: "-rapid.seed=77"}, {pkg: "m/p", test: "TestBad"}}; !reflect.DeepEqual(r.failures, want) {
		t.Errorf("failures are %+v, want %+v", r.failures, want)
	}
}

// TestAPackageFailsWithoutATest: it doesn't compile, or it panics outside of tests.
func TestAPackageFailsWithoutATest(t *testing.T) {
	var out, log strings.Builder
	r, err := goTest(strings.NewReader(`{"ImportPath":"m/p","Action":"build-output","Output":"a.go:1: undefined: x\n"}
{"Action":"output","Package":"m/p","Output":"FAIL\tm/p [build failed]\n"}
{"Action":"fail","Package":"m/p","Elapsed":0}
go: downloading something
`), &out, &log)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.failures) != 1 || r.failures[0].pkg != "m/p" || r.failures[0].test != "" {
		t.Errorf("failures are %+v, want the package", r.failures)
	}
	for _, line := range []string{"a.go:1: undefined: x\n", "FAIL\tm/p [build failed]\n", "go: downloading something\n"} {
		if !strings.Contains(out.String(), line) || !strings.Contains(log.String(), line) {
			t.Errorf("people see\n%s\nand the log has\n%s\nwant %q in both", out.String(), log.String(), line)
		}
	}
}
