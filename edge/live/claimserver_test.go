package live

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/berthproject/berth/core/step"
)

// claimServer is an API server with resource claims that have versions, and refuses to write old ones and such
// as are reserved for too many pods.
// As a cache it has them as they were told last.
type claimServer struct {
	*fake.Clientset
	mu      sync.Mutex
	version int
	told    map[string]*resourcev1.ResourceClaim // what the cache has
	seen    int                                  // the version that it is at
	lag     bool                                 // it isn't told of writes
	calls   []string
	// before is called before each call, by its number; an error is the answer.
	before func(call int, what string) error
	slow   time.Duration // that each call takes
}

func newClaimServer(objects ...runtime.Object) *claimServer {
	s := &claimServer{Clientset: fake.NewClientset(objects...), told: map[string]*resourcev1.ResourceClaim{}, version: 10, seen: 10}
	for _, o := range objects {
		if c, ok := o.(*resourcev1.ResourceClaim); ok {
			s.told[c.Name] = c
		}
	}
	s.PrependReactor("*", "resourceclaims", s.react)
	return s
}

// react numbers the calls, and gives claims their versions.
func (s *claimServer) react(a clienttesting.Action) (bool, runtime.Object, error) {
	time.Sleep(s.slow)
	s.mu.Lock()
	defer s.mu.Unlock()
	what := a.GetVerb()
	if sub := a.GetSubresource(); sub != "" {
		what += " " + sub
	}
	s.calls = append(s.calls, what)
	if s.before != nil {
		if err := s.before(len(s.calls), what); err != nil {
			return true, nil, err
		}
	}
	resource := schema.GroupVersionResource{Group: "resource.k8s.io", Version: "v1", Resource: "resourceclaims"}
	write, ok := a.(clienttesting.CreateAction) // an update, too
	if !ok {
		return false, nil, nil
	}
	c := write.GetObject().(*resourcev1.ResourceClaim).DeepCopy()
	old, err := s.Tracker().Get(resource, c.Namespace, c.Name)
	if err == nil && a.GetVerb() == "create" {
		return true, nil, apierrors.NewAlreadyExists(resource.GroupResource(), c.Name)
	}
	if err == nil && old.(*resourcev1.ResourceClaim).ResourceVersion != c.ResourceVersion {
		return true, nil, apierrors.NewConflict(resource.GroupResource(), c.Name, errors.New("changed"))
	}
	if n := len(c.Status.ReservedFor); n > resourcev1.ResourceClaimReservedForMaxSize {
		tooMany := field.TooMany(field.NewPath("status", "reservedFor"), n, resourcev1.ResourceClaimReservedForMaxSize)
		return true, nil, apierrors.NewInvalid(resourcev1.SchemeGroupVersion.WithKind("ResourceClaim").GroupKind(), c.Name, field.ErrorList{tooMany})
	}
	s.set(c)
	return true, c, nil
}

// set writes a claim; the cache is told unless it lags.
func (s *claimServer) set(c *resourcev1.ResourceClaim) {
	s.version++
	c.ResourceVersion = fmt.Sprint(s.version)
	if c.UID == "" {
		c.UID = types.UID("uid-" + c.Name)
	}
	resource := schema.GroupVersionResource{Group: "resource.k8s.io", Version: "v1", Resource: "resourceclaims"}
	if err := s.Tracker().Update(resource, c, c.Namespace); apierrors.IsNotFound(err) {
		err = s.Tracker().Add(c)
		if err != nil {
			panic(err)
		}
	}
	if !s.lag {
		s.told[c.Name], s.seen = c, s.version
	}
}

func (s *claimServer) get(_, name string) *resourcev1.ResourceClaim {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.told[name]
}

func (s *claimServer) reached(version string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprint(s.seen) >= version // both have two digits
}

func (s *claimServer) claim(t *testing.T, name string) *resourcev1.ResourceClaim {
	t.Helper()
	c, err := s.Clientset.Tracker().Get(schema.GroupVersionResource{Group: "resource.k8s.io", Version: "v1", Resource: "resourceclaims"}, "ns", name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return c.(*resourcev1.ResourceClaim)
}

// storedClaim returns a claim of the API with a device, "" for none, and reservations.
func storedClaim(device string, pods ...types.UID) *resourcev1.ResourceClaim {
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "uid-c", ResourceVersion: "10"}}
	if device != "" {
		c.Finalizers = []string{resourcev1.Finalizer}
		c.Status.Allocation = &resourcev1.AllocationResult{}
		c.Status.Allocation.Devices.Results = []resourcev1.DeviceRequestAllocationResult{{Request: "gpu", Driver: "gpu.example", Pool: "n", Device: device}}
	}
	for _, uid := range pods {
		c.Status.ReservedFor = append(c.Status.ReservedFor, resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: string(uid), UID: uid})
	}
	return c
}

// deviceBind returns a bind of pod p with a claim that is to have device a.
func deviceBind() step.Bind {
	return step.Bind{Namespace: "ns", Name: "p", UID: "p", Node: "n", Profile: "default-scheduler", DeviceTimeout: time.Minute, DeviceClaims: []*resourcev1.ResourceClaim{storedClaim("a", "p")}}
}

// extendedBind returns a bind of pod p with a claim that was made for extended resources.
func extendedBind() step.Bind {
	b := deviceBind()
	c := b.DeviceClaims[0]
	yes := true
	c.UID, c.ResourceVersion, c.Name, c.Finalizers = "", "", "p-extended", nil
	c.Annotations = map[string]string{resourcev1.ExtendedResourceClaimAnnotation: "true"}
	c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "p", UID: "p", Controller: &yes}}
	b.ExtendedResources = []v1.ContainerExtendedResourceRequest{{ContainerName: "main", ResourceName: "example.com/gpu", RequestName: "container-0-request-0"}}
	return b
}
