package live

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// answersInTurn are those to one kind of question: some errors, then the last for ever; nil is success.
type answersInTurn []error

func (a *answersInTurn) next() error {
	err := (*a)[0]
	if len(*a) > 1 {
		*a = (*a)[1:]
	}
	return err
}

// TestPropertyABindComesToAnEnd has an API server give any answers to a bind and to the question where the
// pod is, of which one is the answer for ever. The bind has an outcome within the time that each of
// its two stages has; it is success if the pod is bound, as far as the API server says so.
func TestPropertyABindComesToAnEnd(t *testing.T) {
	errs := []error{
		apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "p", errors.New("already assigned")),
		apierrors.NewForbidden(schema.GroupResource{}, "p", nil),
		apierrors.NewServiceUnavailable("webhook is away"),
		apierrors.NewTooManyRequests("later", 1),
		apierrors.NewInternalError(errors.New("etcdserver: request timed out")),
		apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "p"),
	}
	draw := func(t *rapid.T, what string, last ...error) (out answersInTurn) {
		out = rapid.SliceOfN(rapid.SampledFrom(errs), 0, 4).Draw(t, what)
		return append(out, rapid.SampledFrom(last).Draw(t, what+" in the end"))
	}
	rapid.Check(t, func(rt *rapid.T) {
		binding := draw(rt, "answers to the bind", append(errs, nil)...)
		read := draw(rt, "answers to the question", errs[1], errs[5], nil) // others pass some day
		node := rapid.SampledFrom([]string{"", "n", "m"}).Draw(rt, "where the pod is")
		var took time.Duration
		var err error
		var carriedOut, shown bool
		synctest.Test(t, func(t *testing.T) {
			client := fake.NewClientset(testkit.Pod("p").On(node).Obj())
			client.PrependReactor("create", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
				err := binding.next()
				carriedOut = carriedOut || err == nil
				return true, &v1.Binding{}, err
			})
			client.PrependReactor("get", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
				err := read.next()
				shown = shown || err == nil && node == "n"
				return err != nil, nil, err
			})
			begun := time.Now()
			ctx, stop := context.WithTimeout(t.Context(), 2*time.Hour)
			defer stop()
			err = newBinder(client, nil, &atomic.Int64{}).bind(ctx, step.Bind{UID: "pod-p", Namespace: "default", Name: "p", Node: "n"})
			took = time.Since(begun)
		})
		if took > 2*giveUpAfter+2*time.Minute {
			rt.Fatalf("the bind took %s, and then the outcome was: %v", took, err)
		}
		if (err == nil) != (carriedOut || shown) {
			rt.Fatalf("the bind was carried out: %v, or is shown: %v; the outcome is %v", carriedOut, shown, err)
		}
	})
}
