package live

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/berthproject/berth/core/step"
)

// awaited is a DeviceWatcher that remembers.
type awaited struct {
	created []error
	status  []string
}

func (w *awaited) ClaimCreated(err error) { w.created = append(w.created, err) }
func (w *awaited) DevicesAwaited(profile string, _, conditional []string, status string, _ time.Duration) {
	w.status = append(w.status, fmt.Sprint(profile, conditional, status))
}

func (s *claimServer) binder() (*deviceBinder, *awaited, *[]string) {
	w, events := &awaited{}, &[]string{}
	return newDeviceBinder(s, s, func(e step.Event) { *events = append(*events, e.Reason+": "+e.Message) }, w), w, events
}

// anHour returns a context that ends after an hour of the test's own time: what is tried again for ever
// fails then.
func anHour(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	t.Cleanup(cancel)
	return ctx
}

// The ways in which the reservation of a claim ends.
func TestClaimsAreReservedOrTheBindFails(t *testing.T) {
	deleted := storedClaim("")
	deleted.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	deleted.Finalizers = []string{"x"}
	other := storedClaim("")
	other.UID = "another"
	conflict := func(change func(*resourcev1.ResourceClaim)) func(*claimServer) func(int, string) error {
		return func(s *claimServer) func(int, string) error {
			return func(call int, _ string) error {
				if call == 1 {
					c := storedClaim("")
					change(c)
					s.lag = true // the cache is behind
					s.set(c)
				}
				return nil
			}
		}
	}
	for _, c := range []struct {
		name   string
		stored *resourcev1.ResourceClaim
		before func(*claimServer) func(int, string) error
		want   string // the calls
		fails  string
		device string // of the claim in the end
		pods   int    // that it is reserved for
	}{
		{"free", storedClaim(""), nil, "update, update status", "", "a", 1},
		{"allocated by another pod that shares it", storedClaim("a", "q"), nil, "update status", "", "a", 2},
		{"reserved already", storedClaim("a", "p"), nil, "", "", "a", 1},
		{"allocated elsewhere", storedClaim("b", "q"), nil, "", "claim ns/c got allocated elsewhere in the meantime", "b", 1},
		{"being deleted", deleted, nil, "", "claim ns/c got deleted in the meantime", "", 0},
		{"another of that name", other, nil, "get", "claim ns/c got deleted in the meantime", "", 0},
		{"a label changes", storedClaim(""), conflict(func(c *resourcev1.ResourceClaim) { c.Labels = map[string]string{"x": "y"} }), "update, get, update, update status", "", "a", 1},
		{"another pod is faster with the same devices", storedClaim(""), conflict(func(c *resourcev1.ResourceClaim) { *c = *storedClaim("a", "q") }), "update, get, update status", "", "a", 2},
		{"somebody is faster with others", storedClaim(""), conflict(func(c *resourcev1.ResourceClaim) { *c = *storedClaim("b", "q") }), "update, get", "got allocated elsewhere", "b", 1},
		{"forbidden", storedClaim(""), func(*claimServer) func(int, string) error {
			return func(int, string) error { return apierrors.NewForbidden(schema.GroupResource{}, "c", errors.New("no")) }
		}, "update", "no", "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newClaimServer(c.stored)
				if c.before != nil {
					s.before = c.before(s)
				}
				b, _, _ := s.binder()
				bind := deviceBind()
				p, err := b.prepare(anHour(t), t.Context(), &bind)
				if c.fails == "" && err != nil || c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)) {
					t.Errorf("got %v, want %q", err, c.fails)
				}
				if got := strings.Join(s.calls, ", "); got != c.want {
					t.Errorf("calls %s, want %s", got, c.want)
				}
				got := s.claim(t, "c")
				if (got.Status.Allocation != nil) != (c.device != "") || c.device != "" && got.Status.Allocation.Devices.Results[0].Device != c.device || len(got.Status.ReservedFor) != c.pods {
					t.Errorf("the claim has status %+v, want device %q for %d pods", got.Status, c.device, c.pods)
				}
				if err == nil && (!slices.Contains(got.Finalizers, resourcev1.Finalizer) || got.Status.Allocation.AllocationTimestamp == nil && s.calls != nil) {
					t.Errorf("the claim lacks its finalizer or the time of its allocation: %+v", got)
				}
				if s.before = nil; b.takeBack(t.Context(), p) != nil {
					t.Error("it isn't taken back")
				}
				if got := s.claim(t, "c"); reservedFor(got, "p") || len(got.Status.ReservedFor) == 0 && got.Status.Allocation != nil {
					t.Errorf("after it was taken back the claim has status %+v", got.Status)
				}
			})
		})
	}
}

// An attempt without an answer may have been carried out: the claim is read again.
func TestLostAnswersToReservations(t *testing.T) {
	for _, bind := range []step.Bind{deviceBind(), extendedBind()} {
		for lost := 1; lost <= 4; lost++ {
			synctest.Test(t, func(t *testing.T) {
				s := newClaimServer(storedClaim(""), &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "p"}})
				calls := 0
				s.PrependReactor("*", "resourceclaims", func(a clienttesting.Action) (bool, runtime.Object, error) {
					if calls++; calls != lost {
						return false, nil, nil
					}
					if _, _, err := s.react(a); err != nil {
						return true, nil, err
					}
					return true, nil, errors.New("connection reset")
				})
				b, _, _ := s.binder()
				p, err := b.prepare(anHour(t), t.Context(), &bind)
				got := s.claim(t, bind.DeviceClaims[0].Name)
				if err != nil || got == nil || got.Status.Allocation == nil || len(got.Status.ReservedFor) != 1 {
					t.Fatalf("with answer %d lost: %v: %+v", lost, err, got)
				}
				if err := b.takeBack(t.Context(), p); err != nil {
					t.Error(err)
				}
				if got := s.claim(t, bind.DeviceClaims[0].Name); got != nil && (got.Status.Allocation != nil || bind.ExtendedResources != nil) {
					t.Errorf("with answer %d lost the claim is left: %+v", lost, got)
				}
			})
		}
	}
}

// TestClaimsForExtendedResources: the claim is created and told of in the pod's status; one that an
// earlier process has created is taken over; and it is deleted when the pod isn't bound.
func TestClaimsForExtendedResources(t *testing.T) {
	for _, before := range []string{"none", "own", "other requests", "somebody's"} {
		t.Run(before, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				bind := extendedBind()
				objects := []runtime.Object{&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "p"}}}
				left := bind.DeviceClaims[0].DeepCopy()
				left.UID, left.ResourceVersion, left.Status = "left", "10", resourcev1.ResourceClaimStatus{}
				switch before {
				case "other requests":
					left.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "old"}}
				case "somebody's":
					left.OwnerReferences = nil
				}
				if before != "none" {
					objects = append(objects, left)
				}
				s := newClaimServer(objects...)
				delete(s.told, left.Name)
				b, w, _ := s.binder()
				p, err := b.prepare(anHour(t), t.Context(), &bind)
				if calls := strings.Join(s.calls, ", "); before == "none" && calls != "create, update status" {
					t.Errorf("calls %s", calls)
				}
				if ok := before == "none" || before == "own"; ok != (err == nil) {
					t.Errorf("got %v", err)
				}
				if want := map[bool]int{true: 1}[before == "none"]; len(w.created) != want {
					t.Errorf("created %v, want %d", w.created, want)
				}
				pod, getErr := s.CoreV1().Pods("ns").Get(t.Context(), "p", metav1.GetOptions{})
				if told := pod.Status.ExtendedResourceClaimStatus; getErr != nil || (told != nil) != (err == nil) || told != nil && (told.ResourceClaimName != left.Name || len(told.RequestMappings) != 1) {
					t.Errorf("the pod's status says %+v, %v", told, getErr)
				}
				if err := b.takeBack(t.Context(), p); err != nil {
					t.Error(err)
				}
				if got := s.claim(t, left.Name); (got != nil) != (before == "somebody's") {
					t.Errorf("the claim after it was taken back: %+v", got)
				}
			})
		})
	}
}

// TestPodsAreToldWhileOtherClaimsAreWritten: of many pods with extended resources the first are ready while
// most claims of the others are still to be created.
func TestPodsAreToldWhileOtherClaimsAreWritten(t *testing.T) {
	const pods = 8 * bindWorkers
	s := newClaimServer()
	told, created := 0, 0 // pods that were told, and how many claims there were when a quarter was
	s.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if told++; told == pods/4 {
			created = len(s.told)
		}
		return false, nil, nil
	})
	b := newDeviceBinder(s, s, func(step.Event) {}, nil)
	var all sync.WaitGroup
	begin := make(chan struct{})
	for i := range pods {
		bind := extendedBind()
		bind.Name, bind.UID, bind.DeviceClaims[0].Name = fmt.Sprint("p", i), types.UID(fmt.Sprint("p", i)), fmt.Sprint("p", i, "-extended")
		if err := s.Tracker().Add(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: bind.Name, UID: bind.UID}}); err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			<-begin
			if _, err := b.prepare(t.Context(), t.Context(), &bind); err != nil {
				t.Error(err)
			}
		})
	}
	close(begin)
	all.Wait()
	if created == 0 || created > pods*3/4 {
		t.Errorf("%d of %d claims were created when a quarter of the pods was told of theirs, want at most three quarters", created, pods)
	}
}

// TestBindingConditions: a bind waits for the conditions of its devices, and fails with one of the
// failure conditions or after its time.
func TestBindingConditions(t *testing.T) {
	for _, c := range []struct{ name, condition, fails, status string }{
		{"ready", "Attached", "", "success"},
		{"failed", "Broken", `device binding failed: claim=c, reason=Why, message="what"`, "failure"},
		{"neither", "", "device binding timeout", "timeout"},
		{"another", "Other", "device binding timeout", "timeout"},
		{"unreserved", "unreserved", "is no longer reserved", "error"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newClaimServer(storedClaim(""))
				b, w, events := s.binder()
				bind := deviceBind()
				r := &bind.DeviceClaims[0].Status.Allocation.Devices.Results[0]
				r.BindingConditions, r.BindingFailureConditions = []string{"Attached"}, []string{"Broken"}
				go func() {
					time.Sleep(10 * time.Second)
					s.mu.Lock()
					defer s.mu.Unlock()
					now := s.told["c"].DeepCopy()
					if now.Status.Devices = []resourcev1.AllocatedDeviceStatus{{Driver: r.Driver, Pool: r.Pool, Device: r.Device,
						Conditions: []metav1.Condition{{Type: c.condition, Status: metav1.ConditionTrue, Reason: "Why", Message: "what"}}}}; c.condition == "unreserved" {
						now.Status = resourcev1.ResourceClaimStatus{}
					}
					s.set(now)
				}()
				began := time.Now()
				p, err := b.prepare(anHour(t), t.Context(), &bind)
				if c.fails == "" && err != nil || c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)) {
					t.Errorf("got %v, want %q", err, c.fails)
				}
				if took := time.Since(began); took < 10*time.Second || took > bind.DeviceTimeout+time.Second {
					t.Errorf("it took %s", took)
				}
				if want := []string{"default-scheduler[gpu.example]" + c.status}; !slices.Equal(w.status, want) {
					t.Errorf("told %q, want %q", w.status, want)
				}
				if want := []string{"BindingConditionsPending: waiting for binding conditions for device on node n"}; !slices.Equal(*events, want) {
					t.Errorf("events %q, want %q", *events, want)
				}
				if err := b.takeBack(t.Context(), p); err != nil {
					t.Error(err)
				}
				synctest.Wait()
			})
		})
	}
}

// TestOutcomesComeAfterTheClaimsAreTold: the core must not hear that a bind has failed before it was
// told what the API has of its claims.
func TestOutcomesComeAfterTheClaimsAreTold(t *testing.T) {
	for _, fails := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := newClaimServer(storedClaim(""), &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "p"}})
			s.lag = true
			s.PrependReactor("create", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
				if fails {
					return true, nil, apierrors.NewForbidden(schema.GroupResource{}, "p", errors.New("no"))
				}
				return true, nil, nil
			})
			load := &load{}
			b := newBinder(s, nil, &load.binds)
			b.devices, _, _ = s.binder()
			ctx, stop := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			b.run(ctx, &wg)
			var outcome error
			ended := false
			b.backlog <- b.add(deviceBind(), func(err error) { outcome, ended = err, true })
			time.Sleep(time.Minute)
			synctest.Wait()
			if ended {
				t.Error("the outcome has come before the claim was told")
			}
			s.mu.Lock()
			s.seen = s.version
			s.mu.Unlock()
			time.Sleep(time.Second)
			synctest.Wait()
			if !ended || (outcome != nil) != fails {
				t.Errorf("ended %t: %v", ended, outcome)
			}
			if got := s.claim(t, "c"); (got.Status.Allocation == nil) != fails {
				t.Errorf("the claim has %+v", got.Status)
			}
			stop()
			wg.Wait()
		})
	}
}

// TestClaimsAreDeallocated: a claim loses its devices in the version that was looked at only, and one that
// is to be deleted goes with its finalizer.
func TestClaimsAreDeallocated(t *testing.T) {
	for _, c := range []struct {
		name  string
		work  step.Deallocation
		lost  bool // the first answer to a write is
		fails string
		left  string // of the claim
	}{
		{"as it was", step.Deallocation{UID: "uid-c", Version: "10"}, false, "", "free"},
		{"the answer is lost", step.Deallocation{UID: "uid-c", Version: "10"}, true, "", "free"},
		{"changed", step.Deallocation{UID: "uid-c", Version: "9"}, false, "has changed in the meantime", "allocated"},
		{"another", step.Deallocation{UID: "uid-d", Version: "10"}, false, "", "allocated"},
		{"deleted", step.Deallocation{UID: "uid-c", Version: "10", Delete: true}, false, "", "gone"},
		{"deleted, the answer is lost", step.Deallocation{UID: "uid-c", Version: "10", Delete: true}, true, "", "gone"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newClaimServer(storedClaim("a", "p"))
				lost := c.lost
				s.PrependReactor("update", "resourceclaims", func(a clienttesting.Action) (bool, runtime.Object, error) {
					if !lost {
						return false, nil, nil
					}
					lost = false
					if _, _, err := s.react(a); err != nil {
						return true, nil, err
					}
					return true, nil, errors.New("connection reset")
				})
				b, _, _ := s.binder()
				c.work.Namespace, c.work.Name = "ns", "c"
				if err := b.deallocate(t.Context(), c.work); (err != nil) != (c.fails != "") || err != nil && !strings.Contains(err.Error(), c.fails) {
					t.Errorf("got %v, want %q", err, c.fails)
				}
				left := "gone"
				if got := s.claim(t, "c"); got != nil {
					left = map[bool]string{true: "allocated", false: "free"}[got.Status.Allocation != nil]
				}
				if left != c.left {
					t.Errorf("the claim is %s, want %s", left, c.left)
				}
			})
		})
	}
}
