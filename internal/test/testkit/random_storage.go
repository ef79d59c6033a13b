package testkit

import (
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/cluster"
)

// This file draws objects of storage. Names are few, so that claims find volumes, classes and
// nodes; a name always has the same meaning (randomClass), so that a later version of an
// object is a change that rules notice.

// The names and sizes of random storage. A name that is there twice is drawn twice as often.
var (
	classes = []string{"fast", "fast", "slow", "static", "static", "zoned", "intree", "pool"}
	drivers = []string{"csi.example", "ebs.csi.aws.com"}
	pools   = []string{"fast", "fast", "pool", "zoned"} // classes whose driver publishes capacities
	sizes   = []string{"1Gi", "2Gi", "3Gi", "5Gi", "8Gi"}
	lefts   = []string{"0", "1Gi", "3Gi", "5Gi", "10Gi", "12Gi", "50Gi"}
	modes   = []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce, v1.ReadWriteMany, v1.ReadWriteOncePod}
)

// delayedClaims wait for their first consumer, whatever else is drawn of them.
var delayedClaims = []string{"d0", "d1", "d2"}

// storageNames are the names of random objects by kind. Claims that end in -eph are those of
// ephemeral volumes.
// CSINodes are named as random nodes are. Of volumes there are fewer than claims, so that
// claims compete.
var storageNames = map[cluster.ObjectKind][]string{
	cluster.StorageClassKind:    {"fast", "slow", "static", "zoned", "intree", "pool"},
	cluster.CSIDriverKind:       {"csi.example", "ebs.csi.aws.com"},
	cluster.StorageCapacityKind: {"cap0", "cap1", "cap2", "cap3"},
	cluster.VolumeKind:          {"pv0", "pv1", "pv2", "pv3", "pv4", "pv5"},
	cluster.ClaimKind:           {"c0", "c1", "c2", "c3", "d0", "d1", "d2", "p0-eph", "subject-eph", "new0-eph"},
	cluster.CSINodeKind:         {"n0", "n1", "n2", "n3"},
	cluster.AttachmentKind:      {"va0", "va1", "va2"},
}

// storageKinds are the kinds that change, some more often than others.
var storageKinds = []cluster.ObjectKind{cluster.ClaimKind, cluster.ClaimKind, cluster.ClaimKind, cluster.VolumeKind, cluster.VolumeKind,
	cluster.StorageClassKind, cluster.CSINodeKind, cluster.CSIDriverKind, cluster.StorageCapacityKind, cluster.AttachmentKind}

// RandomStorage draws the objects of storage of a cluster: of all that claims of random pods
// may lead to, most.
// A few objects are missing each time. Rules must say of a claim without its class or
// volume what kube-scheduler says.
func RandomStorage(t *rapid.T) []cluster.Object {
	var out []cluster.Object
	for _, kind := range []cluster.ObjectKind{cluster.StorageClassKind, cluster.CSIDriverKind, cluster.StorageCapacityKind, cluster.VolumeKind,
		cluster.ClaimKind, cluster.CSINodeKind, cluster.AttachmentKind} {
		for _, name := range storageNames[kind] {
			namespaces := []string{""}
			if kind == cluster.ClaimKind {
				namespaces = spaces
			}
			for _, ns := range namespaces {
				if maybe(t, 96, "exists") {
					out = append(out, randomStored(t, kind, ns, name))
				}
			}
		}
	}
	return out
}

// RandomStored draws an object of storage; gone says that it is to be deleted.
// What isn't gone is a new version of the object, or the object itself if it wasn't there.
func RandomStored(t *rapid.T) (o cluster.Object, gone bool) {
	kind := pick(t, storageKinds, "kind")
	ns := ""
	if kind == cluster.ClaimKind {
		ns = pick(t, spaces, "ns")
	}
	return randomStored(t, kind, ns, pick(t, storageNames[kind], "name")), maybe(t, 15, "gone")
}

// randomStored draws an object of a kind; the namespace is for claims.
// An attachment's name says nothing about what it attaches: node and volume are drawn anew.
func randomStored(t *rapid.T, kind cluster.ObjectKind, namespace, name string) cluster.Object {
	switch kind {
	case cluster.StorageClassKind:
		return randomClass(t, name)
	case cluster.CSIDriverKind:
		d := CSIDriver(name, maybe(t, 70, "capacity"))
		if maybe(t, 40, "demanded") {
			return Demanded(d)
		}
		return d
	case cluster.StorageCapacityKind:
		return randomCapacity(t, name)
	case cluster.VolumeKind:
		return randomVolume(t, name)
	case cluster.CSINodeKind:
		return randomCSINode(t, name)
	case cluster.AttachmentKind:
		a := Attachment(pick(t, drivers, "attacher"), pick(t, storageNames[cluster.CSINodeKind], "node"), pick(t, storageNames[cluster.VolumeKind], "volume"))
		a.Name = name
		return a
	}
	return randomClaim(t, namespace, name)
}

// randomCapacity draws what a driver has left in a segment of nodes. One without a topology
// is for no node, and one with an empty selector for all.
func randomCapacity(t *rapid.T, name string) *storagev1.CSIStorageCapacity {
	c := &storagev1.CSIStorageCapacity{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "kube-system"}, StorageClassName: pick(t, pools, "class")}
	q := resource.MustParse(pick(t, lefts, "left"))
	// The largest volume may be smaller than what is left, when that is in pieces.
	if c.Capacity = &q; maybe(t, 20, "largest") {
		largest := resource.MustParse(pick(t, sizes, "largest"))
		c.MaximumVolumeSize = &largest
	}
	if maybe(t, 80, "reachable") {
		c.NodeTopology = &metav1.LabelSelector{}
		if maybe(t, 60, "somewhere") {
			c.NodeTopology.MatchLabels = map[string]string{v1.LabelTopologyZone: pick(t, zones, "zone")}
		}
	}
	return c
}

// randomCSINode draws which drivers a node has and how many volumes of each it attaches.
func randomCSINode(t *rapid.T, name string) *storagev1.CSINode {
	b := CSINode(name)
	for _, driver := range drivers {
		if maybe(t, 70, "driver") {
			limit := int32(-1) // none
			if maybe(t, 75, "limit") {
				limit = int32(1 + Uniform(t, 3, "count"))
			}
			b.Driver(driver, limit)
		}
	}
	// In-tree volumes of these plugins count as volumes of the CSI driver on a node that
	// says so.
	if maybe(t, 50, "migrated") {
		b.Migrated("kubernetes.io/aws-ebs,kubernetes.io/gce-pd")
	}
	return b.Obj()
}

// randomClass draws a storage class: its name says how it binds and provisions.
// Only the allowed topologies of zoned are random: two zones, or one of them twice.
func randomClass(t *rapid.T, name string) *storagev1.StorageClass {
	c := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: "csi.example"}
	mode := storagev1.VolumeBindingWaitForFirstConsumer
	switch name {
	case "slow":
		mode = storagev1.VolumeBindingImmediate
	case "static":
		c.Provisioner = "kubernetes.io/no-provisioner"
	case "intree":
		c.Provisioner = "kubernetes.io/aws-ebs"
	case "zoned":
		c.AllowedTopologies = []v1.TopologySelectorTerm{{MatchLabelExpressions: []v1.TopologySelectorLabelRequirement{
			{Key: v1.LabelTopologyZone, Values: []string{pick(t, zones, "allowed"), pick(t, zones, "and")}},
		}}}
		if maybe(t, 20, "two") {
			c.AllowedTopologies = append(c.AllowedTopologies, v1.TopologySelectorTerm{MatchLabelExpressions: []v1.TopologySelectorLabelRequirement{
				{Key: "disk", Values: []string{"ssd"}}}})
		}
	}
	c.VolumeBindingMode = &mode
	return c
}

// randomVolume draws a volume of any source, free, claimed or released.
func randomVolume(t *rapid.T, name string) *v1.PersistentVolume {
	pv := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "1"}}
	// All sizes differ: of equal volumes kube-scheduler chooses any one.
	pv.Spec.Capacity = v1.ResourceList{v1.ResourceStorage: resource.MustParse(fmt.Sprint(1<<Uniform(t, 4, "size"), "00", name[2:], "Mi"))}
	pv.Spec.StorageClassName = pick(t, classes, "class")
	pv.Spec.AccessModes = []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}
	if maybe(t, 60, "shared") {
		pv.Spec.AccessModes = modes
	}
	pv.Status.Phase = v1.VolumeAvailable
	if maybe(t, 15, "released") {
		pv.Status.Phase = v1.VolumeReleased
	}
	if maybe(t, 10, "block") {
		pv.Spec.VolumeMode = new(v1.PersistentVolumeBlock)
	}
	switch Uniform(t, 5, "source") {
	case 0, 1, 2:
		pv.Spec.CSI = &v1.CSIPersistentVolumeSource{Driver: pick(t, drivers, "driver"), VolumeHandle: name}
		if maybe(t, 20, "same") {
			// Two volumes may be the same disk; it counts once against a node's limit.
			pv.Spec.CSI.VolumeHandle = "handle"
		}
	case 3:
		pv.Spec.AWSElasticBlockStore = &v1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-0" + name}
	default:
		pv.Spec.Local = &v1.LocalVolumeSource{Path: "/data"}
	}
	switch b := (&VolumeBuilder{*pv}); Uniform(t, 5, "affinity") {
	case 0, 1:
		pv = b.In(v1.LabelTopologyZone, pick(t, zones, "zone"), pick(t, zones, "zone2")).Obj()
	case 2:
		pv = b.In(v1.LabelHostname, pick(t, storageNames[cluster.CSINodeKind], "host")).Obj()
	}
	// The claim may be another one by now: its UID tells, where the volume has one.
	if maybe(t, 35, "claimed") {
		pv.Spec.ClaimRef = &v1.ObjectReference{Namespace: pick(t, spaces, "ns"), Name: pick(t, storageNames[cluster.ClaimKind], "by")}
		if maybe(t, 30, "uid") {
			pv.Spec.ClaimRef.UID = types.UID(pick(t, []string{"claim-" + pv.Spec.ClaimRef.Namespace + "-" + pv.Spec.ClaimRef.Name, "stranger"}, "claim uid"))
		}
	}
	// The labels of in-tree volumes list zones with __ between them.
	if maybe(t, 25, "labelled") {
		pv.Labels = map[string]string{pick(t, []string{v1.LabelTopologyZone, v1.LabelFailureDomainBetaZone, v1.LabelTopologyRegion}, "label"): pick(t, []string{"a", "b", "a__b", "a__"}, "zones")}
	}
	return pv
}

// randomClaim draws a claim: bound, lost, going, waiting for its node, or new.
func randomClaim(t *rapid.T, namespace, name string) *v1.PersistentVolumeClaim {
	c := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, ResourceVersion: "1", UID: types.UID("claim-" + namespace + "-" + name)}}
	waits := slices.Contains(delayedClaims, name)
	class := pick(t, append(classes, "absent", ""), "class")
	if waits {
		class = pick(t, append(pools, "static"), "class")
	}
	c.Spec.StorageClassName = &class
	c.Spec.AccessModes = []v1.PersistentVolumeAccessMode{pick(t, modes, "mode")}
	c.Spec.Resources.Requests = v1.ResourceList{v1.ResourceStorage: resource.MustParse(pick(t, sizes, "size"))}
	// An ephemeral volume's claim must belong to its pod; one that doesn't keeps the pod
	// pending.
	if pod, ok := strings.CutSuffix(name, "-eph"); ok && (pod == "p0" || maybe(t, 85, "owned")) {
		c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod, UID: types.UID("pod-" + pod), Controller: new(true)}}
	}
	switch k := Uniform(t, 20, "state"); {
	case waits:
	case k < 9:
		c.Spec.VolumeName = pick(t, append(storageNames[cluster.VolumeKind], "pv9"), "bound")
		c.Status.Phase = v1.ClaimBound
		// Without the annotation the binding isn't complete, and the claim counts as
		// unbound.
		if k > 0 {
			c.Annotations = map[string]string{cluster.AnnBindCompleted: "yes"}
		}
	case k == 9:
		c.Status.Phase = v1.ClaimLost
	case k == 10:
		c.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	case k < 13:
		c.Annotations = map[string]string{"volume.kubernetes.io/selected-node": pick(t, storageNames[cluster.CSINodeKind], "selected")}
	}
	if maybe(t, 8, "block") {
		c.Spec.VolumeMode = new(v1.PersistentVolumeBlock)
	}
	if maybe(t, 8, "selector") {
		c.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{v1.LabelTopologyZone: "a"}}
	}
	return c
}

// AddDelayedClaims adds one to three claims to a pod that wait for it.
func AddDelayedClaims(t *rapid.T, p *v1.Pod) {
	for i := range 1 + Uniform(t, 3, "delayed") {
		p.Spec.Volumes = append(p.Spec.Volumes, v1.Volume{Name: fmt.Sprint("d", i), VolumeSource: v1.VolumeSource{
			PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: pick(t, delayedClaims, "claim")}}})
	}
}

// AddVolumes adds one or two volumes of any source to a pod.
func AddVolumes(t *rapid.T, p *v1.Pod) {
	for i := range 1 + Uniform(t, 2, "volumes") {
		v := v1.Volume{Name: fmt.Sprint("v", i)}
		switch k := Uniform(t, 20, "volume"); {
		case k < 13:
			v.PersistentVolumeClaim = &v1.PersistentVolumeClaimVolumeSource{ClaimName: pick(t, []string{"c0", "c1", "c2", "c3", "d0"}, "claim")}
			if maybe(t, 3, "absent") {
				v.PersistentVolumeClaim.ClaimName = "nowhere"
			}
		case k < 15:
			v.Name = "eph"
			v.Ephemeral = &v1.EphemeralVolumeSource{}
		case k < 17:
			v.GCEPersistentDisk = &v1.GCEPersistentDiskVolumeSource{PDName: pick(t, []string{"disk1", "disk2", "pd-pv0"}, "pd"), ReadOnly: maybe(t, 40, "ro")}
		case k == 17:
			v.AWSElasticBlockStore = &v1.AWSElasticBlockStoreVolumeSource{VolumeID: pick(t, []string{"vol-0pv0", "vol-2"}, "ebs")}
		case k == 18:
			v.ISCSI = &v1.ISCSIVolumeSource{IQN: pick(t, []string{"iqn1", "iqn2"}, "iqn"), ReadOnly: maybe(t, 40, "ro")}
		default:
			v.RBD = &v1.RBDVolumeSource{CephMonitors: []string{pick(t, []string{"m1", "m2"}, "monitor"), "m3"}, RBDPool: "p", RBDImage: pick(t, []string{"i1", "i2"}, "image"), ReadOnly: maybe(t, 40, "ro")}
		}
		p.Spec.Volumes = append(p.Spec.Volumes, v)
	}
}
