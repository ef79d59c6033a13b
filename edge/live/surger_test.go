package live

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/step"
)

// surgeable returns a Deployment that makes a successor first: one replica, and the defaults
// of the API.
func surgeable() *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", ResourceVersion: "7", Generation: 3}}
	d.Spec.Template.Annotations = map[string]string{cluster.SurgeAnnotation: "true", "mine": "kept"}
	d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType,
		RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: ptr.To(intstr.FromString("25%")), MaxUnavailable: ptr.To(intstr.FromString("25%"))}}
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: 3, Replicas: 1, UpdatedReplicas: 1}
	return d
}

func TestWhichDeploymentsSurge(t *testing.T) {
	rolling := func(surge, unavailable intstr.IntOrString) func(*appsv1.Deployment) {
		return func(d *appsv1.Deployment) {
			d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxSurge: &surge, MaxUnavailable: &unavailable}
		}
	}
	for _, c := range []struct {
		name   string
		change func(*appsv1.Deployment)
		want   string
	}{
		{"the defaults: 25 % are one more, and none less", func(*appsv1.Deployment) {}, ""},
		{"as many replicas as without a number", func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To(int32(1)) }, ""},
		{"one more", rolling(intstr.FromInt32(1), intstr.FromInt32(0)), ""},
		{"not opted in any more", func(d *appsv1.Deployment) { delete(d.Spec.Template.Annotations, cluster.SurgeAnnotation) }, `its pod template no longer has the annotation berth.dev/surge: "true"`},
		{"going", func(d *appsv1.Deployment) { d.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }, "it is being deleted"},
		{"two replicas", func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To(int32(2)) }, "a rollout would replace all of its 2 replicas"},
		{"paused", func(d *appsv1.Deployment) { d.Spec.Paused = true }, "it is paused"},
		{"Recreate", func(d *appsv1.Deployment) {
			d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
		}, "its strategy is Recreate, not RollingUpdate"},
		{"none more", rolling(intstr.FromInt32(0), intstr.FromInt32(1)), "its maxSurge allows no more than its replicas"},
		{"none more, in percent", rolling(intstr.FromString("0%"), intstr.FromInt32(1)), "its maxSurge allows no more than its replicas"},
		{"one less", rolling(intstr.FromInt32(1), intstr.FromInt32(1)), "its maxUnavailable would delete the pod first"},
		{"one less, in percent", rolling(intstr.FromInt32(1), intstr.FromString("100%")), "its maxUnavailable would delete the pod first"},
		{"a change that its controller hasn't seen", func(d *appsv1.Deployment) { d.Generation = 4 }, "a rollout is in progress, or its pod does not exist yet"},
		{"two pods, of which one is new", func(d *appsv1.Deployment) { d.Status.Replicas = 2 }, "a rollout is in progress, or its pod does not exist yet"},
		{"an old pod only", func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 0 }, "a rollout is in progress, or its pod does not exist yet"},
	} {
		d := surgeable()
		c.change(d)
		got := ""
		if why := whyNoSurge(d); why != nil {
			got = why.Error()
		}
		if got != c.want {
			t.Errorf("%s: it doesn't surge as %q, want %q", c.name, got, c.want)
		}
	}
}

// TestSurgeOutcomes: the patch names the version that was read; what has changed since is read
// again; and a Deployment that rolls for this surge already isn't patched twice.
func TestSurgeOutcomes(t *testing.T) {
	resource := schema.GroupResource{Group: "apps", Resource: "deployments"}
	conflict, gone, forbidden := apierrors.NewConflict(resource, "web", errors.New("changed")), apierrors.NewNotFound(resource, "web"), apierrors.NewForbidden(resource, "web", nil)
	const at = "1970-01-01T00:16:40Z"
	for _, c := range []struct {
		name    string
		change  func(*appsv1.Deployment)
		read    error
		patches []error
		want    int // patches
		fails   string
	}{
		{"rolls", nil, nil, []error{nil}, 1, ""},
		{"gone", nil, gone, nil, 0, `deployment default/web: deployments.apps "web" not found`},
		{"gone since", nil, nil, []error{gone}, 1, `deployment default/web: deployments.apps "web" not found`},
		{"changed since", nil, nil, []error{conflict, nil}, 2, ""},
		{"forbidden", nil, nil, []error{forbidden}, 1, `deployment default/web: deployments.apps "web" is forbidden: <nil>`},
		{"doesn't allow it", func(d *appsv1.Deployment) { d.Spec.Paused = true }, nil, nil, 0, "deployment default/web: it is paused"},
		{"rolls for this surge already", func(d *appsv1.Deployment) {
			d.Spec.Template.Annotations[cluster.SurgedAtAnnotation], d.Status.UpdatedReplicas = at, 0
		}, nil, nil, 0, ""},
		{"has rolled for another", func(d *appsv1.Deployment) {
			d.Spec.Template.Annotations[cluster.SurgedAtAnnotation] = "1970-01-01T00:00:00Z"
		}, nil, []error{nil}, 1, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := surgeable()
			if c.change != nil {
				c.change(d)
			}
			client := fake.NewClientset()
			client.PrependReactor("get", "deployments", func(clienttesting.Action) (bool, runtime.Object, error) { return true, d, c.read })
			patched := 0
			client.PrependReactor("patch", "deployments", func(a clienttesting.Action) (bool, runtime.Object, error) {
				patch := a.(clienttesting.PatchAction)
				var got map[string]any
				if err := json.Unmarshal(patch.GetPatch(), &got); err != nil {
					t.Fatal(err)
				}
				want := `map[metadata:map[resourceVersion:7] spec:map[template:map[metadata:map[annotations:map[berth.dev/surged-at:` + at + `]]]]]`
				if fmt.Sprint(got) != want || patch.GetPatchType() != types.MergePatchType {
					t.Errorf("got the %s patch %v, want %s", patch.GetPatchType(), got, want)
				}
				patched++
				return true, d, c.patches[patched-1]
			})
			err := newSurger(client).surge(t.Context(), step.Surge{UID: "u", Namespace: "default", Deployment: "web", Node: "n", At: time.Unix(1000, 0)})
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != c.fails || patched != c.want {
				t.Errorf("got %q after %d patches, want %q after %d", got, patched, c.fails, c.want)
			}
		})
	}
}

// TestDeploymentsSurgeTogether: a Deployment whose pod is a member of a group rolls only if those of the other
// members may, or do so for the same surge.
func TestDeploymentsSurgeTogether(t *testing.T) {
	at := time.Unix(1000, 0)
	for _, c := range []struct {
		name   string
		change func(*appsv1.Deployment) // of the other
		want   string
		until  time.Time
	}{
		{"both may", func(*appsv1.Deployment) {}, "", time.Time{}},
		{"nobody waits any more", func(*appsv1.Deployment) {}, "deployment default/web: context deadline exceeded", at},
		{"the other rolls for this surge", func(d *appsv1.Deployment) {
			d.Spec.Template.Annotations[cluster.SurgedAtAnnotation], d.Status.UpdatedReplicas = at.UTC().Format(time.RFC3339Nano), 0
		}, "", time.Time{}},
		{"the other rolls", func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 0 },
			"deployment default/web: it rolls together with deployment default/db: a rollout is in progress, or its pod does not exist yet", time.Time{}},
		{"the other is paused", func(d *appsv1.Deployment) { d.Spec.Paused = true },
			"deployment default/web: it rolls together with deployment default/db: it is paused", time.Time{}},
		{"the other is gone", nil, `deployment default/web: deployments.apps "db" not found`, time.Time{}},
	} {
		own, other := surgeable(), surgeable()
		other.Name = "db"
		objects := []runtime.Object{own}
		if c.change != nil {
			c.change(other)
			objects = append(objects, other)
		}
		client := fake.NewClientset(objects...)
		err := newSurger(client).surge(t.Context(), step.Surge{Namespace: "default", Deployment: "web", At: at, With: []string{"db"}, Until: c.until})
		got := ""
		if err != nil {
			got = err.Error()
		}
		now, readErr := client.AppsV1().Deployments("default").Get(t.Context(), "web", metav1.GetOptions{})
		if readErr != nil {
			t.Fatal(readErr)
		}
		rolls := now.Spec.Template.Annotations[cluster.SurgedAtAnnotation] != ""
		if got != c.want || rolls != (c.want == "") {
			t.Errorf("%s: %q, rolls: %t, want %q", c.name, got, rolls, c.want)
		}
	}
}
