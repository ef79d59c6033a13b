package version

import (
	"runtime/debug"
	"testing"
)

func TestOf(t *testing.T) {
	const commit = "0123456789abcdef0123456789abcdef01234567"
	build := func(version string, settings ...debug.BuildSetting) *debug.BuildInfo {
		return &debug.BuildInfo{GoVersion: "go1.26", Main: debug.Module{Version: version}, Settings: settings}
	}
	revision, at := debug.BuildSetting{Key: "vcs.revision", Value: commit}, debug.BuildSetting{Key: "vcs.time", Value: "2026-11-22T00:00:00Z"}
	clean, changed := debug.BuildSetting{Key: "vcs.modified", Value: "false"}, debug.BuildSetting{Key: "vcs.modified", Value: "true"}
	known := func(version string) Info {
		return Info{Version: version, Revision: commit, Time: "2026-11-22T00:00:00Z", Go: "go1.26"}
	}
	dirty := func(i Info) Info { i.Revision += "-dirty"; return i }
	for _, c := range []struct {
		name, release string
		build         *debug.BuildInfo
		want          Info
	}{
		{"a release", "1.2.3", build("(devel)", revision, at, clean), known("1.2.3")},
		{"an image of a commit", "1.2.3-dev+0123456", build("v0.0.0-20261122000000-0123456789ab", revision, at, clean), known("1.2.3-dev+0123456")},
		{"a work tree", "", build("(devel)", revision, at, clean), known("1.2.3-dev+0123456")},
		{"a work tree of which the Go command knows a version", "", build("v1.2.3-0.20261122000000-0123456789ab", revision, at, clean), known("1.2.3-dev+0123456")},
		{"a changed work tree", "", build("v0.0.0-20261122000000-0123456789ab+dirty", revision, at, changed), dirty(known("1.2.3-dev+0123456.dirty"))},
		{"a work tree at the tag", "", build("v1.2.3", revision, at, clean), known("1.2.3")},
		{"a changed work tree at the tag", "", build("v1.2.3+dirty", revision, at, changed), dirty(known("1.2.3-dev+0123456.dirty"))},
		{"a work tree at an older tag", "", build("v1.2.2", revision, at, clean), known("1.2.3-dev+0123456")},
		{"a work tree without notes of its commit", "", build("(devel)"), Info{Version: "1.2.3-dev", Go: "go1.26"}},
		{"a module at the tag", "", build("v1.2.3"), Info{Version: "1.2.3", Go: "go1.26"}},
		{"a module at a commit", "", build("v1.2.3-0.20261122000000-0123456789ab"), Info{Version: "1.2.3-dev+0123456", Go: "go1.26"}},
		{"nothing", "", nil, Info{Version: "1.2.3-dev"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := of(c.release, "1.2.3", c.build); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}
