package api

import (
	_ "embed"
	"encoding/json"
)

// schemaJSON is the JSON schema of all answers (make generate).
//
//go:embed schema.json
var schemaJSON []byte

// schema answers schema.
func schema(*request) (any, error) { return json.RawMessage(schemaJSON), nil }
