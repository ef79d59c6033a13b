package scenario

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"sigs.k8s.io/yaml"
)

// readManifest calls f with each object of a file as JSON, and with the line
// where it begins. Lists, as kubectl writes them, are taken apart item by item
// so that a large dump never is in memory as a tree.
func readManifest(path string, f func(raw []byte, line int) error) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("reading %s: %w", path, cause(err))
	}
	defer file.Close()
	in := bufio.NewReaderSize(file, 1<<20)
	named := func(raw []byte, line int) error {
		if err := f(raw, line); err != nil {
			return fmt.Errorf("%s:%d: %w", path, line, err)
		}
		return nil
	}
	first, err := in.Peek(1)
	for err == nil && strings.ContainsRune(" \t\r\n", rune(first[0])) {
		_, _ = in.ReadByte()
		first, err = in.Peek(1)
	}
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: the file is empty; give a scenario, a dump or a manifest", path)
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", path, cause(err))
	}
	if first[0] == '{' || first[0] == '[' {
		raw, err := io.ReadAll(in)
		if err != nil {
			return fmt.Errorf("reading %s: %w", path, cause(err))
		}
		return readJSON(path, raw, named)
	}
	return readYAML(path, in, named)
}

func readJSON(path string, raw []byte, f func([]byte, int) error) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	line, seen := 1, 0
	where := func() int {
		at := int(dec.InputOffset())
		for at < len(raw) && strings.IndexByte(", \t\r\n", raw[at]) >= 0 {
			at++ // to where the next value begins
		}
		line += bytes.Count(raw[seen:at], []byte{'\n'})
		seen = at
		return line
	}
	broken := func(err error) error {
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			return fmt.Errorf("%s:%d: the file ends in the middle of an object; was it cut off?", path, where())
		}
		return fmt.Errorf("%s:%d: %w", path, where(), err)
	}
	items := func() error {
		for dec.More() {
			begin := where()
			var item json.RawMessage
			if err := dec.Decode(&item); err != nil {
				return broken(err)
			}
			if err := f(item, begin); err != nil {
				return err
			}
		}
		_, err := dec.Token()
		if err != nil {
			return broken(err)
		}
		return nil
	}
	for {
		t, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return broken(err)
		}
		switch t {
		case json.Delim('['):
			if err := items(); err != nil {
				return err
			}
		case json.Delim('{'):
			begin := where()
			rest, list := map[string]json.RawMessage{}, false
			for dec.More() {
				key, err := dec.Token()
				if err != nil {
					return broken(err)
				}
				if key == "items" {
					list = true
					if open, err := dec.Token(); err != nil || open != json.Delim('[') {
						return fmt.Errorf("%s:%d: items is no list", path, where())
					}
					if err := items(); err != nil {
						return err
					}
					continue
				}
				var v json.RawMessage
				if err := dec.Decode(&v); err != nil {
					return broken(err)
				}
				rest[fmt.Sprint(key)] = v
			}
			if _, err := dec.Token(); err != nil {
				return broken(err)
			}
			if !list {
				whole, err := json.Marshal(rest)
				if err != nil {
					return broken(err)
				}
				if err := f(whole, begin); err != nil {
					return err
				}
			}
		default:
			return fmt.Errorf("%s:%d: an object was expected, not %v", path, where(), t)
		}
	}
}

// yamlReader splits a stream of YAML documents and lists into objects by
// their indentation.
type yamlReader struct {
	path  string
	f     func([]byte, int) error
	text  bytes.Buffer // of the current object
	begin int          // its first line
	list  bool         // inside "items:" of a list
	dash  int          // indentation of the list's dashes, -1 before the first
	items int
	kind  bool // the document says of which kind it is
}

func readYAML(path string, in *bufio.Reader, f func([]byte, int) error) error {
	r := &yamlReader{path: path, f: f, begin: 1}
	for line := 1; ; line++ {
		text, err := in.ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("reading %s: %w", path, cause(err))
		}
		if text != "" {
			if ferr := r.line(text, line); ferr != nil {
				return ferr
			}
		}
		if err != nil {
			if err := r.flush(); err != nil {
				return err
			}
			if r.list && !r.kind { // kubectl writes the items first, then the kind
				return fmt.Errorf("%s:%d: the list of items has no end; was the file cut off?", path, line)
			}
			return nil
		}
	}
}

func (r *yamlReader) line(text string, at int) error {
	bare := strings.TrimRight(text, "\r\n")
	r.kind = r.kind || strings.HasPrefix(bare, "kind:")
	switch {
	case bare == "---" || strings.HasPrefix(bare, "--- "):
		err := r.flush()
		r.list, r.kind, r.items, r.begin = false, false, 0, at+1
		return err
	case !r.list && bare == "items:":
		r.list, r.dash = true, -1
		r.text.Reset() // what came before is the list's own
		return nil
	case !r.list:
		if r.items == 0 {
			r.text.WriteString(text)
		}
		return nil
	}
	indent := len(bare) - len(strings.TrimLeft(bare, " "))
	dashed := strings.HasPrefix(bare[indent:], "- ") || bare[indent:] == "-"
	if r.dash < 0 && dashed {
		r.dash = indent
	}
	switch {
	case dashed && indent == r.dash:
		if err := r.flush(); err != nil {
			return err
		}
		r.begin = at
		r.text.WriteString(strings.TrimPrefix(bare[indent+1:], " ") + "\n")
		r.items++
	case bare == "" || indent > r.dash:
		r.text.WriteString(bare[min(indent, r.dash+2):] + "\n")
	default: // the list's other fields
		err := r.flush()
		r.list = false
		return err
	}
	return nil
}

func (r *yamlReader) flush() error {
	text := r.text.Bytes()
	defer r.text.Reset()
	if len(bytes.TrimSpace(text)) == 0 {
		return nil
	}
	raw, err := yaml.YAMLToJSON(text)
	if err != nil {
		return fmt.Errorf("%s:%d: the object that begins here can't be read: %s", r.path, r.begin, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if string(raw) == "null" {
		return nil
	}
	return r.f(raw, r.begin)
}
