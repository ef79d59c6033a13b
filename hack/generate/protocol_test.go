package main

import (
	"path/filepath"
	"testing"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"

	"github.com/berthproject/berth/edge/provider/externalgrpc/protocol"
)

// TestTheCodeIsThatOfTheFile fails when externalgrpc.proto was changed without `make generate`.
func TestTheCodeIsThatOfTheFile(t *testing.T) {
	dir, name := filepath.Split(protoFile)
	compiler := protocompile.Compiler{Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{dir}})}
	files, err := compiler.Compile(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	want, got := protodesc.ToFileDescriptorProto(files[0]), protodesc.ToFileDescriptorProto(protocol.File_externalgrpc_proto)
	if !proto.Equal(got, want) {
		t.Errorf("the generated code isn't that of externalgrpc.proto; run make generate. It has\n%v\nand the file\n%v", got, want)
	}
}
