package scaleup

import (
	"reflect"
	"testing"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
)

// TestConditionsAreTheSameInAllFields sets one field after the other.
func TestConditionsAreTheSameInAllFields(t *testing.T) {
	full := reflect.ValueOf(autoscaler.GroupCondition{BackingOff: true, Newest: &cluster.NodeInfo{}, LongUnregistered: 1, Deleting: 1, Gone: map[string]bool{"n": true}, MaxLaunching: 1, Devices: []autoscaler.SeenDevices{{}}})
	for i := range full.NumField() {
		if full.Field(i).IsZero() {
			t.Fatalf("the field %s isn't set here", full.Type().Field(i).Name)
		}
		var a, b autoscaler.GroupCondition
		if !sameCondition(a, b) {
			t.Fatal("two that are empty aren't the same")
		}
		reflect.ValueOf(&a).Elem().Field(i).Set(full.Field(i))
		if sameCondition(a, b) || sameCondition(b, a) {
			t.Errorf("two that differ in %s are the same", full.Type().Field(i).Name)
		}
	}
}
