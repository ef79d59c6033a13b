package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/cluster/migration"
	"github.com/berthproject/berth/core/devices"
)

// objects works every index out from the objects themselves.
func (b *broken) objects() {
	s := b.s
	anew := devices.NewInventory(s, devices.Features(s.Schema.version))
	claimsByVolume, volumesByClaim, freeVolumes := map[string][]string{}, map[ClaimKey][]string{}, map[freeVolume][]string{}
	handles, disks := map[string]int{}, 0
	demanded := map[string]int{}
	byNode, byVolume := map[string][]string{}, map[string][]string{}
	budgets, capacities := map[string][]string{}, map[string][]string{}
	for key, o := range s.objects.byKey {
		b.same("the key of an object", keyOf(o), key)
		name := o.GetNamespace() + "/" + o.GetName()
		switch o := o.(type) {
		case *v1.PersistentVolumeClaim:
			if o.Spec.VolumeName != "" {
				claimsByVolume[o.Spec.VolumeName] = append(claimsByVolume[o.Spec.VolumeName], name)
			}
		case *v1.PersistentVolume:
			if ref := o.Spec.ClaimRef; ref != nil {
				k := ClaimKey{ref.Namespace, ref.Name}
				volumesByClaim[k] = append(volumesByClaim[k], name)
			} else {
				k := freeVolume{VolumeClass(o), pinnedHost(o)}
				freeVolumes[k] = append(freeVolumes[k], name)
			}
			if source := migration.Source(o); source != nil && source.Driver != "" && source.VolumeHandle != "" {
				handles[source.Driver+"/"+source.VolumeHandle]++
				disks++
				b.same("the disk of "+name, s.objects.disks[o], newDisk(source.Driver, source.VolumeHandle))
			}
		case *resourcev1.ResourceSlice:
			anew.SetSlice(o, nil)
		case *resourcev1.ResourceClaim:
			anew.SetClaim(o, nil)
		case *resourcev1.DeviceTaintRule:
			if s.objects.taintRules {
				anew.SetRule(o, nil)
			}
		case *storagev1.VolumeAttachment:
			byNode[o.Spec.NodeName] = append(byNode[o.Spec.NodeName], name)
			if v := o.Spec.Source.PersistentVolumeName; v != nil {
				byVolume[*v] = append(byVolume[*v], name)
			}
		case *policyv1.PodDisruptionBudget:
			budgets[o.Namespace] = append(budgets[o.Namespace], name)
		case *storagev1.CSIStorageCapacity:
			capacities[o.StorageClassName] = append(capacities[o.StorageClassName], name)
		case *storagev1.CSIDriver:
			if p := o.Spec.PreventPodSchedulingIfMissing; p != nil && *p {
				demanded[o.Name] = 1
			}
		}
	}
	x := &s.objects
	b.same("claims by volume", names(x.claimsByVolume), sortedByName(claimsByVolume))
	b.same("volumes by claim", names(x.volumesByClaim), sortedByName(volumesByClaim))
	b.same("free volumes", names(x.freeVolumes), sortedByName(freeVolumes))
	b.same("handles", x.handles, handles)
	b.same("the number of disks of volumes", len(x.disks), disks)
	b.same("attachments by node", names(x.attachmentsByNode), sortedByName(byNode))
	b.same("attachments by volume", names(x.attachmentsByVolume), sortedByName(byVolume))
	b.same("budgets", names(x.budgets), sortedByName(budgets))
	b.same("capacities", names(x.capacities), sortedByName(capacities))
	b.same("demanded drivers", x.demanded, demanded)
	b.devices(anew)
}

// devices compares what nodes see of devices with an inventory that was filled just now.
func (b *broken) devices(anew *devices.Inventory) {
	anew.Settle()
	contents := map[devices.Digest]devices.Content{{}: 0}
	for i, n := range b.s.nodes {
		if n == nil {
			continue
		}
		is := b.s.objects.devices.Digest(int32(i))
		b.same("the devices of "+n.Name, is, anew.Digest(int32(i)))
		content := b.s.objects.devices.Content(int32(i))
		if _, ok := contents[is]; !ok {
			contents[is] = content
		}
		b.same("the content of the devices of "+n.Name, content, contents[is])
	}
}

// claims works out who uses which claim.
func (b *broken) claims() {
	nodes, pods, inline := map[ClaimKey][]NodeIndex{}, map[ClaimKey]int{}, map[string]int{}
	for i, n := range b.s.nodes {
		if n == nil {
			continue
		}
		for _, p := range n.Pods {
			for _, d := range p.Disks {
				inline[d.Name]++
			}
			for _, c := range p.Claims {
				k := ClaimKey{p.Object.Namespace, c.Name}
				nodes[k] = append(nodes[k], NodeIndex(i))
				if !c.Ephemeral {
					pods[k]++
				}
			}
		}
	}
	b.same("the number of claims in use", len(b.s.objects.claimNodes), len(nodes))
	for k, list := range b.s.objects.claimNodes {
		b.same(fmt.Sprint("the nodes of ", k), slices.Sorted(slices.Values(list)), nodes[k])
	}
	b.same("the pods that name claims", b.s.objects.claimPods, pods)
	b.same("the disks of pods on nodes", b.s.objects.inline, inline)
}

func (b *broken) nominations() {
	s := b.s
	byPod, claims, users, inline := map[types.UID]bool{}, map[ClaimKey]int{}, map[ClaimKey]int{}, map[string]int{}
	deviceClaims := map[ClaimKey]int{}
	byNode := map[NodeIndex][]string{}
	for _, n := range s.Nominations() {
		b.check(!byPod[n.Pod.UID], "%s is nominated twice", n.Pod.UID)
		byPod[n.Pod.UID] = true
		b.check(s.nominated.byPod[n.Pod.UID] == n, "the nomination of %s isn't known by its pod", n.Pod.UID)
		_, placed := s.pods[n.Pod.UID]
		b.check(!placed, "%s is nominated and placed", n.Pod.UID)
		at := NoNode
		if i, ok := s.byName[n.Name]; ok {
			at = i
			byNode[i] = append(byNode[i], string(n.Pod.UID))
		}
		b.same(fmt.Sprint("the node of the nomination of ", n.Pod.UID), n.Node, at)
		for _, d := range n.Pod.Disks {
			inline[d.Name]++
		}
		for _, c := range n.Pod.Claims {
			k := ClaimKey{n.Pod.Object.Namespace, c.Name}
			users[k]++
			if !c.Ephemeral {
				claims[k]++
			}
		}
		for _, c := range n.Pod.Object.Spec.ResourceClaims {
			if c.ResourceClaimName != nil {
				deviceClaims[ClaimKey{n.Pod.Object.Namespace, *c.ResourceClaimName}]++
			}
		}
		for _, c := range n.Pod.Object.Status.ResourceClaimStatuses {
			if c.ResourceClaimName != nil {
				deviceClaims[ClaimKey{n.Pod.Object.Namespace, *c.ResourceClaimName}]++
			}
		}
	}
	standIns := map[HeadroomID][]NodeIndex{}
	for _, n := range s.nodes {
		for k := 0; n != nil && k < len(n.Nominated); k++ {
			id := n.Nominated[k].StandIn
			if list := standIns[id]; len(list) == 0 || list[len(list)-1] != n.Index {
				standIns[id] = append(list, n.Index)
			}
		}
	}
	b.same("the nodes of stand-ins", s.nominated.standIns, standIns)
	b.same("the number of nominated pods", len(s.nominated.byPod), len(byPod))
	b.same("the claims of nominated pods", s.nominated.users, users)
	b.same("the disks of nominated pods", s.nominated.inline, inline)
	b.same("the claims that nominated pods name", s.nominated.claims, claims)
	b.same("the resource claims that nominated pods name", s.nominated.deviceClaims, deviceClaims)
	for i, n := range s.nodes {
		if n != nil {
			var uids []string
			for _, p := range n.Nominated {
				uids = append(uids, string(p.UID))
			}
			b.same("the pods nominated to "+n.Name, uids, slices.Sorted(slices.Values(byNode[NodeIndex(i)])))
		}
	}
}

// headrooms works out which headrooms a namespace has.
func (b *broken) headrooms() {
	x := &b.s.headrooms
	byNamespace := map[string][]string{}
	for id, h := range x.byID {
		b.same("the ID of a headroom", h.ID, id)
		byNamespace[h.Namespace] = append(byNamespace[h.Namespace], string(id))
	}
	b.same("the number of namespaces with headrooms", len(x.byNamespace), len(byNamespace))
	for namespace, list := range x.byNamespace {
		var got []string
		for _, h := range list {
			got = append(got, string(h.ID))
			b.check(x.byID[h.ID] == h, "headroom %s of %s is an old one", h.ID, namespace)
		}
		b.same("the headrooms of "+namespace, got, slices.Sorted(slices.Values(byNamespace[namespace])))
	}
}

func (b *broken) workloads() {
	services := map[serviceKey][]string{}
	for key, w := range b.s.work.byKey {
		b.same("the key of a workload", w.key(), key)
		if k, ok := firstLabel(w); ok && w.Kind == Service {
			services[k] = append(services[k], w.Name)
		}
	}
	b.same("the number of labels by which Services select first", len(b.s.work.services), len(services))
	for k, list := range b.s.work.services {
		var got []string
		for _, w := range list {
			got = append(got, w.Name)
			b.check(b.s.work.byKey[w.key()] == w, "Service %s/%s is an old one", w.Namespace, w.Name)
		}
		b.same(fmt.Sprint("the Services by ", k), slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(services[k])))
	}
}

func (b *broken) images() {
	nodes := map[string]int{}
	for _, n := range b.s.nodes {
		if n != nil {
			for _, i := range n.Images {
				nodes[i.Name]++
			}
		}
	}
	b.same("the nodes with images", b.s.images.nodes, nodes)
}

// names returns the names in lists as they stand.
func names[K comparable, O Object](lists map[K][]O) map[K][]string {
	out := map[K][]string{}
	for k, list := range lists {
		out[k] = []string{}
		for _, o := range list {
			out[k] = append(out[k], o.GetNamespace()+"/"+o.GetName())
		}
	}
	return out
}

// sortedByName sorts lists of namespace/name by name, then by namespace.
func sortedByName[K comparable](lists map[K][]string) map[K][]string {
	for k := range maps.Keys(lists) {
		slices.SortFunc(lists[k], func(x, y string) int {
			a, b, _ := strings.Cut(x, "/")
			c, d, _ := strings.Cut(y, "/")
			return cmp.Or(strings.Compare(b, d), strings.Compare(a, c))
		})
	}
	return lists
}
