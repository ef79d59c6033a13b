// Package migration shows volumes of in-tree plugins as the CSI drivers see them
// that took these plugins over (KEP-625). The rules for volumes read them so, and
// so does whoever checks a volume again before its pod is bound.
package migration

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	csitranslation "k8s.io/csi-translation-lib"
	"k8s.io/csi-translation-lib/plugins"
	"k8s.io/klog/v2"
)

// translator holds no state.
var translator = csitranslation.New()

// migrated tells whether an in-tree plugin is one whose volumes count as those of
// its CSI driver. For the others that the translator knows, such as vSphere's,
// kube-scheduler doesn't.
func migrated(plugin string) bool {
	switch plugin {
	case plugins.AWSEBSInTreePluginName, plugins.PortworxVolumePluginName, plugins.GCEPDInTreePluginName,
		plugins.AzureDiskInTreePluginName, plugins.CinderInTreePluginName:
		return true
	}
	return false
}

// Translated returns a volume as it is to a node's CSI driver when the node says
// that its in-tree plugin has moved there, and as it stands otherwise. node may be
// nil. The error is that of a volume whose source can't be translated.
func Translated(pv *v1.PersistentVolume, node *storagev1.CSINode) (*v1.PersistentVolume, error) {
	if pv.Spec.CSI != nil || node == nil || !translator.IsPVMigratable(pv) {
		return pv, nil
	}
	name, err := translator.GetInTreePluginNameFromSpec(pv, nil)
	if err != nil || !migrated(name) || !slices.Contains(strings.Split(node.Annotations[v1.MigratedPluginsAnnotationKey], ","), name) {
		return pv, err
	}
	return translator.TranslateInTreePVToCSI(klog.Logger{}, pv)
}

// Source returns a volume's CSI source, its own or the one that it is translated
// to; nil for a volume that no CSI driver serves.
func Source(pv *v1.PersistentVolume) *v1.CSIPersistentVolumeSource {
	if pv.Spec.CSI != nil {
		return pv.Spec.CSI
	}
	if !translator.IsPVMigratable(pv) {
		return nil
	}
	name, err := translator.GetInTreePluginNameFromSpec(pv, nil)
	if err != nil || !migrated(name) {
		return nil
	}
	out, err := translator.TranslateInTreePVToCSI(klog.Logger{}, pv)
	if err != nil {
		return nil
	}
	return out.Spec.CSI
}

// Driver returns the CSI driver behind a storage class's provisioner, which is the
// provisioner itself unless it is an in-tree plugin; "" for a plugin whose volumes
// don't count as a driver's.
func Driver(provisioner string) string {
	if !translator.IsMigratableIntreePluginByName(provisioner) {
		return provisioner
	}
	if !migrated(provisioner) {
		return ""
	}
	driver, err := translator.GetCSINameFromInTreeName(provisioner)
	if err != nil {
		return ""
	}
	return driver
}

// Inline tells whether a volume in a pod's spec is a disk of an in-tree plugin
// whose volumes count as those of the CSI driver that may have taken it over.
func Inline(v *v1.Volume) bool {
	switch {
	case v.GCEPersistentDisk != nil, v.AWSElasticBlockStore != nil, v.Cinder != nil, v.AzureDisk != nil, v.PortworxVolume != nil:
		return translator.IsInlineMigratable(v)
	}
	return false
}

// InlineSource returns the CSI driver and the volume handle of an Inline volume of
// a pod in a namespace; ok is false when it doesn't count as a driver's.
func InlineSource(v *v1.Volume, namespace string) (driver, handle string, ok bool) {
	plugin, err := translator.GetInTreePluginNameFromSpec(nil, v)
	if err != nil || !migrated(plugin) {
		return "", "", false
	}
	pv, err := translator.TranslateInTreeInlineVolumeToCSI(klog.Logger{}, v, namespace)
	if err != nil || pv == nil || pv.Spec.CSI == nil {
		return "", "", false
	}
	if driver, err = translator.GetCSINameFromInTreeName(plugin); err != nil {
		return "", "", false
	}
	return driver, pv.Spec.CSI.VolumeHandle, true
}
