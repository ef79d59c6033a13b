package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/berthproject/berth/devcluster/controlplane"
)

// This file runs the controllers of other projects that make the pods of jobs, as those projects build
// and configure them. Each is a tool of a module of its own (devcluster/jobs), since each pins its own
// versions of Kubernetes' modules.

// jobController is a program whose definitions, webhooks and defaults are in its module. Its objects are
// named NAME-… and in the namespace NAME-system.
type jobController struct {
	name      string
	module    string
	pkg       string // its main package
	manifests string // folder of the kustomization in the module
	config    string // version of its configuration file
	flags     []string
	more      string // lines of the configuration file
	needs     string // file of definitions of another module that its own requires: "MODULE FILE", "" for none
}

// The controllers. What they serve for people and Prometheus is off, so that tests beside each other don't
// want the same port.
var (
	kueue = jobController{name: "kueue", module: "sigs.k8s.io/kueue", pkg: "sigs.k8s.io/kueue/cmd/kueue", manifests: "config/default",
		config: "config.kueue.x-k8s.io/v1beta2", flags: []string{"--feature-gates=VisibilityOnDemand=false"},
		// Without its own rotation of certificates Kueue reads those of its metrics from /etc. It leaves
		// valid certificates as they are.
		more:  "namespace: kueue-system\nintegrations: {frameworks: [batch/job, pod]}\ninternalCertManagement: {enable: true}\n",
		needs: "k8s.io/autoscaler/cluster-autoscaler/apis config/crd/autoscaling.x-k8s.io_provisioningrequests.yaml"}
	jobSet = jobController{name: "jobset", module: "sigs.k8s.io/jobset", pkg: "sigs.k8s.io/jobset", manifests: "config/default",
		config: "config.jobset.x-k8s.io/v1alpha1", more: "internalCertManagement: {enable: false}\n"}
	leaderWorkerSet = jobController{name: "lws", module: "sigs.k8s.io/lws", pkg: "sigs.k8s.io/lws/cmd", manifests: "config/default",
		config: "config.lws.x-k8s.io/v1alpha1", more: "internalCertManagement: {enable: false}\n"}
)

// start builds the program, defines its resources and webhooks on a cluster, and runs it until the test
// ends. It returns when the webhooks are served.
func (j jobController) start(t *testing.T, c *controlplane.Cluster) {
	t.Helper()
	dir, program := t.TempDir(), filepath.Join(filepath.Dir(berth), j.name)
	j.run(t, "go", "build", "-ldflags=-w", "-o", program, j.pkg)
	server := newWebhookServer(t, dir, j.name)
	objects, err := dynamic.NewForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	j.define(t, objects, server)
	if module, file, ok := strings.Cut(j.needs, " "); ok {
		raw, err := os.ReadFile(filepath.Join(j.dir(t, module), filepath.FromSlash(file)))
		if err != nil {
			t.Fatal(err)
		}
		o := object(t, strings.TrimPrefix(string(raw), "---\n"))
		createObjects(t, objects, o)
		awaitServed(t, objects, o.GetName())
	}
	config := filepath.Join(dir, "config.yaml")
	text := fmt.Sprintf("apiVersion: %s\nkind: Configuration\nhealth: {healthProbeBindAddress: \"0\"}\nmetrics: {bindAddress: \"0\"}\n"+
		"leaderElection: {leaderElect: false}\nwebhook: {host: 127.0.0.1, port: %d, certDir: %s}\n%s", j.config, server.port, server.dir, j.more)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(dir, j.name+".log")
	p, err := controlplane.StartProcess(j.name, log, program, append([]string{"--kubeconfig=" + c.Kubeconfig, "--config=" + config}, j.flags...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Stop(10 * time.Second)
		if t.Failed() {
			raw, _ := os.ReadFile(log)
			t.Logf("the end of the log of %s:\n%s", j.name, raw[max(0, len(raw)-8<<10):])
		}
	})
	eventually(t, j.name+" to serve its webhooks", func(ctx context.Context) bool {
		if p.Ended() {
			t.Fatalf("%v", p.Wait())
		}
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", server.port))
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
}

// run runs a command in the module of the program, and returns what it prints.
func (j jobController) run(t *testing.T, program string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = filepath.Join("..", "jobs", j.name)
	var out, problem bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problem
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %s in %s: %v\n%s", program, strings.Join(args, " "), cmd.Dir, err, problem.Bytes())
	}
	return strings.TrimSpace(out.String())
}

// dir returns the folder of a module that the program's module requires.
func (j jobController) dir(t *testing.T, module string) string {
	t.Helper()
	return j.run(t, "go", "list", "-m", "-f", "{{.Dir}}", module)
}

// define creates the objects of the module's kustomization but for the Deployment and what belongs to
// it: namespace, definitions, webhooks and the Secret with their certificates.
func (j jobController) define(t *testing.T, objects dynamic.Interface, server webhookServer) {
	t.Helper()
	folder := filepath.Join(j.dir(t, j.module), filepath.FromSlash(j.manifests))
	all, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		t.Fatalf("kustomizing %s: %v", folder, err)
	}
	kinds := []string{"Namespace", "Secret", "CustomResourceDefinition", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}
	for _, kind := range kinds { // in this order
		for _, r := range all.Resources() {
			if r.GetKind() != kind {
				continue
			}
			text, err := r.AsYAML()
			if err != nil {
				t.Fatal(err)
			}
			o := object(t, string(text))
			if kind == "Secret" {
				o.Object["data"] = server.secret()
			}
			server.redirect(o.Object)
			createObjects(t, objects, o)
			if kind == "CustomResourceDefinition" {
				awaitServed(t, objects, o.GetName())
			}
		}
	}
}

// awaitServed waits until the objects of a definition are served.
func awaitServed(t *testing.T, objects dynamic.Interface, definition string) {
	t.Helper()
	eventually(t, definition+" to be served", func(ctx context.Context) bool {
		o, err := objects.Resource(crds).Get(ctx, definition, metav1.GetOptions{})
		if err != nil {
			return false
		}
		conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
		return slices.ContainsFunc(conditions, func(c any) bool {
			condition, _ := c.(map[string]any)
			return condition["type"] == "Established" && condition["status"] == "True"
		})
	})
}

// object returns the object of a text.
func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return o
}

// manifest returns the objects of a text, each after a line of three dashes.
func manifest(t *testing.T, text string) (out []*unstructured.Unstructured) {
	t.Helper()
	for part := range strings.SplitSeq(text, "\n---\n") {
		out = append(out, object(t, part))
	}
	return out
}

// resourceOf returns where an object is created, in the namespace default unless it names another.
func resourceOf(objects dynamic.Interface, o *unstructured.Unstructured) dynamic.ResourceInterface {
	plural, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
	of := objects.Resource(plural)
	clusterWide := []string{"Namespace", "CustomResourceDefinition", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration",
		"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "ClusterQueue", "ResourceFlavor", "AdmissionCheck", "ProvisioningRequestConfig"}
	if slices.Contains(clusterWide, o.GetKind()) {
		return of
	}
	if ns := o.GetNamespace(); ns != "" {
		return of.Namespace(ns)
	}
	return of.Namespace(v1.NamespaceDefault)
}

// createObjects creates objects. One whose definition or webhook isn't served yet is tried again.
func createObjects(t *testing.T, objects dynamic.Interface, all ...*unstructured.Unstructured) {
	t.Helper()
	for _, o := range all {
		var last error
		t.Cleanup(func() {
			if last != nil && t.Failed() {
				t.Logf("creating %s %s: %v", o.GetKind(), o.GetName(), last)
			}
		})
		eventually(t, fmt.Sprintf("%s %s to be accepted", o.GetKind(), o.GetName()), func(ctx context.Context) bool {
			_, last = resourceOf(objects, o).Create(ctx, o, metav1.CreateOptions{})
			if apierrors.IsInvalid(last) || apierrors.IsBadRequest(last) {
				t.Fatal(last)
			}
			return last == nil
		})
	}
}
