package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berthproject/berth/core/compat"
)

// TestFilesOfVersions: a file is read as kube-scheduler of the version reads it. "" stands for a file that
// it takes, and another text for a part of the error.
func TestFilesOfVersions(t *testing.T) {
	const (
		noPoint  = `unknown field "profiles[0].plugins.podGroupPostFilter"`
		noFilter = `plugin "NodeName" does not extend preFilter plugin; its points are filter`
	)
	for _, c := range []struct{ text, in36, in37 string }{
		{inProfile("plugins: {podGroupPostFilter: {enabled: [{name: DefaultPreemption}]}}"), noPoint, ""},
		{inProfile("plugins: {podGroupPostFilter: {disabled: [{name: DynamicResources}]}}"), noPoint, ""},
		{inProfile("plugins: {podGroupPostFilter: {}}"), noPoint, ""},
		{inProfile("plugins: {podGroupPostFilter: {enabled: [{name: NodeName}]}}"), noPoint, `plugin "NodeName" does not extend podGroupPostFilter plugin`},
		{inProfile("plugins: {preFilter: {enabled: [{name: NodeName}]}}"), noFilter, ""},
		{inProfile("plugins: {preFilter: {enabled: [{name: NodeUnschedulable}, {name: TaintToleration}]}}"), `plugin "TaintToleration" does not extend preFilter plugin`, ""},
		{inProfile("plugins: {preFilter: {disabled: [{name: TaintToleration}]}}"), "", ""},
		{inProfile("plugins: {preFilter: {disabled: [{name: NodeUnschedulable}]}}"), "", ""},
		{inProfile("plugins: {preFilter: {disabled: [{name: NodeName}]}}"), "", ""},
		{withArgs("DynamicResources", "filterTimeout: 0s, bindingTimeout: 1s"), "", ""},
		{withArgs("DynamicResources", "filterTimeout: -1s"), "args.filterTimeout: Invalid value: \"-1s\": must be zero or positive", "args.filterTimeout: Invalid value: \"-1s\": must be zero or positive"},
		{withArgs("DynamicResources", "bindingTimeout: 999ms"), "args.bindingTimeout: Invalid value: \"999ms\": must be at least 1 second", "args.bindingTimeout: Invalid value: \"999ms\": must be at least 1 second"},
	} {
		for v, want := range map[compat.Version]string{compat.V36: c.in36, compat.V37: c.in37} {
			s, err := Parse([]byte(c.text), v)
			switch {
			case want == "" && err != nil:
				t.Errorf("%s: %q is refused: %v", v, c.text, err)
			case want == "" && s.Version != v:
				t.Errorf("%s: %q is read for %s", v, c.text, s.Version)
			case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
				t.Errorf("%s: %q:\n got %v\nwant …%s…", v, c.text, err, want)
			}
		}
	}
}

// TestShortFilterTimeout: kube-scheduler takes any filterTimeout. A time that would let an allocator evaluate nothing
// becomes what an ordinary node needs.
func TestShortFilterTimeout(t *testing.T) {
	for timeout, want := range map[string]int{"1ns": 100, "100us": 100, "20ms": 100, "1s": 5000, "0s": 24 * 60 * 60 * 5000} {
		s, err := Parse([]byte(withArgs("DynamicResources", "filterTimeout: "+timeout)), compat.Newest)
		if err != nil {
			t.Errorf("%s: %v", timeout, err)
		} else if got := s.Profiles[0].DeviceSteps; got != want {
			t.Errorf("%s: %d steps, want %d", timeout, got, want)
		}
	}
}

// TestEmulatedVersion has the values that kube-scheduler takes, and others.
func TestEmulatedVersion(t *testing.T) {
	for _, c := range []struct {
		given []string
		want  compat.Version // 0 for the API server's
		err   string
	}{
		{nil, 0, ""},
		{[]string{""}, 0, ""},
		{[]string{"1.36"}, compat.V36, ""},
		{[]string{"kube=1.37"}, compat.V37, ""},
		{[]string{"1.36", "kube=1.36"}, compat.V36, ""},
		{[]string{"1.36", "1.37"}, compat.V36, "it is 1.36 already; give one version"},
		{[]string{"1.35"}, 0, `"1.35" is not a version whose scheduling rules Berth implements; those are 1.36 and 1.37`},
		{[]string{"wardle=1.37"}, 0, "those are 1.36 and 1.37"},
		{[]string{"newest"}, 0, "those are 1.36 and 1.37"},
	} {
		var e EmulatedVersion
		var err error
		for _, text := range c.given {
			if err == nil {
				err = e.Set(text)
			}
		}
		if got := e.Or(0); got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%q: %v and %v, want %v and %q", c.given, got, err, c.want, c.err)
		}
	}
}

// TestAPointIsFoundInAnyProfile, and in a text that is none of a configuration there is nothing to find.
func TestAPointIsFoundInAnyProfile(t *testing.T) {
	for text, want := range map[string]string{
		head + "profiles: [{schedulerName: a}, {schedulerName: b, plugins: {podGroupPostFilter: {}}}]\n": "profiles[1].plugins.podGroupPostFilter",
		head + "profiles: [{schedulerName: a}]\n":                                                        "",
		"- nothing\n": "",
	} {
		if got := unknownPoint([]byte(text), compat.V36); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestAConfigurationFileIsReadOnce: what is asked of it later is answered by what it said first.
func TestAConfigurationFileIsReadOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	write := func(name string) {
		if err := os.WriteFile(path, []byte(head+"profiles: [{schedulerName: "+name+"}]\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f := File{Path: path}
	if _, err := f.For(Rules{Version: compat.Newest}); err == nil || !strings.Contains(err.Error(), "reading the scheduler configuration: open "+path) {
		t.Errorf("without the file: %v", err)
	}
	for _, name := range []string{"first", "second"} {
		write(name)
		for _, v := range compat.Versions() {
			if s, err := f.For(Rules{Version: v}); err != nil || s.Profiles[0].SchedulerName != "first" || s.Version != v {
				t.Errorf("with %s in the file, %s reads %+v, %v", name, v, s.Profiles, err)
			}
		}
		if text, err := f.Text(); err != nil || !strings.Contains(text, "first") {
			t.Errorf("with %s in the file its text is %q, %v", name, text, err)
		}
	}
}
