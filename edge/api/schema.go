package api

import (
	_ "embed"
	"encoding/json"
)

// schemaJSON is the JSON schema of all answers (make generate).
//
//go:embed schema.json
var schemaJSON []byte

// schema answers schema, to any viewer: it says what answers look like, and nothing of the cluster. make generate
// writes it from the Go types in v1alpha1/.
func schema(*request) (any, error) { return json.RawMessage(schemaJSON), nil }
