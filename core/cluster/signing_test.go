package cluster_test

import (
	"testing"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core/cluster"
)

// TestSignatureInputs: a change of an object that a signature may read is one, and a CSINode isn't, also
// when it is undone.
func TestSignatureInputs(t *testing.T) {
	s := cluster.New(cluster.NewSchema())
	for _, c := range []struct {
		object cluster.Object
		counts bool
	}{
		{&storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, false},
		{&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}}, true},
	} {
		before, mark := s.SignatureInputs(), s.Mark()
		s.SetObject(c.object)
		if changed := s.SignatureInputs() != before; changed != c.counts {
			t.Errorf("%T: signatures may have changed: %t, want %t", c.object, changed, c.counts)
		}
		s.Rollback(mark)
		if changed := s.SignatureInputs() != before; changed != c.counts {
			t.Errorf("%T undone: signatures may have changed: %t, want %t", c.object, changed, c.counts)
		}
	}
}
