package cluster

import storagev1 "k8s.io/api/storage/v1"

// attachmentKind: an attachment says that a volume is attached to a node, or is to
// be. Local rules of that node read it. A volume that stands in the attachment
// itself, which only migration makes, isn't read, and may name secrets.
var attachmentKind = kindOf[*storagev1.VolumeAttachment]{
	new: func() *storagev1.VolumeAttachment { return &storagev1.VolumeAttachment{} },
	reads: func(o *storagev1.VolumeAttachment) *storagev1.VolumeAttachment {
		return &storagev1.VolumeAttachment{ObjectMeta: trimMeta(&o.ObjectMeta), Spec: storagev1.VolumeAttachmentSpec{
			Attacher: o.Spec.Attacher, NodeName: o.Spec.NodeName,
			Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: o.Spec.Source.PersistentVolumeName}}}
	},
	lookUp: func(b *objects, o *storagev1.VolumeAttachment, sign int) {
		enlist(b.attachmentsByNode, o.Spec.NodeName, o, sign)
		if volume := o.Spec.Source.PersistentVolumeName; volume != nil {
			enlist(b.attachmentsByVolume, *volume, o, sign)
		}
	},
	local: func(s *State, o *storagev1.VolumeAttachment, touch func(NodeIndex)) {
		s.touchNamed(o.Spec.NodeName, touch)
	},
}

// Attachments returns the volume attachments to a node, by name. The list is
// valid until the next change.
func (s *State) Attachments(node string) []*storagev1.VolumeAttachment {
	return s.objects.attachmentsByNode[node]
}
