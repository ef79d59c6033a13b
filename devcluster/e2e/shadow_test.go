package e2e

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/berthproject/berth/internal/test/testkit"
)

// TestShadow runs a shadow beside kube-scheduler, which places a mixed workload and a Deployment
// that grows, shrinks and rolls. The rules allow every placement; of pods that come one after the
// other both programs choose the same nodes or such as are as good; and the shadow has asked the API
// server for nothing but lists, watches and who its callers are.
func TestShadow(t *testing.T) {
	t.Parallel()
	log := auditLog(t)
	c, client := startClusterWithLog(t, log)
	ctx := t.Context()
	d := &dropIn{t: t, client: client}
	d.createCluster()
	config := schedulerConfig(t, c, dropInConfig)
	port := freePort(t)
	server := fmt.Sprintf("https://127.0.0.1:%d", port)
	// A command line of kube-scheduler's works: what a shadow doesn't need is said.
	_, berthLog := startBerth(t, c, "--shadow", "--config", config, "--leader-elect=true", "--bind-address", "127.0.0.1", "--secure-port", fmt.Sprint(port))
	token := tokenFor(t, client, "reader", "/api/v1alpha1/*", "/debug/status", "/metrics")
	run := func(args ...string) (string, error) {
		out, err := exec.CommandContext(ctx, berth, append([]string{"shadow", "report", "--server", server, "--token-file", token, "--insecure-skip-tls-verify"}, args...)...).CombinedOutput()
		return string(out), err
	}
	var r struct {
		Compared, Waiting, Doubted int
		Verdicts                   counts
		Earlier                    struct{ Decided, NoNode, NotYet int }
		Berth, Other               struct{ Pods int }
	}
	read := func() bool {
		out, err := run("-o", "json")
		if err != nil {
			return false
		}
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatalf("%v in %s", err, out)
		}
		return true
	}
	eventually(t, "the shadow to know the cluster", func(context.Context) bool { return read() })

	// Nobody else places yet: the report says so.
	alone := pod("alone", "1")
	alone.Spec.NodeSelector = map[string]string{v1.LabelTopologyZone: "a"}
	create(t, client, alone)
	eventually(t, "the shadow to have a node for a pod", func(context.Context) bool { return read() && r.Waiting == 1 })
	if out, err := run(); err != nil || !strings.Contains(out, "no other scheduler has placed any of the 1 pod(s) for which Berth has a node") {
		t.Errorf("without another scheduler the report is (%v)\n%s", err, out)
	}
	if err := client.CoreV1().Pods(v1.NamespaceDefault).Delete(ctx, "alone", metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the pod to be placed only by Berth", func(context.Context) bool { return read() && r.Verdicts["onlyBerth"] == 1 })
	if out, err := run(); err != nil || !strings.Contains(out, "default/alone was placed only by Berth, on n") {
		t.Errorf("when the pod is gone the report is (%v)\n%s", err, out)
	}

	startScheduler(t, c, config)
	// One pod after the other: both programs see the same cluster.
	pods, _ := workload()
	quiet := 0
	for i := range pods {
		shape := *pods[i]
		name, claims := shape.Name, len(shape.Spec.Volumes) > 0
		if i%3 != 0 || claims || !slices.Contains([]string{"web", "api", "spread", "apart", "zoned", "port", "packed", "important"}, name[:len(name)-3]) {
			continue
		}
		x := shape.Obj()
		x.Name = "quiet-" + x.Name
		d.create(x)
		d.until("kube-scheduler", "one pod", func(now map[string]*v1.Pod) bool { return placed(now[x.Name]) })
		quiet++
		eventually(t, "the shadow to have compared it", func(context.Context) bool { return read() && r.Compared == quiet })
	}
	if r.Verdicts["same"]+r.Verdicts["equal"] != quiet || quiet < 25 {
		t.Errorf("of %d pods that came one after the other: %+v", quiet, r.Verdicts)
	}
	if err := client.CoreV1().Pods(v1.NamespaceDefault).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	d.until("nobody", "no pod", func(now map[string]*v1.Pod) bool { return len(now) == 0 })
	d.play("kube-scheduler")
	rollDeployment(d)
	total := len(d.pods(ctx))
	eventually(t, "the shadow to have compared", func(context.Context) bool { return read() && r.Waiting == 0 && r.Doubted == 0 && r.Compared >= total-9 })
	text, err := run()
	t.Logf("the report:\n%s", text)
	if err != nil || r.Verdicts["notAllowed"] != 0 || r.Compared < 250 || r.Verdicts["onlyBerth"] != 1 || r.Verdicts["same"] == 0 || r.Verdicts["equal"] == 0 {
		t.Errorf("the report (%v): %+v", err, r)
	}
	if r.Berth.Pods != r.Earlier.Decided || r.Berth.Pods != r.Other.Pods || r.Earlier.Decided+r.Earlier.NoNode+r.Earlier.NotYet != r.Compared {
		t.Errorf("the counts don't add up: %+v", r)
	}
	difference := regexp.MustCompile(`(?m)^ 1\. [0-9:.]+  (default/\S+ was placed (?:on|only)[^(;]*)`).FindStringSubmatch(text)
	if difference == nil {
		t.Fatal("the report names no difference")
	}

	file := filepath.Join(t.TempDir(), "shadow.json")
	asJSON, err := run("-o", "json")
	d.must(err)
	d.must(os.WriteFile(file, []byte(asJSON), 0o600))
	page, err := exec.CommandContext(ctx, berth, "shadow", "report", "--file", file, "-o", "html").CombinedOutput()
	if err != nil || !strings.Contains(string(page), template.HTMLEscapeString(strings.TrimSpace(difference[1]))) {
		t.Errorf("the page (%v):\n%.4000s", err, page)
	}
	if got := metric(t, server, token, `berth_shadow_pods_total{verdict="notAllowed"} `); got != "0" {
		t.Errorf("notAllowed is counted as %q", got)
	}

	// It has written nothing, and has asked for nothing that it may not do.
	onlyRead(t, log, "shadow")
	if _, err := client.CoordinationV1().Leases(metav1.NamespaceSystem).Get(ctx, "berth", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("reading the Lease of a Berth that leads: %v, want none to be there", err)
	}
	raw, err := os.ReadFile(berthLog)
	if err != nil || !strings.Contains(string(raw), "--leader-elect has no effect with --shadow") {
		t.Errorf("the log doesn't say that no Lease is needed (%v)", err)
	}
}

// onlyRead fails unless all that an audit log has was asked for by the account of a shadow's
// configuration, which was let, and is a read or a question about a caller.
func onlyRead(t *testing.T, audit, configuration string) {
	t.Helper()
	asked, err := readAudit(audit, 0)
	if err != nil {
		t.Fatal(err)
	}
	verbs := map[string]bool{}
	for _, a := range asked {
		if a.Configuration != configuration {
			t.Errorf("%s was asked for by %s", a, a.Configuration)
		}
		review := a.Verb == "create" && slices.Contains([]string{"tokenreviews", "subjectaccessreviews"}, a.Resource)
		verbs[a.Verb] = true
		if a.Forbidden || !review && !slices.Contains([]string{"get", "list", "watch"}, a.Verb) {
			t.Errorf("the shadow has asked for: %s (forbidden: %t)", a, a.Forbidden)
		}
	}
	if !verbs["watch"] {
		t.Errorf("the audit log has the verbs %v only", verbs)
	}
}

// rollDeployment has a Deployment grow, shrink, and roll to pods of another size.
func rollDeployment(d *dropIn) {
	d.t.Helper()
	ctx := d.t.Context()
	apps := d.client.AppsV1().Deployments(v1.NamespaceDefault)
	template := func(cpu string) v1.PodTemplateSpec {
		p := testkit.Pod("shop").Label("app", "shop").Req("cpu", cpu, "memory", "32Mi").
			SpreadSoft(v1.LabelTopologyZone, 1, "app", "shop").PreferApart(50, v1.LabelHostname, "app", "shop").PreferIn(5, v1.LabelTopologyZone, "b").Obj()
		p.Spec.Containers[0].Image = "none"
		p.Spec.TerminationGracePeriodSeconds = ptr.To[int64](0)
		return v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: p.Labels}, Spec: p.Spec}
	}
	x, err := apps.Create(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "shop"}, Spec: appsv1.DeploymentSpec{
		Replicas: ptr.To[int32](90), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop"}}, Template: template("50m")}}, metav1.CreateOptions{})
	d.must(err)
	runs := func(n int32) {
		d.t.Helper()
		d.until("kube-scheduler", fmt.Sprintf("%d pods of the Deployment", n), func(map[string]*v1.Pod) bool {
			x, err = apps.Get(ctx, "shop", metav1.GetOptions{})
			s := &x.Status
			return err == nil && s.ObservedGeneration == x.Generation && s.Replicas == n && s.UpdatedReplicas == n && s.AvailableReplicas == n
		})
	}
	runs(90)
	for _, n := range []int32{20, 60} {
		_, err := apps.UpdateScale(ctx, "shop", &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Namespace: v1.NamespaceDefault, Name: "shop"}, Spec: autoscalingv1.ScaleSpec{Replicas: n}}, metav1.UpdateOptions{})
		d.must(err)
		runs(n)
	}
	x.Spec.Template = template("80m")
	_, err = apps.Update(ctx, x, metav1.UpdateOptions{})
	d.must(err)
	runs(60)
}

// metric returns the value of a sample that a server has, by how its line begins.
func metric(t *testing.T, server, token, begins string) string {
	t.Helper()
	key, err := os.ReadFile(token)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(key)))
	web := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	resp, err := web.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(body), "\n") {
		if value, ok := strings.CutPrefix(line, begins); ok {
			return value
		}
	}
	return ""
}

// counts are numbers by verdict, of the list that the API has.
type counts map[string]int

// UnmarshalJSON implements json.Unmarshaler.
func (c *counts) UnmarshalJSON(raw []byte) error {
	var list []struct {
		Verdict string
		Count   int
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return err
	}
	*c = counts{}
	for _, x := range list {
		if x.Count > 0 {
			(*c)[x.Verdict] = x.Count
		}
	}
	return nil
}
