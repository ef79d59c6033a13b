// Package version says which Berth this is.
//
// The file VERSION at the root of the repository is the only place that names a version. A release is
// built from the commit with its tag and has that version; every other build is a development build
// before it:
//
//	0.1.0                    the commit with the tag v0.1.0
//	0.1.0-dev+0ac021c        another commit
//	0.1.0-dev+0ac021c.dirty  another commit, with files changed
//	0.1.0-dev                a commit that isn't known
package version

import (
	"fmt"
	"regexp"
	"runtime/debug"

	"github.com/berthproject/berth"
)

// release is set for releases and images by the linker, to what hack/version prints: -X
// github.com/berthproject/berth/internal/version.release=0.1.0 (Makefile, .ko.yaml).
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
	return of(release, berth.Version(), build)
}

// Text returns what this Berth is, one fact a line, with the versions whose rules it has.
func (i Info) Text(rules string) string {
	text := fmt.Sprintf("berth %s (rules of kube-scheduler %s)\n", i.Version, rules)
	for _, line := range []struct{ what, value string }{{"commit", i.Revision}, {"committed", i.Time}, {"built with", i.Go}} {
		if line.value != "" {
			text += line.what + " " + line.value + "\n"
		}
	}
	return text
}

// shortCommit is how many digits of a commit a version has.
const shortCommit = 7

// pseudo matches the version of a module at a commit without a tag, with that commit.
var pseudo = regexp.MustCompile(`[.-]\d{14}-([0-9a-f]{12})(\+dirty)?$`)

// of returns what the linker's name, the file VERSION and the Go command's notes say; the first and
// the last may be missing. The Go command notes the version of a module that was installed by its
// name, and the commit of a work tree.
func of(release, next string, build *debug.BuildInfo) Info {
	var i Info
	var commit, main string
	dirty := false
	if build != nil {
		i.Go, main = build.GoVersion, build.Main.Version
		for _, s := range build.Settings {
			switch s.Key {
			case "vcs.revision":
				i.Revision, commit = s.Value, s.Value
			case "vcs.time":
				i.Time = s.Value
			case "vcs.modified":
				dirty = s.Value == "true"
			}
		}
		if dirty {
			i.Revision += "-dirty"
		}
	}
	if m := pseudo.FindStringSubmatch(main); m != nil && commit == "" {
		commit = m[1]
	}
	switch {
	case release != "":
		i.Version = release
	case main == "v"+next:
		i.Version = next
	default:
		i.Version = development(next, commit, dirty)
	}
	return i
}

// development returns the version of a build before the next release.
func development(next, commit string, dirty bool) string {
	v := next + "-dev"
	if commit == "" {
		return v
	}
	v += "+" + commit[:min(len(commit), shortCommit)]
	if dirty {
		v += ".dirty"
	}
	return v
}
