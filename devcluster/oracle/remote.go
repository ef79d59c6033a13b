package oracle

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// This file lets a program answer for the kube-scheduler that it is linked with: one program can't
// hold two versions of it. Questions and answers are JSON, a line each, over a pipe.

// Asked is an oracle, of this program or of another.
type Asked interface {
	// Set makes the plugins read a cluster, instead of the one before.
	Set(c *Cluster) error
	// Evaluate returns the answer about a pod for each node.
	Evaluate(ctx context.Context, pod *v1.Pod) (*Outcome, error)
}

var _, _ Asked = &Oracle{}, &Remote{}

// question is one line to the other program; exactly one field is set.
type question struct {
	New      *Setup       `json:"new,omitempty"` // of a new oracle, which replaces the one before
	Set      *wireCluster `json:"set,omitempty"`
	Evaluate *v1.Pod      `json:"evaluate,omitempty"`
}

// answer is one line back.
type answer struct {
	Error   string   `json:"error,omitempty"`
	Outcome *Outcome `json:"outcome,omitempty"`
}

// wireCluster is a Cluster whose objects say of which kind they are.
type wireCluster struct {
	Nodes     []*v1.Node
	Pods      []*v1.Pod
	Nominated []*v1.Pod
	Objects   []wireObject // first the cluster's workloads, then its other objects
	Workloads int          // how many of Objects are workloads
}

// wireObject is an object with its kind.
type wireObject struct {
	schema.GroupVersionKind
	Object json.RawMessage
}

// Remote is an oracle in another program, which Serve runs there. Its methods are for one goroutine.
type Remote struct {
	to   *json.Encoder
	from *bufio.Reader
}

// Connect returns an oracle of a program that reads questions from to and writes its answers to from,
// made as New makes it. An error says what that kube-scheduler refuses. A later Connect to the same
// program replaces the oracle.
func Connect(to io.Writer, from *bufio.Reader, setup Setup) (*Remote, error) {
	r := &Remote{to: json.NewEncoder(to), from: from}
	_, err := r.ask(question{New: &setup})
	return r, err
}

// Set implements Asked.
func (r *Remote) Set(c *Cluster) error {
	w := &wireCluster{Nodes: c.Nodes, Pods: c.Pods, Nominated: c.Nominated, Workloads: len(c.Workloads)}
	objects := append([]runtime.Object{}, c.Workloads...)
	for _, o := range c.Objects {
		objects = append(objects, o.(runtime.Object))
	}
	for _, o := range objects {
		kinds, _, err := scheme.Scheme.ObjectKinds(o)
		if err != nil {
			return err
		}
		raw, err := json.Marshal(o)
		if err != nil {
			return err
		}
		w.Objects = append(w.Objects, wireObject{kinds[0], raw})
	}
	_, err := r.ask(question{Set: w})
	return err
}

// Evaluate implements Asked.
func (r *Remote) Evaluate(_ context.Context, pod *v1.Pod) (*Outcome, error) {
	return r.ask(question{Evaluate: pod})
}

// ask sends a question and waits for its answer.
func (r *Remote) ask(q question) (*Outcome, error) {
	if err := r.to.Encode(q); err != nil {
		return nil, fmt.Errorf("asking the other oracle: %w", err)
	}
	line, err := r.from.ReadBytes('\n')
	if err != nil {
		return nil, fmt.Errorf("the other oracle has ended: %w", err)
	}
	a := answer{}
	if err := json.Unmarshal(line, &a); err != nil {
		return nil, fmt.Errorf("reading the other oracle's answer: %w", err)
	}
	if a.Error != "" {
		return nil, errors.New(a.Error)
	}
	return a.Outcome, nil
}

// Serve answers the questions of a Remote until they end.
func Serve(ctx context.Context, questions io.Reader, answers io.Writer) error {
	in, out := json.NewDecoder(questions), json.NewEncoder(answers)
	var o *Oracle
	for {
		q := question{}
		if err := in.Decode(&q); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return fmt.Errorf("reading a question: %w", err)
		}
		a := answer{}
		if err := q.answer(ctx, &o, &a); err != nil {
			a.Error = err.Error()
		}
		if err := out.Encode(a); err != nil {
			return fmt.Errorf("writing an answer: %w", err)
		}
	}
}

// answer answers a question into a. o is the oracle in force, which the question may replace.
func (q *question) answer(ctx context.Context, o **Oracle, a *answer) (err error) {
	switch {
	case q.New != nil:
		*o, err = New(ctx, *q.New)
	case *o == nil:
		err = errors.New("there is no oracle yet")
	case q.Set != nil:
		var c *Cluster
		if c, err = q.Set.cluster(); err == nil {
			err = (*o).Set(c)
		}
	case q.Evaluate != nil:
		a.Outcome, err = (*o).Evaluate(ctx, q.Evaluate)
	default:
		err = errors.New("a question without content")
	}
	return err
}

// cluster returns the cluster that was sent, without objects of versions that this program doesn't
// know: its kube-scheduler doesn't read them.
func (w *wireCluster) cluster() (*Cluster, error) {
	c := &Cluster{Nodes: w.Nodes, Pods: w.Pods, Nominated: w.Nominated}
	for i, x := range w.Objects {
		o, err := scheme.Scheme.New(x.GroupVersionKind)
		if runtime.IsNotRegisteredError(err) && i >= w.Workloads {
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(x.Object, o); err != nil {
			return nil, fmt.Errorf("decoding a %s: %w", x.Kind, err)
		}
		if i < w.Workloads {
			c.Workloads = append(c.Workloads, o)
		} else {
			c.Objects = append(c.Objects, o.(metav1.Object))
		}
	}
	return c, nil
}
