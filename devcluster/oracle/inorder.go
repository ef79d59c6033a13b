package oracle

import (
	"slices"
	"strings"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	storageinformers "k8s.io/client-go/informers/storage/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// inOrder has a factory's lister of CSIStorageCapacities list them by name. Of several from which a
// claim may be provisioned, kube-scheduler scores a node by any; Berth by the first by name.
func inOrder(factory informers.SharedInformerFactory) {
	factory.InformerFor(&storagev1.CSIStorageCapacity{}, func(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
		own := storageinformers.NewCSIStorageCapacityInformer(client, metav1.NamespaceAll, resync, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
		return &orderedInformer{own, orderedIndexer{own.GetIndexer()}}
	})
}

type orderedInformer struct {
	cache.SharedIndexInformer
	indexer cache.Indexer
}

// GetIndexer implements cache.SharedIndexInformer.
func (i *orderedInformer) GetIndexer() cache.Indexer { return i.indexer }

// orderedIndexer lists objects by name.
type orderedIndexer struct{ cache.Indexer }

// List implements cache.Store.
func (i orderedIndexer) List() []any {
	out := i.Indexer.List()
	slices.SortFunc(out, func(a, b any) int { return strings.Compare(nameOf(a), nameOf(b)) })
	return out
}

func nameOf(o any) string {
	if m, ok := o.(metav1.Object); ok {
		return m.GetName()
	}
	return ""
}
