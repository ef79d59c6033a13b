package term

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/berthproject/berth/edge/api"
	"github.com/berthproject/berth/edge/reach"
	"github.com/berthproject/berth/sim/report"
)

// This file reads answers of the API.

// Source answers paths of the API: a running Berth (edge/reach), or a file (internal/page).
type Source interface {
	Get(ctx context.Context, path string) ([]byte, error)
}

// Streamer is a Source that tells of changes by itself, as reach.Connection does; a file doesn't.
type Streamer interface {
	Source
	Stream(ctx context.Context, path, after string, tell func(reach.Event) error) error
}

// StreamPath is the path of the stream.
const StreamPath = api.Prefix + "stream"

// Read returns the answer to a path below the API's prefix.
func Read[T any](ctx context.Context, from Source, path string) (*T, error) {
	raw, err := from.Get(ctx, api.Prefix+path)
	if err != nil {
		return nil, err
	}
	out := new(T)
	if _, exact := any(out).(*map[string]any); exact { // for -o json and the like
		err = json.Unmarshal(raw, out)
	} else {
		err = Decode(raw, out)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the response of Berth: %w", err)
	}
	return out, nil
}

// Decode reads JSON that is to be shown to people. Names and messages in it may be anybody's: they get one line each,
// and no control characters.
func Decode(raw []byte, out any) error { return json.Unmarshal(printableJSON(raw), out) }

// escapedLine are the letters behind a backslash that break a line or move in it.
const escapedLine = "nrtbf"

// printableJSON returns JSON whose texts are printable (sim/report): line breaks become spaces, and other unprintable
// runes are written as Go writes them.
func printableJSON(raw []byte) []byte {
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); {
		r, size := utf8.DecodeRune(raw[i:])
		if r == '\\' && i+1 < len(raw) { // an escape, which is in a text
			switch next := raw[i+1]; {
			case strings.IndexByte(escapedLine, next) >= 0:
				out, i = append(out, ' '), i+2
				continue
			case next == 'u' && i+6 <= len(raw):
				code, err := strconv.ParseUint(string(raw[i+2:i+6]), 16, 16)
				if r, size = rune(code), 6; err != nil {
					r = utf8.RuneError // for json.Unmarshal to refuse
				}
			default:
				size = 2
			}
		}
		if report.Unprintable(r) && (size > 1 || r >= ' ') { // what is left of one byte below a space is between texts
			out = append(out, strings.ReplaceAll(strings.Trim(strconv.QuoteToASCII(string(r)), `"`), `\`, `\\`)...)
		} else {
			out = append(out, raw[i:i+size]...)
		}
		i += size
	}
	return out
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
