package clusterapi

import (
	"fmt"
	"strings"
	"testing"
)

// manyGroups are MachineDeployments with ten Machines each.
func manyGroups(n int) string {
	var b strings.Builder
	for g := range n {
		name := fmt.Sprintf("d%03d", g)
		b.WriteString(deployment(name, 10))
		for i := range 10 {
			b.WriteString(machineOf("MachineSet/"+name+"-set", fmt.Sprintf("%s-%d", name, i), fmt.Sprintf("cloud://%d/%d", g, i), ""))
		}
	}
	return b.String()
}

// BenchmarkGroups reads 200 groups of ten Machines each.
func BenchmarkGroups(b *testing.B) {
	m := newManagement(b, Config{}, "v1beta2", resources, manyGroups(200))
	if list, err := m.provider.Groups(b.Context()); err != nil || len(list) != 200 {
		b.Fatal(len(list), err)
	}
	for b.Loop() {
		if _, err := m.provider.Groups(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
