// Package volumes has what the plugins for volumes share: how a pod's volumes lead
// to claims, volumes and attachable disks (volumes.go), and which pods have to be
// signed again when one of these changes (reclassify.go). It is no plugin.
package volumes

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/cluster/migration"
	"github.com/berthproject/berth/core/framework"
)

// ClaimNotFound is the text of kube-scheduler's lister for a missing claim.
func ClaimNotFound(name string) string {
	return fmt.Sprintf("persistentvolumeclaim %q not found", name)
}

// Delayed reports whether a claim is bound when its first consumer is placed: its
// class has volumeBindingMode WaitForFirstConsumer. A claim of a class that doesn't
// exist isn't. The error is for people: a class that says no mode.
func Delayed(c *v1.PersistentVolumeClaim, state *cluster.State) (bool, error) {
	class := state.StorageClass(cluster.ClaimClass(c))
	if class == nil {
		return false, nil
	}
	if class.VolumeBindingMode == nil {
		return false, fmt.Errorf("VolumeBindingMode not set for StorageClass %q", class.Name)
	}
	return *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer, nil
}

// CheckOwner returns an error for people when the claim of a pod's ephemeral volume
// wasn't made for the pod.
func CheckOwner(pod *cluster.Pod, c *v1.PersistentVolumeClaim) error {
	if metav1.IsControlledBy(c, pod.Object) {
		return nil
	}
	return fmt.Errorf("PVC %s/%s was not created for pod %s (pod is not owner)", c.Namespace, c.Name, pod.Name())
}

// ReadWriteOncePod reports whether only one pod at a time may use the claim
// (KEP-2485).
func ReadWriteOncePod(c *v1.PersistentVolumeClaim) bool {
	return slices.Contains(c.Spec.AccessModes, v1.ReadWriteOncePod)
}

// Rejected is a plugin's reason against every node. Only a change of the pod, or of
// what it is signed with, ends it: a pod that is signed again is asked again.
func Rejected(plugin, message string) *framework.Reason {
	return &framework.Reason{Plugin: plugin, Messages: []string{message}, Final: true, OfPod: true}
}

// DiskOf returns the disk of a claim. A claim without a volume counts as a disk of
// its own, of the driver that is to provision it. ok is false when the claim leads to
// no CSI driver.
func DiskOf(c *v1.PersistentVolumeClaim, state *cluster.State) (d cluster.Disk, ok bool) {
	pv := (*v1.PersistentVolume)(nil)
	if c.Spec.VolumeName != "" {
		pv = state.Volume(c.Spec.VolumeName)
	}
	if pv == nil {
		return unboundDisk(c, state)
	}
	return state.DiskOf(pv)
}

// InTree reports whether the disk of a claim is a driver's because the driver has taken over an
// in-tree plugin.
func InTree(c *v1.PersistentVolumeClaim, state *cluster.State) bool {
	if pv := state.Volume(c.Spec.VolumeName); pv != nil {
		return pv.Spec.CSI == nil
	}
	class := state.StorageClass(cluster.ClaimClass(c))
	return class != nil && migration.Driver(class.Provisioner) != class.Provisioner
}

func unboundDisk(c *v1.PersistentVolumeClaim, state *cluster.State) (cluster.Disk, bool) {
	class := state.StorageClass(cluster.ClaimClass(c))
	if class == nil {
		return cluster.Disk{}, false
	}
	driver := migration.Driver(class.Provisioner)
	if driver == "" {
		return cluster.Disk{}, false
	}
	// No handle contains a NUL, so this is nobody else's name.
	return cluster.Disk{Driver: driver, Name: driver + "/\x00" + c.Namespace + "/" + c.Name}, true
}

// Has reports whether a pod has a volume that counts for nodes' attach limits. Every
// pod has volumes of other kinds, such as the token of its service account.
func Has(pod *cluster.Pod) bool { return len(pod.Claims) > 0 || len(pod.Disks) > 0 }
