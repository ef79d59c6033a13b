package migration

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

const ebs, ebsDriver = "kubernetes.io/aws-ebs", "ebs.csi.aws.com"

func ebsVolume() *v1.PersistentVolume {
	pv := &v1.PersistentVolume{}
	pv.Name = "pv"
	pv.Spec.AWSElasticBlockStore = &v1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-1"}
	return pv
}

func vsphereVolume() *v1.PersistentVolume {
	pv := &v1.PersistentVolume{}
	pv.Spec.VsphereVolume = &v1.VsphereVirtualDiskVolumeSource{VolumePath: "path"}
	return pv
}

func csiVolume() *v1.PersistentVolume {
	pv := &v1.PersistentVolume{}
	pv.Spec.CSI = &v1.CSIPersistentVolumeSource{Driver: "csi.example.com", VolumeHandle: "own"}
	return pv
}

// A volume is shown as its driver's on nodes that say so, and only there.
func TestTranslationFollowsTheNode(t *testing.T) {
	node := func(migrated string) *storagev1.CSINode {
		n := &storagev1.CSINode{}
		n.Annotations = map[string]string{v1.MigratedPluginsAnnotationKey: migrated}
		return n
	}
	for _, c := range []struct {
		name   string
		pv     *v1.PersistentVolume
		node   *storagev1.CSINode
		driver string // "" when it stays as it is
	}{
		{"moved", ebsVolume(), node("kubernetes.io/cinder," + ebs), ebsDriver},
		{"another plugin moved", ebsVolume(), node("kubernetes.io/cinder"), ""},
		{"none moved", ebsVolume(), node(""), ""},
		{"no CSINode", ebsVolume(), nil, ""},
		{"a plugin that kube-scheduler leaves out", vsphereVolume(), node("kubernetes.io/vsphere-volume"), ""},
		{"a driver's own volume", csiVolume(), node(ebs), "csi.example.com"},
	} {
		x := Translate(c.pv)
		got, err := x.On(c.node)
		driver := ""
		if err == nil && got.Spec.CSI != nil {
			driver = got.Spec.CSI.Driver
		}
		if err != nil || driver != c.driver {
			t.Errorf("%s: got driver %q, %v, want %q", c.name, driver, err, c.driver)
		}
	}
}

func TestSourceAndDriver(t *testing.T) {
	for _, c := range []struct {
		name, driver, handle string
		pv                   *v1.PersistentVolume
	}{
		{"in-tree", ebsDriver, "vol-1", ebsVolume()},
		{"CSI", "csi.example.com", "own", csiVolume()},
		{"left out", "", "", vsphereVolume()},
		{"neither", "", "", &v1.PersistentVolume{}},
	} {
		driver, handle := "", ""
		if s := Source(c.pv); s != nil {
			driver, handle = s.Driver, s.VolumeHandle
		}
		if driver != c.driver || handle != c.handle {
			t.Errorf("%s: got %q %q, want %q %q", c.name, driver, handle, c.driver, c.handle)
		}
	}
	for provisioner, want := range map[string]string{ebs: ebsDriver, "csi.example.com": "csi.example.com", "kubernetes.io/vsphere-volume": ""} {
		if got := Driver(provisioner); got != want {
			t.Errorf("the driver of provisioner %s is %q, want %q", provisioner, got, want)
		}
	}
}

// Volumes in a pod's spec: of five in-tree plugins they count as their CSI driver's.
func TestInlineVolumes(t *testing.T) {
	for _, c := range []struct {
		name           string
		source         v1.VolumeSource
		inline         bool
		driver, handle string // "" when it doesn't count as a driver's
	}{
		{"EBS", v1.VolumeSource{AWSElasticBlockStore: &v1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-2"}}, true, ebsDriver, "vol-2"},
		{"EBS, with an ID that can't be read", v1.VolumeSource{AWSElasticBlockStore: &v1.AWSElasticBlockStoreVolumeSource{VolumeID: "aws://zone/disk"}}, true, "", ""},
		{"GCE", v1.VolumeSource{GCEPersistentDisk: &v1.GCEPersistentDiskVolumeSource{PDName: "disk"}}, true, "pd.csi.storage.gke.io", "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/disk"},
		{"Cinder", v1.VolumeSource{Cinder: &v1.CinderVolumeSource{VolumeID: "disk"}}, true, "cinder.csi.openstack.org", "disk"},
		{"Azure disk", v1.VolumeSource{AzureDisk: &v1.AzureDiskVolumeSource{DiskName: "disk", DataDiskURI: "/subscriptions/disk"}}, true, "disk.csi.azure.com", "/subscriptions/disk"},
		{"Portworx", v1.VolumeSource{PortworxVolume: &v1.PortworxVolumeSource{VolumeID: "disk"}}, true, "pxd.portworx.com", "disk"},
		{"Azure file, which kube-scheduler leaves out", v1.VolumeSource{AzureFile: &v1.AzureFileVolumeSource{ShareName: "share", SecretName: "secret"}}, false, "", ""},
		{"vSphere, which kube-scheduler leaves out", v1.VolumeSource{VsphereVolume: &v1.VsphereVirtualDiskVolumeSource{VolumePath: "path"}}, false, "", ""},
		{"two at once, which no API server lets in", v1.VolumeSource{GCEPersistentDisk: &v1.GCEPersistentDiskVolumeSource{PDName: "disk"},
			VsphereVolume: &v1.VsphereVirtualDiskVolumeSource{VolumePath: "path", StoragePolicyName: "policy"}}, false, "", ""},
		{"a secret", v1.VolumeSource{Secret: &v1.SecretVolumeSource{}}, false, "", ""},
	} {
		v := &v1.Volume{Name: "v", VolumeSource: c.source}
		if got := inline(v); got != c.inline {
			t.Errorf("%s: inline %v, want %v", c.name, got, c.inline)
		}
		if driver, handle, ok := InlineSource(v, "ns"); driver != c.driver || handle != c.handle || ok != (c.driver != "") {
			t.Errorf("%s: got driver %q, handle %q, %v; want %q and %q", c.name, driver, handle, ok, c.driver, c.handle)
		}
	}
}

// TestAVolumeOfSeveralSourcesStaysAsItStands: the translator would take any of them.
func TestAVolumeOfSeveralSourcesStaysAsItStands(t *testing.T) {
	pv := ebsVolume()
	pv.Spec.GCEPersistentDisk = &v1.GCEPersistentDiskVolumeSource{PDName: "disk"}
	for range 20 {
		if x := Translate(pv); x.AsCSI() != nil || Source(pv) != nil {
			t.Fatalf("it is translated to %v", x.AsCSI())
		}
	}
}
