package follow

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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/berthproject/berth/internal/test/testkit"
)

func claim(name, uid, version string) *v1.PersistentVolumeClaim {
	return &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(uid), ResourceVersion: version}}
}

func claims(client *fake.Clientset, o Options) *Cache {
	return New("claims", &v1.PersistentVolumeClaim{}, client.CoreV1().PersistentVolumeClaims("ns"), client, o)
}

func nameOf(object any) string { return object.(metav1.Object).GetName() }

// TestTheReaderIsToldWhatHasChanged plays a reflector's calls by hand: of an object that is as it
// was a list tells nothing, and nothing is told of the deletion of one that nobody was told of.
func TestTheReaderIsToldWhatHasChanged(t *testing.T) {
	var got []string
	set := func(o any) { got = append(got, "set "+nameOf(o)) }
	gone := func(o any) { got = append(got, fmt.Sprint("gone ", nameOf(o), " ", uidOf(o))) }
	replaced := func(old, o any) { got = append(got, fmt.Sprint("replaced ", nameOf(o), " ", uidOf(old))) }
	c := claims(fake.NewClientset(), Options{})
	s := (*store)(c)
	c.Tell(Reader{set, gone, nil})
	for _, x := range []struct {
		name string
		call func() error
		want []string
	}{
		{"added", func() error { return s.Add(claim("a", "1", "10")) }, []string{"set a"}},
		{"changed", func() error { return s.Update(claim("a", "1", "11")) }, []string{"set a"}},
		{"another one of its name", func() error { return s.Update(claim("a", "2", "12")) }, []string{"gone a 1", "set a"}},
		{"added again", func() error { return s.Add(claim("a", "3", "13")) }, []string{"gone a 2", "set a"}},
		{"deleted", func() error { return s.Delete(claim("a", "3", "14")) }, []string{"gone a 3"}},
		{"deleted again", func() error { return s.Delete(claim("a", "3", "14")) }, nil},
		{"a list", func() error {
			return s.Replace([]any{claim("c", "4", "20"), claim("b", "5", "21"), claim("d", "6", "22"), claim("e", "7", "23")}, "30")
		}, []string{"set c", "set b", "set d", "set e"}},
		{"a reader who knows replaced objects", func() error { c.Tell(Reader{set, gone, replaced}); return nil }, []string{"set b", "set c", "set d", "set e"}},
		{"another list", func() error {
			return s.Replace([]any{claim("f", "8", "40"), claim("c", "4", "20"), claim("b", "5", "41"), claim("d", "9", "42")}, "50")
		}, []string{"gone e 7", "set f", "set b", "replaced d 6"}},
		{"nobody listens", func() error { c.Tell(Reader{}); return s.Delete(claim("f", "8", "51")) }, nil},
		{"an empty list", func() error { c.Tell(Reader{Gone: gone}); return s.Replace(nil, "60") }, []string{"gone b 5", "gone c 4", "gone d 9"}},
	} {
		got = nil
		if err := x.call(); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, x.want) {
			t.Errorf("%s: got %q, want %q", x.name, got, x.want)
		}
	}
}

// TestOutcomesAreTold follows an API that refuses to list until it is asked the third time: each
// attempt's outcome is told, and the cache is full after the one that succeeds.
func TestOutcomesAreTold(t *testing.T) {
	testkit.WithoutErrorBackoff(t)
	synctest.Test(t, func(t *testing.T) {
		client, asked := fake.NewClientset(claim("a", "1", "10"), claim("left out", "2", "11")), 0
		client.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
			if asked++; asked < 3 {
				return true, nil, apierrors.NewInternalError(errors.New("refused"))
			}
			return false, nil, nil
		})
		client.PrependWatchReactor("*", func(clienttesting.Action) (bool, apiwatch.Interface, error) { return true, apiwatch.NewFake(), nil })
		var outcomes []string
		c := claims(client, Options{
			Match:     func(o *metav1.ListOptions) { o.LabelSelector = "!left-out" },
			Transform: func(o any) (any, error) { o.(metav1.Object).SetLabels(map[string]string{"kept": "yes"}); return o, nil },
			Outcome:   func(err error) { outcomes = append(outcomes, fmt.Sprint(err)) },
		})
		ctx, stop := context.WithCancel(t.Context())
		ended, end := context.WithTimeoutCause(t.Context(), time.Nanosecond, errors.New("too early"))
		defer end()
		if err := c.Wait(ended); c.Full() || err == nil || !strings.Contains(err.Error(), "claims: too early") {
			t.Errorf("before it runs it is full: %t, and waiting ends with %v", c.Full(), err)
		}
		var wg sync.WaitGroup
		wg.Go(func() { c.Run(ctx) })
		if err := c.Wait(t.Context()); err != nil || !c.Full() {
			t.Errorf("full: %t, %v", c.Full(), err)
		}
		synctest.Wait()
		if len(outcomes) != 4 || !strings.Contains(outcomes[0], "refused") || outcomes[2] != "<nil>" || outcomes[3] != "<nil>" {
			t.Errorf("the outcomes are %q, want two refusals, a list and a watch", outcomes)
		}
		for _, o := range c.Objects().List() {
			if o.(metav1.Object).GetLabels()["kept"] != "yes" {
				t.Errorf("%s is kept as it came", nameOf(o))
			}
		}
		if n := len(c.Objects().List()); n == 0 {
			t.Error("the cache is empty")
		}
		for _, a := range client.Actions() {
			if l, ok := a.(clienttesting.ListAction); ok && l.GetListRestrictions().Labels.String() != "!left-out" {
				t.Errorf("objects are listed with %q", l.GetListRestrictions().Labels)
			}
		}
		stop()
		wg.Wait()
	})
}
