package replay_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berthproject/berth/core/compat"
	"github.com/berthproject/berth/sim/replay"
	"github.com/berthproject/berth/sim/scenario"
)

// since137 is a configuration that kube-scheduler reads since 1.37, as the text of a header.
const since137 = `"schedulerConfig":"apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles: [{plugins: {podGroupPostFilter: {}}}]"`

// TestARecordingIsPlayedByItsVersion: what is read only since 1.37 tells which rules are followed.
func TestARecordingIsPlayedByItsVersion(t *testing.T) {
	const (
		unread = `unknown field "profiles[0].plugins.podGroupPostFilter", which kube-scheduler 1.36 does not have`
		gate   = `featureGates: the recording follows NotYetKnown, which this version of Berth does not honour; replay it with a version of Berth that does`
		later  = `kubernetes: "1.99" is not a version whose scheduling rules Berth implements; those are 1.36 and 1.37; replay it with a version of Berth that does`
	)
	config := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(config, []byte("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles: [{plugins: {podGroupPostFilter: {}}}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	warning := func(recorded, played string) string {
		return "the recording follows the rules of Kubernetes " + recorded + ", and this replay those of " + played
	}
	for _, c := range []struct {
		name, header string
		policy       replay.Policy
		warning, err string
	}{
		{"of 1.37", `"kubernetes":"1.37",` + since137, replay.Policy{}, "", ""},
		{"of 1.36", `"kubernetes":"1.36",` + since137, replay.Policy{}, "", unread},
		{"of before there were two", since137, replay.Policy{}, "", unread},
		{"of before there were two, under its version", `"seed":1`, replay.Policy{Version: compat.V36}, "", ""},
		{"of before there were two, under 1.37", since137, replay.Policy{Version: compat.V37}, warning("1.36", "1.37"), ""},
		{"of 1.37, under 1.36", `"kubernetes":"1.37",` + since137, replay.Policy{Version: compat.V36}, "", unread},
		{"of 1.37, under a file", `"kubernetes":"1.37"`, replay.Policy{Scheduler: config}, "", ""},
		{"of 1.36, under a file", `"kubernetes":"1.36"`, replay.Policy{Scheduler: config}, "", unread},
		{"of a later version", `"kubernetes":"1.99"`, replay.Policy{}, "", later},
		{"of a later version, under 1.36", `"kubernetes":"1.99"`, replay.Policy{Version: compat.V36}, warning("1.99", "1.36"), ""},
		{"with a gate of a later Berth", `"kubernetes":"1.37","featureGates":{"NotYetKnown":true,"StorageCapacityScoring":false}`, replay.Policy{}, "", gate},
		{"with a gate of a later Berth, under 1.37", `"kubernetes":"1.37","featureGates":{"NotYetKnown":true}`, replay.Policy{Version: compat.V37},
			"the recording follows the feature gates NotYetKnown, which this replay does not", ""},
		{"with a gate of a later Berth, under 1.36", `"kubernetes":"1.37","featureGates":{"NotYetKnown":true}`, replay.Policy{Version: compat.V36},
			warning("1.37", "1.36") + "; the recording follows the feature gates NotYetKnown, which this replay does not", ""},
		{"of a later version, under a file", `"kubernetes":"1.99"`, replay.Policy{Scheduler: config}, warning("1.99", "1.37"), ""},
	} {
		path := filepath.Join(t.TempDir(), "recording")
		if err := os.WriteFile(path, []byte(`{"berthRecording":1,`+c.header+"}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := replay.Play(t.Context(), path, c.policy)
		switch {
		case c.err != "":
			if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s:\n got %v\nwant …%s…", c.name, err, c.err)
			}
			if other := errors.Is(err, replay.ErrOtherRules); other != (c.err == later || c.err == gate) {
				t.Errorf("%s: is ErrOtherRules: %t", c.name, other)
			}
		case err != nil:
			t.Errorf("%s: %v", c.name, err)
		case r.Warning != c.warning || r.Report().Warning != c.warning:
			t.Errorf("%s: the warning is %q, and in the report %q; want %q", c.name, r.Warning, r.Report().Warning, c.warning)
		}
	}
}

// TestARecordingHasItsVersion and replays with the same decisions, for every version.
func TestARecordingHasItsVersion(t *testing.T) {
	for _, v := range compat.Versions() {
		path, _ := recordUnder(t, 7, 1<<30, scenario.Policy{EmulatedVersion: v.String()}, nil)
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if header, _, _ := strings.Cut(string(raw), "\n"); !strings.Contains(header, `"kubernetes":"`+v.String()+`"`) {
			t.Errorf("under %s the header is %.200s", v, header)
		}
		r, err := replay.Play(t.Context(), path, replay.Policy{})
		if err != nil || r.Digest != r.Recorded || r.Warning != "" {
			t.Errorf("under %s: %v, digest %s, recorded %s, warning %q", v, err, r.Digest, r.Recorded, r.Warning)
		}
	}
}
