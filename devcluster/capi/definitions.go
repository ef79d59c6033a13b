package capi

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/yaml"
)

// The modules of Cluster API: the types, which this module requires, and all of it, of the same
// version, which has the definitions.
const (
	typesModule = "sigs.k8s.io/cluster-api/api"
	module      = "sigs.k8s.io/cluster-api"
)

// The resources that are played.
var (
	Deployments = clusterv1.GroupVersion.WithResource("machinedeployments")
	Sets        = clusterv1.GroupVersion.WithResource("machinesets")
	Pools       = clusterv1.GroupVersion.WithResource("machinepools")
	Machines    = clusterv1.GroupVersion.WithResource("machines")
)

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// Define creates the definitions, and returns when their objects are served.
func Define(ctx context.Context, objects dynamic.Interface) error {
	dir, err := moduleDir(ctx)
	if err != nil {
		return err
	}
	for _, r := range []schema.GroupVersionResource{Deployments, Sets, Pools, Machines} {
		raw, err := os.ReadFile(filepath.Join(dir, "core", "config", "crd", "bases", r.Group+"_"+r.Resource+".yaml"))
		if err != nil {
			return fmt.Errorf("reading a definition of Cluster API: %w", err)
		}
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(raw, &o.Object); err != nil {
			return fmt.Errorf("reading the definition of %s: %w", r.Resource, err)
		}
		if _, err := objects.Resource(definitions).Create(ctx, o, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("defining %s: %w", r.Resource, err)
		}
		err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
			_, err := objects.Resource(r).List(ctx, metav1.ListOptions{})
			return err == nil, nil
		})
		if err != nil {
			return fmt.Errorf("waiting until %s are served: %w", r.Resource, err)
		}
	}
	return nil
}

// moduleDir returns where Cluster API's module is, which is downloaded unless it was before.
func moduleDir(ctx context.Context) (string, error) {
	version, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Version}}", typesModule).Output()
	if err != nil {
		return "", fmt.Errorf("asking go for the version of %s: %w", typesModule, err)
	}
	raw, err := exec.CommandContext(ctx, "go", "mod", "download", "-json", module+"@"+strings.TrimSpace(string(version))).Output()
	var got struct{ Dir, Error string }
	if json.Unmarshal(raw, &got) != nil || got.Dir == "" {
		return "", fmt.Errorf("downloading %s: %w: %s", module, err, got.Error)
	}
	return got.Dir, nil
}
