package config

import (
	"slices"
	"strings"
	"testing"

	"github.com/berthproject/berth/core/compat"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins"
)

// TestVolumeBindingScores reads profiles for both versions: VolumeBinding's score, and its shape, are
// behind a feature gate that is on by default since 1.37.
func TestVolumeBindingScores(t *testing.T) {
	shape := []framework.ShapePoint{{Utilization: 10, Score: 1}, {Utilization: 50, Score: 10}}
	for _, c := range []struct {
		name, text string
		version    compat.Version
		weight     int64
		shape      []framework.ShapePoint
		refused    string // part of the error
	}{
		{"no shape", inProfile(""), compat.V37, 1, nil, ""},
		{"no shape", inProfile(""), compat.V36, 0, nil, ""},
		{"a weight", inProfile("plugins: {score: {enabled: [{name: VolumeBinding, weight: 7}]}}"), compat.V37, 7, nil, ""},
		{"a weight", inProfile("plugins: {score: {enabled: [{name: VolumeBinding, weight: 7}]}}"), compat.V36, 0, nil, ""},
		{"no score", inProfile("plugins: {score: {disabled: [{name: VolumeBinding}]}}"), compat.V37, 0, nil, ""},
		{"a shape", withArgs("VolumeBinding", "shape: [{utilization: 10, score: 1}, {utilization: 50, score: 10}]"), compat.V37, 1, shape, ""},
		{"a shape", withArgs("VolumeBinding", "shape: [{utilization: 10, score: 1}, {utilization: 50, score: 10}]"), compat.V36, 0, nil,
			"args.shape: Invalid value: [{\"utilization\":10,\"score\":1},{\"utilization\":50,\"score\":10}]: unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring"},
		{"an empty shape", withArgs("VolumeBinding", "shape: []"), compat.V37, 1, nil, ""},
		{"an empty shape", withArgs("VolumeBinding", "shape: []"), compat.V36, 0, nil, "unexpected field `shape`"},
	} {
		t.Run(c.name+" in "+c.version.String(), func(t *testing.T) {
			cfg, err := Parse([]byte(c.text), c.version)
			if c.refused != "" {
				if err == nil || !strings.Contains(err.Error(), c.refused) {
					t.Errorf("got %v\nwant …%s…", err, c.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			p := cfg.Profiles[0]
			i := slices.IndexFunc(p.Rules, func(r plugins.Rule) bool { return r.Name == "VolumeBinding" })
			if got := p.Rules[i].Weight; got != c.weight || !slices.Equal(p.VolumeShape, c.shape) {
				t.Errorf("weight %d, shape %v, want %d, %v", got, p.VolumeShape, c.weight, c.shape)
			}
		})
	}
}

// TestStorageGates: the feature gates of storage reach the plugins, in each version and with and
// without a file.
func TestStorageGates(t *testing.T) {
	shape := withArgs("VolumeBinding", "shape: [{utilization: 0, score: 1}]")
	for _, v := range compat.Versions() {
		for _, on := range []bool{false, true} {
			r := Rules{Version: v, Gates: map[string]bool{storageCapacityScoring: on, volumeLimitScaling: on}}
			o := DefaultFor(r).Profiles[0]
			if o.StorageCapacityScoring == nil || *o.StorageCapacityScoring != on || o.VolumeLimitScaling == nil || *o.VolumeLimitScaling != on {
				t.Errorf("%s: gates %t reach the plugins as %v and %v", v, on, o.StorageCapacityScoring, o.VolumeLimitScaling)
			}
			if _, err := ParseFor([]byte(shape), r); (err == nil) != on {
				t.Errorf("%s: with the gate %t a shape gives the error %v", v, on, err)
			}
		}
		o := DefaultFor(Rules{Version: v}).Profiles[0]
		if o.StorageCapacityScoring != nil || o.VolumeLimitScaling != nil {
			t.Errorf("%s: without gates the plugins get %v and %v, want nil", v, o.StorageCapacityScoring, o.VolumeLimitScaling)
		}
	}
}
