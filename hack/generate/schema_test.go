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

// TestAPISchema keeps edge/api/schema.json what the code says.
func TestAPISchema(t *testing.T) {
	s, err := apiSchema()
	if err != nil {
		t.Fatal(err)
	}
	testkit.Generated(t, apiFile, string(s), "make generate", false)
	if n := strings.Count(string(s), `"description"`); n < 100 {
		t.Errorf("only %d fields are described", n)
	}
}
