package version

import (
	"runtime/debug"
	"testing"
)

func TestOf(t *testing.T) {
	tree := &debug.BuildInfo{GoVersion: "go1.26", Main: debug.Module{Version: "(devel)"}, Settings: []debug.BuildSetting{
		{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: "0123456789abcdef0123456789abcdef01234567"}, {Key: "vcs.time", Value: "2026-11-22T00:00:00Z"}, {Key: "vcs.modified", Value: "true"},
	}}
	dirty := Info{Revision: "0123456789abcdef0123456789abcdef01234567-dirty", Time: "2026-11-22T00:00:00Z", Go: "go1.26"}
	named := func(i Info, version string) Info { i.Version = version; return i }
	for _, c := range []struct {
		name, release string
		build         *debug.BuildInfo
		want          Info
	}{
		{"a release", "v1.2.3", tree, named(dirty, "v1.2.3")},
		{"a changed work tree", "", tree, named(dirty, "devel-0123456789ab-dirty")},
		{"a module", "", &debug.BuildInfo{GoVersion: "go1.26", Main: debug.Module{Version: "v1.2.3"}}, Info{Version: "v1.2.3", Go: "go1.26"}},
		{"a work tree without notes of its commit", "", &debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, Info{Version: "devel"}},
		{"nothing", "", nil, Info{Version: "devel"}},
	} {
		if got := of(c.release, c.build); got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
}
