package term

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/berthproject/berth/edge/api"
)

// This file reads answers of the API.

// Source answers paths of the API: a running Berth (edge/reach), or a file (internal/page).
type Source interface {
	Get(ctx context.Context, path string) ([]byte, error)
}

// Read returns the answer to a path below the API's prefix.
func Read[T any](ctx context.Context, from Source, path string) (*T, error) {
	raw, err := from.Get(ctx, api.Prefix+path)
	if err != nil {
		return nil, err
	}
	out := new(T)
	if err := json.Unmarshal(raw, out); err != nil {
		return nil, fmt.Errorf("reading the response of Berth: %w", err)
	}
	return out, nil
}

// pageSize is how many items are read at a time: as many as the API gives.
const pageSize = "5000"

// ReadAll returns all pages of a list as one: path may have a query.
func ReadAll(ctx context.Context, from Source, path string) (map[string]any, error) {
	path, text, _ := strings.Cut(path, "?")
	query, err := url.ParseQuery(text)
	if err != nil {
		return nil, err
	}
	query.Set("limit", pageSize)
	var out map[string]any
	for {
		page, err := Read[map[string]any](ctx, from, path+"?"+query.Encode())
		if err != nil {
			return nil, err
		}
		if out == nil {
			out = *page
		} else {
			had, _ := out["items"].([]any)
			more, _ := (*page)["items"].([]any)
			out["items"] = append(had, more...)
		}
		next, _ := (*page)["continue"].(string)
		if delete(out, "continue"); next == "" {
			return out, nil
		}
		query.Set("continue", next)
	}
}

// escaped returns the path of an object: its name may have any letter.
func escaped(kind, name string) string {
	parts := strings.Split(name, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return kind + "/" + strings.Join(parts, "/")
}
