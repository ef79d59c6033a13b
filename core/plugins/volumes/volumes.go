// Package volumes has what the plugins for volumes share: how a pod's volumes
// lead to claims, volumes and attachable disks.
package volumes

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	csitranslation "k8s.io/csi-translation-lib"
	csiplugins "k8s.io/csi-translation-lib/plugins"
	"k8s.io/klog/v2"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// AnnBoundByController is on volumes and claims that a controller bound to each
// other, and AnnSelectedNode on claims that are to be provisioned for a node.
const (
	AnnBoundByController = "pv.kubernetes.io/bound-by-controller"
	AnnSelectedNode      = "volume.kubernetes.io/selected-node"
)

// ClaimNotFound is the text of kube-scheduler's lister for a missing claim.
func ClaimNotFound(name string) string {
	return fmt.Sprintf("persistentvolumeclaim %q not found", name)
}

// Delayed tells whether a claim's class binds when its first consumer is
// placed. Claims of a class that doesn't exist are bound at once.
func Delayed(c *v1.PersistentVolumeClaim, state *cluster.State) (bool, error) {
	class := state.StorageClass(cluster.ClaimClass(c))
	if class == nil || class.Name == "" {
		return false, nil
	}
	if class.VolumeBindingMode == nil {
		return false, fmt.Errorf("VolumeBindingMode not set for StorageClass %q", class.Name)
	}
	return *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer, nil
}

// CheckOwner returns an error when an ephemeral claim was made for another pod.
func CheckOwner(pod *cluster.Pod, c *v1.PersistentVolumeClaim) error {
	if metav1.IsControlledBy(c, pod.Object) {
		return nil
	}
	return fmt.Errorf("PVC %s/%s was not created for pod %s (pod is not owner)", c.Namespace, c.Name, pod.Name())
}

// ReadWriteOncePod tells whether one pod at a time may use the claim.
func ReadWriteOncePod(c *v1.PersistentVolumeClaim) bool {
	return slices.Contains(c.Spec.AccessModes, v1.ReadWriteOncePod)
}

// Rejected is a plugin's reason against every node that only a change of the
// pod or of what it was signed with ends.
func Rejected(plugin, message string) *framework.Reason {
	return &framework.Reason{Plugin: plugin, Messages: []string{message}, Final: true, OfPod: true}
}

var translator = csitranslation.New()

// migrates tells for which in-tree plugins attach limits count the CSI driver
// that took them over.
func migrates(plugin string) bool {
	switch plugin {
	case csiplugins.AWSEBSInTreePluginName, csiplugins.PortworxVolumePluginName, csiplugins.GCEPDInTreePluginName,
		csiplugins.AzureDiskInTreePluginName, csiplugins.CinderInTreePluginName:
		return true
	}
	return false
}

// Translated returns a volume as it is to a node's CSI driver when the node
// says that its in-tree plugin has moved there, and as it stands otherwise.
func Translated(pv *v1.PersistentVolume, node *storagev1.CSINode) (*v1.PersistentVolume, error) {
	if pv.Spec.CSI != nil || node == nil || !translator.IsPVMigratable(pv) {
		return pv, nil
	}
	name, err := translator.GetInTreePluginNameFromSpec(pv, nil)
	if err != nil || !migrates(name) || !slices.Contains(splitList(node.Annotations[v1.MigratedPluginsAnnotationKey]), name) {
		return pv, err
	}
	return translator.TranslateInTreePVToCSI(klog.Logger{}, pv)
}

func splitList(s string) []string {
	var out []string
	for s != "" {
		i := 0
		for i < len(s) && s[i] != ',' {
			i++
		}
		out = append(out, s[:i])
		s = s[min(i+1, len(s)):]
	}
	return out
}

// Disk is what an attach limit counts: a driver's volume. Equal names are one
// disk.
type Disk struct{ Driver, Name string }

// DiskOf returns the disk of a claim; ok is false when none is known or none of
// CSI. An unbound claim counts as a disk of its own.
func DiskOf(c *v1.PersistentVolumeClaim, state *cluster.State) (d Disk, ok bool) {
	pv := (*v1.PersistentVolume)(nil)
	if c.Spec.VolumeName != "" {
		pv = state.Volume(c.Spec.VolumeName)
	}
	if pv == nil {
		return unboundDisk(c, state)
	}
	csi := pv.Spec.CSI
	if csi == nil {
		if !translator.IsPVMigratable(pv) {
			return Disk{}, false
		}
		name, err := translator.GetInTreePluginNameFromSpec(pv, nil)
		if err != nil || !migrates(name) {
			return Disk{}, false
		}
		translated, err := translator.TranslateInTreePVToCSI(klog.Logger{}, pv)
		if err != nil || translated.Spec.CSI == nil {
			return Disk{}, false
		}
		csi = translated.Spec.CSI
	}
	if csi.Driver == "" || csi.VolumeHandle == "" {
		return Disk{}, false
	}
	return Disk{csi.Driver, csi.Driver + "/" + csi.VolumeHandle}, true
}

func unboundDisk(c *v1.PersistentVolumeClaim, state *cluster.State) (Disk, bool) {
	class := state.StorageClass(cluster.ClaimClass(c))
	if class == nil || class.Provisioner == "" {
		return Disk{}, false
	}
	driver := class.Provisioner
	if translator.IsMigratableIntreePluginByName(driver) {
		if !migrates(driver) {
			return Disk{}, false
		}
		name, err := translator.GetCSINameFromInTreeName(driver)
		if err != nil {
			return Disk{}, false
		}
		driver = name
	}
	// No handle contains a NUL, so this is nobody else's name.
	return Disk{driver, driver + "/\x00" + c.Namespace + "/" + c.Name}, true
}

// Migratable tells whether a volume of a pod is a disk of an in-tree plugin
// that a CSI driver may have taken over.
func Migratable(v *v1.Volume) bool {
	switch {
	case v.GCEPersistentDisk != nil, v.AWSElasticBlockStore != nil, v.Cinder != nil, v.AzureDisk != nil, v.AzureFile != nil,
		v.PortworxVolume != nil, v.VsphereVolume != nil:
		return translator.IsInlineMigratable(v)
	}
	return false
}

// InlineDisk returns the disk of a migratable volume of a pod; ok is false when
// attach limits don't count it.
func InlineDisk(v *v1.Volume, namespace string) (d Disk, ok bool) {
	plugin, err := translator.GetInTreePluginNameFromSpec(nil, v)
	if err != nil || !migrates(plugin) {
		return Disk{}, false
	}
	pv, err := translator.TranslateInTreeInlineVolumeToCSI(klog.Logger{}, v, namespace)
	if err != nil || pv == nil || pv.Spec.CSI == nil {
		return Disk{}, false
	}
	driver, err := translator.GetCSINameFromInTreeName(plugin)
	if err != nil {
		return Disk{}, false
	}
	return Disk{driver, driver + "/" + pv.Spec.CSI.VolumeHandle}, true
}

// Has tells whether a pod has a volume that counts for nodes' attach limits. Every
// pod has volumes of other kinds, such as the token of its service account.
func Has(pod *cluster.Pod) bool {
	if len(pod.Claims) > 0 {
		return true
	}
	for i := range pod.Object.Spec.Volumes {
		if Migratable(&pod.Object.Spec.Volumes[i]) {
			return true
		}
	}
	return false
}
