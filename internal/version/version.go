// Package version says which Berth this is.
package version

import (
	"cmp"
	"runtime/debug"
	"strings"
)

// release is set for releases and images by the linker: -X
// github.com/berthproject/berth/internal/version.release=v1.2.3 (Makefile, .ko.yaml).
var release string

// Info is what is known of how a Berth was built. Fields are "" when that isn't known.
type Info struct {
	Version  string // never ""
	Revision string // of the source, a commit, with "-dirty" behind it when files were changed
	Time     string // of that commit, RFC 3339
	Go       string // version of the compiler
}

// Get returns what is known of this Berth.
func Get() Info {
	build, _ := debug.ReadBuildInfo()
	return of(release, build)
}

// of returns what a release's name and the Go command's notes say; either may be missing. A
// Berth that was installed as a module has that module's version, one that was built from a
// work tree its commit.
func of(release string, build *debug.BuildInfo) Info {
	var i Info
	if build != nil {
		i.Go = build.GoVersion
		dirty := false
		for _, s := range build.Settings {
			switch s.Key {
			case "vcs.revision":
				i.Revision = s.Value
			case "vcs.time":
				i.Time = s.Value
			case "vcs.modified":
				dirty = s.Value == "true"
			}
		}
		if dirty {
			i.Revision += "-dirty"
		}
		if v := build.Main.Version; v != "(devel)" {
			i.Version = v
		}
	}
	i.Version = cmp.Or(release, i.Version)
	if i.Version == "" {
		commit, changed, _ := strings.Cut(i.Revision, "-")
		i.Version = "devel"
		for _, part := range []string{commit[:min(len(commit), 12)], changed} {
			if part != "" {
				i.Version += "-" + part
			}
		}
	}
	return i
}
