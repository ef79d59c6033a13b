// Package bindloop makes the API calls of a scheduler without any scheduling: it binds
// each pending pod to the next node in turn, with the writes that allocate devices to its
// own claims, and writes the event Scheduled if wanted. No scheduler can bind more pods a second on that API server, so its rate is the ceiling
// that a benchmark reports beside the schedulers' rates.
package bindloop

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/berthproject/berth/devcluster/api"
)

// Command returns the component's command.
func Command() *cobra.Command {
	var kubeconfig, namespace string
	var events bool
	cmd := &cobra.Command{
		Use: "bindloop", Args: cobra.NoArgs, SilenceUsage: true,
		RunE: func(*cobra.Command, []string) error {
			ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			client, err := api.Dial(kubeconfig)
			if err != nil {
				return err
			}
			if err := run(ctx, client, namespace, events); err != nil {
				return err
			}
			<-ctx.Done()
			return nil
		},
	}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "")
	cmd.Flags().StringVar(&namespace, "namespace", "", "")
	cmd.Flags().BoolVar(&events, "events", false, "")
	return cmd
}

// run binds the pods of a namespace that have no node when it begins.
func run(ctx context.Context, client kubernetes.Interface, namespace string, events bool) error {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	pods, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=", ResourceVersion: "0"})
	if err != nil {
		return fmt.Errorf("listing pods: %w", err)
	}
	return api.Each(ctx, len(pods.Items), func(ctx context.Context, i int) error {
		p, node := &pods.Items[i], nodes.Items[i%len(nodes.Items)].Name
		if err := allocate(ctx, client, p, node); err != nil {
			return err
		}
		binding := &v1.Binding{
			ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, UID: p.UID},
			Target:     v1.ObjectReference{Kind: "Node", Name: node},
		}
		if err := client.CoreV1().Pods(p.Namespace).Bind(ctx, binding, metav1.CreateOptions{}); err != nil || !events {
			return err
		}
		_, err := client.EventsV1().Events(p.Namespace).Create(ctx, scheduled(p, node), metav1.CreateOptions{})
		return err
	})
}

// allocate makes the two writes of a scheduler for each claim that was made for a pod: one protects it
// from deletion, one says what is allocated. The devices need not exist.
func allocate(ctx context.Context, client kubernetes.Interface, p *v1.Pod, node string) error {
	claims := client.ResourceV1().ResourceClaims(p.Namespace)
	for _, s := range p.Status.ResourceClaimStatuses {
		c, err := claims.Get(ctx, *s.ResourceClaimName, metav1.GetOptions{ResourceVersion: "0"})
		if err != nil {
			return fmt.Errorf("reading a claim: %w", err)
		}
		c.Finalizers = []string{resourcev1.Finalizer}
		if c, err = claims.Update(ctx, c, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("protecting a claim: %w", err)
		}
		c.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: p.Name, UID: p.UID}}
		c.Status.Allocation = &resourcev1.AllocationResult{NodeSelector: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
			MatchFields: []v1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: v1.NodeSelectorOpIn, Values: []string{node}}}}}}}
		for i, r := range c.Spec.Devices.Requests {
			c.Status.Allocation.Devices.Results = append(c.Status.Allocation.Devices.Results,
				resourcev1.DeviceRequestAllocationResult{Request: r.Name, Driver: "driver.example.com", Pool: p.Name, Device: fmt.Sprint("device-", i)})
		}
		if _, err := claims.UpdateStatus(ctx, c, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("allocating to a claim: %w", err)
		}
	}
	return nil
}

// scheduled returns the event that a scheduler writes about a binding.
func scheduled(p *v1.Pod, node string) *eventsv1.Event {
	now := metav1.NewMicroTime(time.Now())
	return &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: fmt.Sprintf("%s.%x", p.Name, now.UnixNano())},
		EventTime:  now, ReportingController: "bindloop", ReportingInstance: "bindloop",
		Regarding: v1.ObjectReference{Kind: "Pod", APIVersion: "v1", Namespace: p.Namespace, Name: p.Name, UID: p.UID},
		Type:      v1.EventTypeNormal, Reason: "Scheduled", Action: "Binding",
		Note: fmt.Sprintf("Successfully assigned %s/%s to %s", p.Namespace, p.Name, node),
	}
}
