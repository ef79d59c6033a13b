package clusterapi

import (
	"cmp"
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
)

// This file has the objects of Cluster API, as far as they are read. The fields have the names of
// v1beta1 and of v1beta2; where these differ, both are here.

// scalable is a MachineDeployment, a MachineSet or a MachinePool. Caches share it: nobody changes one
// after it was read.
type scalable struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		ClusterName string `json:"clusterName"`
		Replicas    *int64 `json:"replicas"`
		// ProviderIDList has the instances of a MachinePool.
		ProviderIDList []string `json:"providerIDList"`
		Template       struct {
			Metadata struct {
				Labels map[string]string `json:"labels"`
			} `json:"metadata"`
			Spec struct {
				Taints []v1.Taint `json:"taints"`
			} `json:"spec"`
		} `json:"template"`
	} `json:"spec"`
	Status struct {
		// Replicas is how many Machines a MachineSet has.
		Replicas int64 `json:"replicas"`
		// NodeRefs are the nodes of a MachinePool.
		NodeRefs []nodeRef `json:"nodeRefs"`
	} `json:"status"`
	// unreadable is why nothing but the metadata could be read, "" when all could.
	unreadable string
}

type nodeRef struct {
	Name string `json:"name"`
}

// machine is a Machine.
type machine struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		ProviderID string `json:"providerID"`
	} `json:"spec"`
	Status struct {
		failures `json:",inline"`
		NodeRef  nodeRef `json:"nodeRef"`
		Phase    string  `json:"phase"`
		// Deprecated has what v1beta1 has in the status itself.
		Deprecated struct {
			V1Beta1 failures `json:"v1beta1"`
		} `json:"deprecated"`
	} `json:"status"`
}

// failures are what a Machine's status says about failures. v1beta2 has no reason and no message any
// more but for the deprecated copy, and tells by conditions.
type failures struct {
	FailureReason  string      `json:"failureReason"`
	FailureMessage string      `json:"failureMessage"`
	Conditions     []condition `json:"conditions"`
}

type condition struct {
	Type     string `json:"type"`
	Status   string `json:"status"`
	Severity string `json:"severity"` // of v1beta1
	Reason   string `json:"reason"`
	Message  string `json:"message"`
}

// The kinds of owners, and what a Machine's status may say.
const (
	machineDeployment   = "MachineDeployment"
	machineSet          = "MachineSet"
	machinePool         = "MachinePool"
	phaseFailed         = "Failed"
	infrastructureReady = "InfrastructureReady"
	severityError       = "Error"
	// insufficientResources is the failureReason of stock-outs and quotas.
	insufficientResources = "InsufficientResources"
)

// readScalable returns an object as it is kept. One that can't be read keeps its name and annotations:
// its group is shown as unreadable, and doesn't vanish with its nodes.
func readScalable(u *unstructured.Unstructured) *scalable {
	out := &scalable{}
	if err := read(u, out); err != nil {
		out = &scalable{ObjectMeta: metadata(u), unreadable: err.Error()}
	}
	trim(&out.ObjectMeta)
	return out
}

// readMachine returns a Machine as it is kept. One that can't be read is one that isn't a node.
func readMachine(u *unstructured.Unstructured) *machine {
	out := &machine{}
	if err := read(u, out); err != nil {
		out = &machine{ObjectMeta: metadata(u)}
	}
	trim(&out.ObjectMeta)
	return out
}

// read turns an object into a type by way of JSON, so that fields that aren't read may be of any type.
func read(u *unstructured.Unstructured, to any) error {
	raw, err := json.Marshal(u.Object)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, to)
}

// metadata returns what is read of the metadata of an object whose other fields can't be.
func metadata(u *unstructured.Unstructured) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: u.GetNamespace(), Name: u.GetName(), UID: u.GetUID(), ResourceVersion: u.GetResourceVersion(), DeletionTimestamp: u.GetDeletionTimestamp(),
		Labels: u.GetLabels(), Annotations: u.GetAnnotations(), OwnerReferences: u.GetOwnerReferences(),
	}
}

// trim drops what is large and never read.
func trim(m *metav1.ObjectMeta) {
	m.ManagedFields = nil
	delete(m.Annotations, v1.LastAppliedConfigAnnotation)
}

// owner returns the name of the object's owner of a kind, "" for none.
func owner(m *metav1.ObjectMeta, kind string) string {
	for _, ref := range m.OwnerReferences {
		if ref.Kind == kind {
			return ref.Name
		}
	}
	return ""
}

// key names a Machine among all.
func (m *machine) key() string { return "Machine/" + m.Namespace + "/" + m.Name }

// id returns how the Machine is known as an instance: by its provider ID, or by its key as long as
// it has none.
func (m *machine) id() string { return cmp.Or(m.Spec.ProviderID, m.key()) }

// instance returns the Machine as an instance of its group. A failure counts as long as there is no
// node: a node may become well again.
func (m *machine) instance() nodegroup.Instance {
	out := nodegroup.Instance{ID: m.id(), Node: m.Status.NodeRef.Name}
	if out.Node != "" {
		return out
	}
	for _, f := range []*failures{&m.Status.failures, &m.Status.Deprecated.V1Beta1} {
		if f.FailureMessage != "" || f.FailureReason != "" {
			out.Code, out.Failed = f.FailureReason, message(f.FailureReason, f.FailureMessage)
			if f.FailureReason == insufficientResources {
				out.Class = nodegroup.OutOfResources
			}
			return out
		}
		for _, c := range f.Conditions {
			if c.Type == infrastructureReady && c.Status == string(v1.ConditionFalse) && c.Severity == severityError {
				out.Code, out.Failed = c.Reason, message(c.Reason, c.Message)
				return out
			}
		}
	}
	if m.Status.Phase == phaseFailed {
		out.Code, out.Failed = phaseFailed, fmt.Sprintf("the phase of %s is %s", m.key(), phaseFailed)
	}
	return out
}

// message joins a reason and a message, of which one may be missing.
func message(reason, text string) string {
	return strings.TrimSuffix(strings.TrimPrefix(reason+": "+text, ": "), ": ")
}
