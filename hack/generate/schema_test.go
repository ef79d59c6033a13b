package main

import (
	"strings"
	"testing"

	"github.com/berthproject/berth/internal/test/testkit"
)

// TestSchema keeps docs/reference/scenario.schema.json what the code says.
func TestSchema(t *testing.T) {
	s, err := schema()
	if err != nil {
		t.Fatal(err)
	}
	testkit.Generated(t, schemaFile, string(s), "make generate", false)
	if n := strings.Count(string(s), `"description"`); n < 60 {
		t.Errorf("only %d fields are described", n)
	}
}
