package extender

import (
	"bytes"
	"encoding/json"
	"io"
	"runtime"
	"sync"
	"weak"

	v1 "k8s.io/api/core/v1"
)

// This file encodes what extenders are sent. To those that don't know the nodes themselves
// every question has all nodes, some 10 KiB each: a node is encoded once for each version that
// the cache has delivered, and the encodings are sent one after the other.

// nodeEncodings are the nodes that extenders are sent, as JSON. An encoding is kept as long as
// the cache keeps that version of the node. Its methods may be called by several goroutines.
type nodeEncodings struct {
	byNode sync.Map // weak.Pointer[v1.Node] to func() ([]byte, error)
}

// of returns a node as JSON.
func (e *nodeEncodings) of(n *v1.Node) ([]byte, error) {
	key := weak.Make(n)
	encode, known := e.byNode.Load(key)
	if !known {
		encode, known = e.byNode.LoadOrStore(key, sync.OnceValues(func() ([]byte, error) { return json.Marshal(n) }))
		if !known {
			runtime.AddCleanup(n, func(key weak.Pointer[v1.Node]) { e.byNode.Delete(key) }, key)
		}
	}
	return encode.(func() ([]byte, error))()
}

// body is what is sent with one call: its parts one after the other.
type body struct {
	parts [][]byte
	size  int64
}

// add appends parts without copying them: encodings of nodes are shared by many bodies.
func (b *body) add(parts ...[]byte) {
	for _, p := range parts {
		b.parts = append(b.parts, p)
		b.size += int64(len(p))
	}
}

// reader returns a reader of the whole body; each call begins anew.
func (b *body) reader() io.ReadCloser {
	readers := make([]io.Reader, len(b.parts))
	for i, p := range b.parts {
		readers[i] = bytes.NewReader(p)
	}
	return io.NopCloser(io.MultiReader(readers...))
}

// encoded returns the body of a value.
func encoded(v any) (*body, error) {
	raw, err := json.Marshal(v)
	b := &body{}
	b.add(raw)
	return b, err
}

// withNodes returns the body of an extenderv1.ExtenderArgs with whole nodes, of which there is
// one at least.
func (e *nodeEncodings) withNodes(pod *v1.Pod, nodes []*v1.Node) (*body, error) {
	raw, err := json.Marshal(pod)
	if err != nil {
		return nil, err
	}
	b := &body{parts: make([][]byte, 0, 2*len(nodes)+4)}
	b.add([]byte(`{"Pod":`), raw, []byte(`,"Nodes":{"metadata":{},"items":[`))
	comma := []byte(",")
	for i, n := range nodes {
		if raw, err = e.of(n); err != nil {
			return nil, err
		}
		if i > 0 {
			b.add(comma)
		}
		b.add(raw)
	}
	b.add([]byte(`]},"NodeNames":null}`))
	return b, nil
}
