package peers

import (
	"context"
	"crypto/tls"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/berthproject/berth/internal/test/devpki"
)

// This file has a server of Cluster Autoscaler's expander protocol, as an operator would write it:
// it speaks by the protocol's descriptor and the protobuf library, and shares no code with the
// client.

// message returns the descriptor of one of the protocol's messages.
func message(t testing.TB, name string) protoreflect.MessageDescriptor {
	t.Helper()
	const (
		text     = descriptorpb.FieldDescriptorProto_TYPE_STRING
		bytes    = descriptorpb.FieldDescriptorProto_TYPE_BYTES
		number   = descriptorpb.FieldDescriptorProto_TYPE_INT32
		other    = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE
		one      = descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL
		repeated = descriptorpb.FieldDescriptorProto_LABEL_REPEATED
	)
	field := func(name string, at int32, kind descriptorpb.FieldDescriptorProto_Type, label descriptorpb.FieldDescriptorProto_Label, of string) *descriptorpb.FieldDescriptorProto {
		f := &descriptorpb.FieldDescriptorProto{Name: &name, JsonName: &name, Number: &at, Type: kind.Enum(), Label: label.Enum()}
		if of != "" {
			f.TypeName = &of
		}
		return f
	}
	entry := &descriptorpb.DescriptorProto{
		Name: proto.String("NodeBytesMapEntry"), Options: &descriptorpb.MessageOptions{MapEntry: proto.Bool(true)},
		Field: []*descriptorpb.FieldDescriptorProto{field("key", 1, text, one, ""), field("value", 2, bytes, one, "")},
	}
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: proto.String("expander.proto"), Package: proto.String("grpcplugin"), Syntax: proto.String("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{
			{Name: proto.String("BestOptionsRequest"), NestedType: []*descriptorpb.DescriptorProto{entry}, Field: []*descriptorpb.FieldDescriptorProto{
				field("options", 1, other, repeated, ".grpcplugin.Option"), field("nodeBytesMap", 3, other, repeated, ".grpcplugin.BestOptionsRequest.NodeBytesMapEntry"),
			}},
			{Name: proto.String("BestOptionsResponse"), Field: []*descriptorpb.FieldDescriptorProto{field("options", 1, other, repeated, ".grpcplugin.Option")}},
			{Name: proto.String("Option"), Field: []*descriptorpb.FieldDescriptorProto{
				field("nodeGroupId", 1, text, one, ""), field("nodeCount", 2, number, one, ""), field("debug", 3, text, one, ""), field("podBytes", 5, bytes, repeated, ""),
			}},
		},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return file.Messages().ByName(protoreflect.Name(name))
}

// Value returns a field of a message.
func Value(m protoreflect.Message, field string) protoreflect.Value {
	return m.Get(m.Descriptor().Fields().ByName(protoreflect.Name(field)))
}

// Answerer says which node groups a server names.
type Answerer func(ctx context.Context, request protoreflect.Message) ([]string, error)

// ServeExpander runs a server on loopback with TLS until the test ends, and returns its address
// and the path of the certificate of its authority.
func ServeExpander(t testing.TB, answer Answerer) (address, cert string) {
	t.Helper()
	pair, cert := Certificate(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	request, response := message(t, "BestOptionsRequest"), message(t, "BestOptionsResponse")
	server := grpc.NewServer(grpc.Creds(credentials.NewServerTLSFromCert(&pair)))
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: "grpcplugin.Expander", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "BestOptions", Handler: func(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			in := dynamicpb.NewMessage(request)
			if err := decode(in); err != nil {
				return nil, err
			}
			groups, err := answer(ctx, in)
			if err != nil {
				return nil, err
			}
			out := dynamicpb.NewMessage(response)
			list := out.Mutable(response.Fields().ByName("options")).List()
			for _, id := range groups {
				option := list.NewElement().Message()
				option.Set(option.Descriptor().Fields().ByName("nodeCount"), protoreflect.ValueOfInt32(7)) // servers may send back what they got
				option.Set(option.Descriptor().Fields().ByName("nodeGroupId"), protoreflect.ValueOfString(id))
				list.Append(protoreflect.ValueOfMessage(option))
			}
			return out, nil
		}}},
	}, nil)
	done := make(chan error)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String(), cert
}

// Certificate makes a certificate for loopback, and returns the path of that of its authority, too.
func Certificate(t testing.TB) (tls.Certificate, string) {
	t.Helper()
	authority, err := devpki.New(t.TempDir(), "ca")
	if err != nil {
		t.Fatal(err)
	}
	if err := authority.Issue("server", "expander"); err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(authority.Path("server.crt"), authority.Path("server.key"))
	if err != nil {
		t.Fatal(err)
	}
	return pair, authority.Path("ca.crt")
}
