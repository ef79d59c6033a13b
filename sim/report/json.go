package report

import (
	"encoding/json"
	"io"
)

// JSON writes a result.
func JSON(out io.Writer, result any) error {
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return enc.Encode(result)
}
