package testkit

import (
	resourcev1 "k8s.io/api/resource/v1"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/cluster"
)

// RandomDeviceClass draws a DeviceClass, which may back the extended resource that random pods request
// and random nodes have; gone says that it is to be deleted.
func RandomDeviceClass(t *rapid.T) (c *resourcev1.DeviceClass, gone bool) {
	resource := ""
	if maybe(t, 70, "backs") {
		resource = pick(t, []string{"example.com/gpu", "example.com/gpu", "example.com/fpga"}, "backed")
	}
	return DeviceClass(pick(t, []string{"gpus", "others"}, "device class"), resource), maybe(t, 40, "class is gone")
}

// changeDeviceClass sets or removes a DeviceClass.
func (w *World) changeDeviceClass(t *rapid.T) string {
	c, gone := RandomDeviceClass(t)
	if gone {
		w.State.RemoveObject(cluster.DeviceClassKind, "", c.Name)
		return "remove device class " + c.Name
	}
	w.State.SetObject(c)
	backed := ""
	if c.Spec.ExtendedResourceName != nil {
		backed = *c.Spec.ExtendedResourceName
	}
	return "set device class " + c.Name + " backing " + backed
}
