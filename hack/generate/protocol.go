package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

// This file generates the Go code of a .proto file. It needs no protoc: it parses the file itself
// and runs the two plugins at pinned versions.

// plugins are run in this order. The first is of the version in go.mod.
var plugins = []string{
	"google.golang.org/protobuf/cmd/protoc-gen-go",
	"google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.0",
}

// writeCode writes the code of a .proto file beside it.
func writeCode(ctx context.Context, path string) error {
	dir, name := filepath.Split(path)
	compiler := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{dir}}),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	compiled, err := compiler.Compile(ctx, name)
	if err != nil {
		return err
	}
	request := &pluginpb.CodeGeneratorRequest{FileToGenerate: []string{name}, Parameter: proto.String("paths=source_relative")}
	withImports(compiled[0], map[string]bool{}, func(f *descriptorpb.FileDescriptorProto) { request.ProtoFile = append(request.ProtoFile, f) })
	in, err := proto.Marshal(request)
	if err != nil {
		return err
	}
	for _, plugin := range plugins {
		cmd := exec.CommandContext(ctx, "go", "run", plugin)
		cmd.Stdin, cmd.Stderr = bytes.NewReader(in), os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("running %s: %w", plugin, err)
		}
		var response pluginpb.CodeGeneratorResponse
		if err := proto.Unmarshal(out, &response); err != nil {
			return fmt.Errorf("reading the answer of %s: %w", plugin, err)
		}
		if response.Error != nil {
			return fmt.Errorf("%s: %s", plugin, *response.Error)
		}
		for _, f := range response.File {
			if err := os.WriteFile(filepath.Join(dir, f.GetName()), []byte(f.GetContent()), 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// withImports calls f with a file after all files that it imports, once each.
func withImports(d protoreflect.FileDescriptor, seen map[string]bool, f func(*descriptorpb.FileDescriptorProto)) {
	if seen[d.Path()] {
		return
	}
	seen[d.Path()] = true
	imports := d.Imports()
	for i := range imports.Len() {
		withImports(imports.Get(i).FileDescriptor, seen, f)
	}
	f(protodesc.ToFileDescriptorProto(d))
}
