package compat_test

import (
	"strings"
	"testing"

	"github.com/berthproject/berth/core/compat"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]compat.Version{"1.36": compat.V36, "v1.37": compat.V37, "kube=1.36": compat.V36, "1.37.2": compat.V37} {
		if got, err := compat.Parse(text); err != nil || got != want {
			t.Errorf("Parse(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "1", "1.35", "1.38", "2.37", "137", "kube=", "etcd=1.37"} {
		if got, err := compat.Parse(text); err == nil || !strings.Contains(err.Error(), "1.36 and 1.37") {
			t.Errorf("Parse(%q) = %v, %v, want an error that names the versions", text, got, err)
		}
	}
}

func TestNearest(t *testing.T) {
	for minor, want := range map[uint]compat.Version{0: compat.V36, 33: compat.V36, 36: compat.V36, 37: compat.V37, 38: compat.V37, 300: compat.V37} {
		if got := compat.Nearest(minor); got != want {
			t.Errorf("Nearest(%d) = %v, want %v", minor, got, want)
		}
	}
}
