// Package migration shows volumes of in-tree plugins as the CSI drivers see them
// that took these plugins over (KEP-625). The rules for volumes read them so, and
// so does whoever checks a volume again before its pod is bound.
package migration

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	csitranslation "k8s.io/csi-translation-lib"
	"k8s.io/csi-translation-lib/plugins"
	"k8s.io/klog/v2"
)

// translator holds no state.
var translator = csitranslation.New()

// migrated reports whether an in-tree plugin is one whose volumes count as those of
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

// Volume is a volume as it stands, and as the CSI driver of its in-tree plugin sees it.
type Volume struct {
	own    *v1.PersistentVolume
	plugin string // whose volumes may count as those of a CSI driver; "" when there is none
	csi    *v1.PersistentVolume
	err    error // of a volume whose source can't be read, or not be translated
}

// Translate finds how a volume's CSI driver sees it: a copy of the volume, once for all nodes.
func Translate(pv *v1.PersistentVolume) (out Volume) {
	out.own = pv
	if s := &pv.Spec.PersistentVolumeSource; s.CSI != nil || several(s.GCEPersistentDisk != nil, s.AWSElasticBlockStore != nil, s.Cinder != nil,
		s.AzureDisk != nil, s.AzureFile != nil, s.PortworxVolume != nil, s.VsphereVolume != nil) || !translator.IsPVMigratable(pv) {
		return out
	}
	var plugin string
	if plugin, out.err = translator.GetInTreePluginNameFromSpec(pv, nil); out.err == nil && migrated(plugin) {
		out.plugin = plugin
		out.csi, out.err = translator.TranslateInTreePVToCSI(klog.Logger{}, pv)
	}
	return out
}

// AsCSI returns the volume as its CSI driver sees it on nodes to which its plugin has moved, nil
// when that isn't otherwise than it stands, or can't be told.
func (x *Volume) AsCSI() *v1.PersistentVolume { return x.csi }

// On returns the volume as it is to a node's CSI driver when the node says that its
// in-tree plugin has moved there, and as it stands otherwise. node may be nil. The
// error is that of a volume whose source can't be translated.
func (x *Volume) On(node *storagev1.CSINode) (*v1.PersistentVolume, error) {
	if node == nil {
		return x.own, nil
	}
	if x.plugin == "" {
		return x.own, x.err
	}
	for name := range strings.SplitSeq(node.Annotations[v1.MigratedPluginsAnnotationKey], ",") {
		if name == x.plugin {
			return x.csi, x.err
		}
	}
	return x.own, nil
}

// Source returns a volume's CSI source, its own or the one that it is translated
// to; nil for a volume that no CSI driver serves.
func Source(pv *v1.PersistentVolume) *v1.CSIPersistentVolumeSource {
	if pv.Spec.CSI != nil {
		return pv.Spec.CSI
	}
	x := Translate(pv)
	if x.csi == nil || x.err != nil {
		return nil
	}
	return x.csi.Spec.CSI
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

// several reports whether more than one source of a volume is set, which no API server lets in, but
// a file may have. The translator takes one of them by the order of a map, and panics when that is
// vSphere's with a storage policy. So such a volume is left as it stands.
func several(set ...bool) bool {
	n := 0
	for _, yes := range set {
		if yes {
			n++
		}
	}
	return n > 1
}

// inline reports whether a volume in a pod's spec is a disk of an in-tree plugin
// whose volumes count as those of the CSI driver that may have taken it over.
func inline(v *v1.Volume) bool {
	switch {
	case several(v.GCEPersistentDisk != nil, v.AWSElasticBlockStore != nil, v.Cinder != nil, v.AzureDisk != nil, v.AzureFile != nil,
		v.PortworxVolume != nil, v.VsphereVolume != nil):
		return false
	case v.GCEPersistentDisk != nil, v.AWSElasticBlockStore != nil, v.Cinder != nil, v.AzureDisk != nil, v.PortworxVolume != nil:
		return translator.IsInlineMigratable(v)
	}
	return false
}

// InlineSource returns the CSI driver and the volume handle of a volume in the
// spec of a pod in a namespace; ok is false when it doesn't count as a driver's.
func InlineSource(v *v1.Volume, namespace string) (driver, handle string, ok bool) {
	if !inline(v) {
		return "", "", false
	}
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
