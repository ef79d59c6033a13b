package door_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/door"
	"github.com/berthproject/berth/internal/test/testkit"
)

// Each of these takes between seconds and years to be read, or to be compared with 1.
var longAmounts = []struct{ text, want string }{
	{"4e9999999", "1e30"},
	{"4E+999999999", "1e30"},
	{"-4e999999999", "-1e30"},
	{"9223372036854775808e999999999", "1e30"},
	{"0.000001e2147483647", "1e30"},
	{"1e-999999999", "1e-9"},
	{"-1e-999999999", "-1e-9"},
	{"0.5e-2147483648", "1e-9"},
	{"0e999999999", "0"},
	{"0.0e-999999999", "0"},
	{"1e9223372036854775807", "1e30"},
	{"1e-9223372036854775808", "1e-9"},
	{"1" + strings.Repeat("0", 500) + "e-500", "1"},
	{"0." + strings.Repeat("0", 500) + "1e501", "1"},
	{"1" + strings.Repeat("0", 500), "1e30"},
}

func TestAmountsThatTakeForeverAreReadAtOnce(t *testing.T) {
	for _, c := range longAmounts {
		q, err := door.Amount(c.text)
		if want := resource.MustParse(c.want); err != nil || q.Cmp(want) != 0 || q.CmpInt64(1) != want.CmpInt64(1) {
			t.Errorf("%.40s is read as %s (%v), want %s", c.text, q.String(), err, c.want)
		}
	}
	for _, text := range []string{"", "e", "1e", "1e99999999999999999999", "x1e999", "1e999x", "1e9.9"} {
		if q, err := door.Amount(text); err == nil {
			t.Errorf("%q is read as %s, want an error", text, q.String())
		}
	}
}

// TestPropertyAmountsWithinTheBoundsAreReadAsKubernetesReadsThem compares with the library.
func TestPropertyAmountsWithinTheBoundsAreReadAsKubernetesReadsThem(t *testing.T) {
	amount := rapid.StringMatching(`[+-]?[0-9]{0,25}(\.[0-9]{0,25})?([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]{1,4})?`)
	rapid.Check(t, func(t *rapid.T) {
		text := amount.Draw(t, "amount")
		want, wantErr := resource.ParseQuantity(text)
		got, err := door.Amount(text)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%q: error %v, want %v", text, err, wantErr)
		}
		if most := resource.MustParse("1e30"); want.Cmp(most) > 0 {
			want = most
		} else if least := resource.MustParse("-1e30"); want.Cmp(least) < 0 {
			want = least
		}
		if got.Cmp(want) != 0 {
			t.Fatalf("%q is read as %s, want %s", text, got.String(), want.String())
		}
		if want.CmpInt64(math.MaxInt64) < 0 && got.String() != want.String() {
			t.Fatalf("%q is written as %s, want %s", text, got.String(), want.String())
		}
	})
}

// kindsWithAmounts are an object of each kind that Berth reads.
func kindsWithAmounts() []metav1.Object {
	out := []metav1.Object{&v1.Pod{}, &v1.Node{}, &appsv1.DaemonSet{}, &appsv1.Deployment{}, &appsv1.ReplicaSet{}, &appsv1.StatefulSet{}}
	for kind := cluster.NamespaceKind; cluster.NewObject(kind) != nil; kind++ {
		out = append(out, cluster.NewObject(kind))
	}
	return out
}

// TestEveryAmountOfEveryKindIsBounded writes amounts that can't be counted with everywhere where
// an object has one.
func TestEveryAmountOfEveryKindIsBounded(t *testing.T) {
	const seven = `"7"`
	found := 0
	for _, o := range kindsWithAmounts() {
		name := fmt.Sprintf("%T", o)
		testkit.Fill(o, "text") // amounts are 7, and no text is
		raw, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		n := strings.Count(string(raw), seven)
		found += n
		for _, c := range longAmounts {
			want := strings.ReplaceAll(string(raw), seven, `"`+c.want+`"`)
			into := reflect.New(reflect.TypeOf(o).Elem()).Interface()
			if err := door.Read([]byte(strings.ReplaceAll(string(raw), seven, `"`+c.text+`"`)), into); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			got, err := json.Marshal(into)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != want {
				t.Fatalf("%s with %.40s is\n%s\nwant\n%s", name, c.text, got, want)
			}
			spaced := reflect.New(reflect.TypeOf(o).Elem()).Interface()
			if err := door.Read([]byte(strings.ReplaceAll(string(raw), seven, "\" \u2003"+c.text+" \"")), spaced); err != nil || !reflect.DeepEqual(spaced, into) {
				t.Fatalf("%s with spaces around %.40s is %+v (%v), want %+v", name, c.text, spaced, err, into)
			}
		}
	}
	if found < 100 {
		t.Errorf("the kinds have %d amounts; the test should find more", found)
	}
}

// TestAmountsThatWereReadByOthersAreBounded has objects as an API server hands them out.
func TestAmountsThatWereReadByOthersAreBounded(t *testing.T) {
	for text, want := range map[string]string{"4e999999999": "1e30", "-4e999999999": "-1e30", "2e30": "1e30", "1e30": "1e30", "1e29": "100e27", "100m": "100m"} {
		pod := testkit.Pod("p").Req("cpu", text).Obj()
		pod.Spec.Volumes = []v1.Volume{{VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{SizeLimit: new(resource.MustParse(text))}}}}
		door.Object(pod)
		if q := pod.Spec.Containers[0].Resources.Requests[v1.ResourceCPU]; q.String() != want || pod.Spec.Volumes[0].EmptyDir.SizeLimit.String() != want {
			t.Errorf("%s is %s, want %s", text, q.String(), want)
		}
	}
}

// TestTextThatLooksLikeAnAmountStays reads what isn't an amount.
func TestTextThatLooksLikeAnAmountStays(t *testing.T) {
	raw := `{"metadata":{"name":"12e4567","labels":{"commit":"1e9999999","a<b":"4e-9999999"},"creationTimestamp":null},` +
		`"spec":{"CONTAINERS":[{"name":"c","image":"1e9999999","Resources":{"requests":{"cpu":4E9999999}}}],"priority":2147483647}}`
	pod := &v1.Pod{}
	if err := door.Read([]byte(raw), pod); err != nil {
		t.Fatal(err)
	}
	c := pod.Spec.Containers[0]
	if pod.Name != "12e4567" || pod.Labels["commit"] != "1e9999999" || pod.Labels["a<b"] != "4e-9999999" || c.Image != "1e9999999" || *pod.Spec.Priority != math.MaxInt32 {
		t.Errorf("the pod is %v", pod)
	}
	if q := c.Resources.Requests[v1.ResourceCPU]; q.String() != "1e30" {
		t.Errorf("it requests %s, want 1e30", q.String())
	}
	for _, bad := range []string{`{"metadata":`, `{} {"metadata":{"name":"1e999"}}`, `{"spec":{"overhead":{"cpu":"1e999","memory":true}}}`, `"1e999"`, `[1e999]`, `1e999`, ``} {
		if err := door.Read([]byte(bad), &v1.Pod{}); err == nil {
			t.Errorf("%s is read, want an error", bad)
		}
	}
}

// TestDigestsAreNoAmounts has a Node with the digests of 1,000 images, and the like, read as they
// are: JSON that may have a long exponent is taken apart, which takes five times as long. Where an
// amount may be, one is found.
func TestDigestsAreNoAmounts(t *testing.T) {
	n := testkit.Node("n-12e4567").Label("rev", "7e1234a").Alloc("cpu", "4")
	for i := range 1000 {
		sum := sha256.Sum256([]byte{byte(i), byte(i >> 8)})
		n.Images(1<<30, fmt.Sprintf("registry.example/a@sha256:%x", sum), fmt.Sprintf("registry.example/a:%x", sum[:4]))
	}
	node := n.Obj()
	node.UID = "12345e67-12e4-4e12-8e12-1e2345e67890"
	raw, err := json.Marshal(node)
	if err != nil {
		t.Fatal(err)
	}
	if got := door.Readable(raw, &v1.Node{}); &got[0] != &raw[0] {
		t.Error("a node without a long exponent is taken apart")
	}
	pods := []byte(`{"metadata":{"name":"1e999"}}`)
	if got := door.Readable(pods, &metav1.PartialObjectMetadata{}); &got[0] != &pods[0] {
		t.Error("what has no amounts in it is taken apart")
	}
	for _, amount := range []string{`1e999`, `-.5E-999`, `"1e+999"`, `" +1e9999 "`, "\"\u2003 0.1e999\u00a0\"", `"E1000"`} {
		raw := []byte(`{"a":` + amount + `,"b":[` + amount + `]}`)
		into := map[string]any{}
		if got := door.Readable(raw, &into); len(into) != 0 || string(got) != string(raw) {
			t.Errorf("%s: what has no type is changed to %s", raw, got)
		}
		list := []byte(`{"status":{"allocatable":{"cpu":` + amount + "\n}}}")
		if got := door.Readable(list, &v1.Node{}); &got[0] == &list[0] && json.Valid(list) {
			t.Errorf("the amount in %s is not found", list)
		}
	}
}

func BenchmarkObject(b *testing.B) {
	pod := cluster.Trim(testkit.Pod("p").Req("cpu", "100m", "memory", "1Gi").Obj())
	node := testkit.Node("n").Alloc("cpu", "4", "memory", "8Gi", "pods", "110").Obj()
	for name, o := range map[string]any{"pod": pod, "node": node} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				door.Object(o)
			}
		})
	}
}
