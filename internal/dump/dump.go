// Package dump is berth dump: the objects of a cluster in a file that berth simulate, plan, explain, status and ui
// read.
//
// What must hold:
//   - an object is written with the fields that Berth reads and no others (cluster.Trim): no environment variables,
//     commands, names of secrets, annotations of others;
//   - nothing is asked for but lists of the kinds below, in pages, and a kind that may not be listed is named.
package dump

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	cliflag "k8s.io/component-base/cli/flag"
	"sigs.k8s.io/yaml"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/edge/reach"
	"github.com/berthproject/berth/internal/term"
)

// resource is what is listed.
type resource struct {
	name, group string
	// needed says that a dump without it is useless.
	needed bool
	list   func(c kubernetes.Interface) rest.Interface
}

// resources are in the order of the dump.
var resources = []resource{
	{"nodes", "", true, core}, {"pods", "", true, core},
	{"poddisruptionbudgets", "policy", false, func(c kubernetes.Interface) rest.Interface { return c.PolicyV1().RESTClient() }},
	{"services", "", false, core}, {"replicationcontrollers", "", false, core},
	{"replicasets", "apps", false, apps}, {"statefulsets", "apps", false, apps}, {"daemonsets", "apps", false, apps},
	{"jobs", "batch", false, func(c kubernetes.Interface) rest.Interface { return c.BatchV1().RESTClient() }},
	{"namespaces", "", false, core}, {"persistentvolumeclaims", "", false, core}, {"persistentvolumes", "", false, core},
	{"storageclasses", "storage.k8s.io", false, storage}, {"csinodes", "storage.k8s.io", false, storage}, {"csidrivers", "storage.k8s.io", false, storage},
	{"csistoragecapacities", "storage.k8s.io", false, storage}, {"volumeattachments", "storage.k8s.io", false, storage},
	{"deviceclasses", "resource.k8s.io", false, devices}, {"resourceslices", "resource.k8s.io", false, devices}, {"resourceclaims", "resource.k8s.io", false, devices},
	{"podgroups", "scheduling.k8s.io", false, func(c kubernetes.Interface) rest.Interface { return c.SchedulingV1beta1().RESTClient() }},
}

func core(c kubernetes.Interface) rest.Interface    { return c.CoreV1().RESTClient() }
func apps(c kubernetes.Interface) rest.Interface    { return c.AppsV1().RESTClient() }
func storage(c kubernetes.Interface) rest.Interface { return c.StorageV1().RESTClient() }
func devices(c kubernetes.Interface) rest.Interface { return c.ResourceV1().RESTClient() }

// Command returns berth dump. program returns what the user has typed to call this program.
func Command(program func(*cobra.Command) string) *cobra.Command {
	from, role := &reach.Flags{}, false
	cmd := &cobra.Command{
		Use:   "dump",
		Short: "Write the objects of a cluster to a file for simulate, plan, explain, status and ui",
		Long: `Dump writes the nodes, pods and other objects of a cluster that decide about scheduling
and scaling as YAML to standard output: what berth simulate, plan and ui read, and
explain and status with --file. It asks the API server with the credentials of your
kubeconfig, and no Berth needs to run. An object is written without what Berth doesn't
read: environment variables, commands, names of secrets, annotations of others.

The only right needed is to list these objects; --role prints a ClusterRole with just
that. A kind that you may not list is left out and named, except nodes and pods.`,
		Example: `  kubectl berth dump > cluster.yaml
  berth dump | berth simulate -
  berth explain pod default/web-0 --file cluster.yaml
  berth dump --role | kubectl apply -f -`,
		Args:              term.NoArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if role {
				return writeRole(cmd.OutOrStdout())
			}
			if err := from.Validate(); err != nil {
				return term.Usage(err)
			}
			client, err := from.Client()
			if err != nil {
				return err
			}
			return Write(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), client, program(cmd))
		},
	}
	var s cliflag.NamedFlagSets
	s.FlagSet("misc").BoolVar(&role, "role", false, "print the ClusterRole that the command needs, and exit")
	from.RegisterKubeconfig(s.FlagSet("connection"))
	term.SetSections(cmd, s)
	from.Complete(cmd)
	return cmd
}

// pageSize is how many objects are listed at a time.
const pageSize = 500

// Write writes the objects of a cluster, and notes about kinds that are left out. called is what the user has typed
// to call this program.
func Write(ctx context.Context, out, notes io.Writer, client kubernetes.Interface, called string) error {
	for _, r := range resources {
		err := r.write(ctx, out, r.list(client))
		switch {
		case err == nil, apierrors.IsNotFound(err): // the API server doesn't serve the kind
		case apierrors.IsUnauthorized(err):
			return fmt.Errorf("the API server rejects the credentials of the kubeconfig: %w; log in again, or choose another --context", err)
		case apierrors.IsForbidden(err) && !r.needed:
			fmt.Fprintf(notes, "left out: not authorized to list %s (403)\n", r)
		case apierrors.IsForbidden(err):
			return fmt.Errorf("not authorized to list %s (403); a cluster administrator can grant it with: %s dump --role | kubectl apply -f -, and kubectl create clusterrolebinding berth-dump-NAME --clusterrole=berth-dump --user=NAME", r, called)
		default:
			return fmt.Errorf("listing %s: %w", r, err)
		}
	}
	return nil
}

// String returns the resource with its group, as kubectl writes it.
func (r resource) String() string {
	if r.group == "" {
		return r.name
	}
	return r.name + "." + r.group
}

// write writes all objects of a kind.
func (r resource) write(ctx context.Context, out io.Writer, from rest.Interface) error {
	opt := metav1.ListOptions{Limit: pageSize}
	for {
		list, err := from.Get().Resource(r.name).VersionedParams(&opt, scheme.ParameterCodec).Do(ctx).Get()
		if err != nil {
			return err
		}
		if err := meta.EachListItem(list, func(o runtime.Object) error { return writeObject(out, o) }); err != nil {
			return err
		}
		m, err := meta.ListAccessor(list)
		if err != nil {
			return err
		}
		if opt.Continue = m.GetContinue(); opt.Continue == "" {
			return nil
		}
	}
}

// writeObject writes an object as a YAML document.
func writeObject(out io.Writer, o runtime.Object) error {
	kinds, _, err := scheme.Scheme.ObjectKinds(o)
	if err != nil {
		return err
	}
	m, err := meta.Accessor(o)
	if err != nil {
		return err
	}
	trimmed := cluster.Trim(m).(runtime.Object)
	trimmed.GetObjectKind().SetGroupVersionKind(kinds[0])
	text, err := yaml.Marshal(trimmed)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "---\n%s", text)
	return err
}
