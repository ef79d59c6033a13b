package provider_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/devices"
	"github.com/berthproject/berth/edge/provider"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestGroupsHaveTheDevicesOfTheFile reads groups while the file changes, has a mistake, and goes. What the
// provider declares counts less, driver by driver.
func TestGroupsHaveTheDevicesOfTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "devices.yaml")
	write := func(templates string) {
		t.Helper()
		if err := os.WriteFile(path, []byte("apiVersion: berth.dev/v1alpha1\nkind: NodeDeviceTemplates\ntemplates:\n"+templates), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	declare := func(driver string, count int) (out resourcev1.ResourceSlice) {
		out.Spec.Driver = driver
		for i := range count {
			out.Spec.Devices = append(out.Spec.Devices, testkit.Device(fmt.Sprint("d", i)).Device)
		}
		return out
	}
	var log bytes.Buffer
	inner := &groups{list: []nodegroup.Group{{ID: "a", Devices: []resourcev1.ResourceSlice{declare("gpu", 1), declare("nic", 2)}}, {ID: "b"}}}
	write("- {nodeGroups: [a], devices: [{driver: gpu, count: 8}]}")
	p := provider.Devise(inner, testkit.Must(provider.LoadDevices(path)), slog.New(slog.NewTextHandler(&log, nil)))
	has := func(want, logged string) {
		t.Helper()
		var got []string
		list, err := p.Groups(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range list {
			if x := devices.NewTemplate(g.Devices); x != nil {
				for _, d := range x.Drivers {
					got = append(got, fmt.Sprintf("%s %s=%d", g.ID, d.Driver, d.Devices))
				}
			}
		}
		if got := strings.Join(got, ", "); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if n := strings.Count(log.String(), "\n"); logged == "" && n > 0 || logged != "" && (n != 1 || !strings.Contains(log.String(), logged)) {
			t.Errorf("logged %q, want one line with %q", log.String(), logged)
		}
		log.Reset()
	}
	const first = "a gpu=8, a nic=2"
	has(first, "device templates")
	has(first, "")
	write("- {nodeGroups: [a, b], devices: [{driver: gpu, count: 4}]}")
	has("a gpu=4, a nic=2, b gpu=4", "device templates reloaded")
	write("- {nodeGroups: [a], devices: [{driver: gpu, count: none}]}")
	has("a gpu=4, a nic=2, b gpu=4", "the old ones hold")
	has("a gpu=4, a nic=2, b gpu=4", "")
	write("- {nodeGroups: [a], devices: [{driver: gpu, count: 8}]}")
	has(first, "device templates reloaded")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	has(first, "the old ones hold")
	if len(inner.list[0].Devices[0].Spec.Devices) != 1 {
		t.Error("what the provider declares was changed")
	}
	if p := provider.Devise(inner, nil, nil); p != nodegroup.Provider(inner) {
		t.Error("without a file the provider is another")
	}
}
