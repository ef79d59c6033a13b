package expander

import (
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"

	"google.golang.org/grpc/encoding"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/berthproject/berth/core/autoscaler/expander"
	"github.com/berthproject/berth/core/cluster"
)

// The messages of Cluster Autoscaler's expander protocol, package grpcplugin. They have
// so few fields that they are written and read here by hand:
//
//	service Expander { rpc BestOptions(BestOptionsRequest) returns (BestOptionsResponse) }
//	message BestOptionsRequest  { repeated Option options = 1; map<string, bytes> nodeBytesMap = 3; }
//	message BestOptionsResponse { repeated Option options = 1; }
//	message Option { string nodeGroupId = 1; int32 nodeCount = 2; string debug = 3; repeated bytes podBytes = 5; }
//
// podBytes are v1.Pods, nodeBytesMap has a v1.Node for each group: what a new node of it
// looks like. Both have the fields that Berth keeps of an object.

const (
	requestOptions  protowire.Number = 1
	requestNodes    protowire.Number = 3
	responseOptions protowire.Number = 1
	optionGroup     protowire.Number = 1
	optionNodes     protowire.Number = 2
	optionDebug     protowire.Number = 3
	optionPods      protowire.Number = 5
	entryKey        protowire.Number = 1 // of a map
	entryValue      protowire.Number = 2
)

// encodeRequest writes a BestOptionsRequest.
func encodeRequest(options []expander.Option) ([]byte, error) {
	var out []byte
	pods := podBytes{}
	groups := map[string]*cluster.NodeGroup{}
	for i := range options {
		o := &options[i]
		option, err := encodeOption(o, pods)
		if err != nil {
			return nil, err
		}
		out = appendBytes(out, requestOptions, option)
		groups[o.Group.ID] = o.Group
		for _, s := range o.Similar {
			groups[s.Group.ID] = s.Group
		}
	}
	for _, id := range slices.Sorted(maps.Keys(groups)) {
		node, err := templateOf(groups[id]).Marshal()
		if err != nil {
			return nil, fmt.Errorf("writing the template of node group %s: %w", id, err)
		}
		entry := appendBytes(nil, entryKey, []byte(id))
		out = appendBytes(out, requestNodes, appendBytes(entry, entryValue, node))
	}
	return out, nil
}

// encodeOption writes one option. Its pods are whole objects: servers may read anything of them.
func encodeOption(o *expander.Option, pods podBytes) ([]byte, error) {
	out := appendBytes(nil, optionGroup, []byte(o.Group.ID))
	out = protowire.AppendVarint(protowire.AppendTag(out, optionNodes, protowire.VarintType), uint64(o.Nodes))
	debug := fmt.Sprintf("%d pod(s) on %d node(s), %.0f %% of cpu and memory unused", o.Pods.Len(), o.Nodes, 50*o.Wasted)
	out = appendBytes(out, optionDebug, []byte(debug))
	for pod := range o.Pods.All() {
		b, err := pods.of(pod)
		if err != nil {
			return nil, fmt.Errorf("writing pod %s: %w", pod.Name(), err)
		}
		out = appendBytes(out, optionPods, b)
	}
	return out, nil
}

// podBytes are the pods as they are written: most pods are in several options.
type podBytes map[*cluster.Pod][]byte

// of returns a pod's bytes, which are made once.
func (p podBytes) of(pod *cluster.Pod) ([]byte, error) {
	if b, ok := p[pod]; ok {
		return b, nil
	}
	b, err := pod.Object.Marshal()
	p[pod] = b
	return b, err
}

// templateOf returns what a new node of a group looks like. Servers read its capacity,
// which templates needn't have: it is what can be allocated then.
func templateOf(g *cluster.NodeGroup) *v1.Node {
	n := *g.Template.Object
	if len(n.Status.Capacity) == 0 {
		n.Status.Capacity = n.Status.Allocatable
	}
	return &n
}

// decodeResponse returns the node groups that a BestOptionsResponse names. Fields that
// it doesn't know it skips.
func decodeResponse(b []byte) ([]string, error) {
	var groups []string
	err := fields(b, func(number protowire.Number, option []byte) error {
		if number != responseOptions {
			return nil
		}
		var id string
		err := fields(option, func(number protowire.Number, value []byte) error {
			if number == optionGroup {
				id = string(value)
			}
			return nil
		})
		groups = append(groups, id)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	return groups, nil
}

// fields calls f for each field of a message that has a length: a string, bytes or a
// message.
func fields(b []byte, f func(protowire.Number, []byte) error) error {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		if kind != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(number, kind, b); n < 0 {
				return protowire.ParseError(n)
			}
			b = b[n:]
			continue
		}
		value, n := protowire.ConsumeBytes(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		if err := f(number, value); err != nil {
			return err
		}
	}
	return nil
}

// appendBytes appends a field of bytes, or of a message.
func appendBytes(b []byte, number protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, number, protowire.BytesType), value)
}

// wire hands messages to grpc as they are written above.
type wire struct{}

var _ encoding.Codec = wire{}

// Marshal implements encoding.Codec.
func (wire) Marshal(v any) ([]byte, error) { return *v.(*[]byte), nil }

// Unmarshal implements encoding.Codec. The bytes are grpc's again afterwards.
func (wire) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = slices.Clone(data)
	return nil
}

// Name implements encoding.Codec: the content is protobuf to the server.
func (wire) Name() string { return "proto" }
