package scenario

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// This file takes manifests and dumps apart into objects: streams of YAML
// documents or JSON values, and the lists that kubectl writes. What must hold:
// each object is handed on with the line where it begins, and of a list only one
// object at a time is in memory as a tree. A dump is one long list, and the tree
// of a whole one takes forty times as much memory as its text.

// manifest is a file that is being read. object is called with each object as
// JSON, in the order of the file.
type manifest struct {
	path   string
	object func(raw []byte, line int) error
}

// readManifest calls object with each object of a file as JSON, and with the line
// where it begins. Errors name file and line, those of object too.
// The file isn't empty: ReadFile refuses such.
func readManifest(path string, object func(raw []byte, line int) error) error {
	raw, err := ReadFile(path)
	if err != nil {
		return err
	}
	m := &manifest{path: path}
	// What object itself returns has no file and line.
	m.object = func(raw []byte, line int) error {
		if err := object(raw, line); err != nil {
			return m.errorf(line, "%w", err)
		}
		return nil
	}
	if first := bytes.TrimSpace(raw)[0]; first == '{' || first == '[' {
		return m.json(raw)
	}
	return m.yaml(raw)
}

// errorf returns an error about the object that begins on a line.
func (m *manifest) errorf(line int, format string, args ...any) error {
	return fmt.Errorf("%s:%d: %w", m.path, line, fmt.Errorf(format, args...))
}

// json reads a stream of JSON values: objects, and lists of objects.
// Values follow each other with or without spaces, as kubectl and jq print them.
func (m *manifest) json(raw []byte) error {
	s := &jsonStream{manifest: m, raw: raw, dec: json.NewDecoder(bytes.NewReader(raw)), line: 1}
	for {
		t, err := s.dec.Token()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return s.broken(err)
		case t == json.Delim('['):
			err = s.items()
		case t == json.Delim('{'):
			err = s.fields()
		default:
			err = m.errorf(s.where(), "expected an object, not %v", t)
		}
		if err != nil {
			return err
		}
	}
}

// jsonStream reads token by token and not value by value: json.Decoder.Decode
// would make a tree of a whole list.
type jsonStream struct {
	*manifest
	raw        []byte
	dec        *json.Decoder
	line, seen int // the line at byte seen of raw
}

// where returns the line where the next value begins.
// Lines are counted once: each call goes on where the last one ended.
func (s *jsonStream) where() int {
	at := int(s.dec.InputOffset())
	for at < len(s.raw) && strings.IndexByte(", \t\r\n", s.raw[at]) >= 0 {
		at++
	}
	s.line += bytes.Count(s.raw[s.seen:at], []byte{'\n'})
	s.seen = at
	return s.line
}

// broken returns the error for text that isn't JSON: with a hint where it just ends, as dumps do whose
// command was interrupted.
func (s *jsonStream) broken(err error) error {
	// The decoder tells the end of the file in both ways.
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return s.errorf(s.where(), "the file ends in the middle of an object; was it cut off?")
	}
	return s.errorf(s.where(), "%w", err)
}

// items reads a list of objects to its end; its bracket has been read.
func (s *jsonStream) items() error {
	for s.dec.More() {
		// Before the item is decoded: afterwards the position is behind it.
		begin := s.where()
		var item json.RawMessage
		if err := s.dec.Decode(&item); err != nil {
			return s.broken(err)
		}
		if err := s.object(item, begin); err != nil {
			return err
		}
	}
	if _, err := s.dec.Token(); err != nil {
		return s.broken(err)
	}
	return nil
}

// fields reads an object to its end, or the list that is its field "items"; its
// brace has been read.
func (s *jsonStream) fields() error {
	begin := s.where()
	fields, list := map[string]json.RawMessage{}, false
	for s.dec.More() {
		key, err := s.dec.Token()
		if err != nil {
			return s.broken(err)
		}
		// The other fields of a list, its kind and metadata, say nothing.
		if key == "items" {
			list = true
			if open, err := s.dec.Token(); err != nil || open != json.Delim('[') {
				return s.errorf(s.where(), "items is not a list")
			}
			if err := s.items(); err != nil {
				return err
			}
			// Fields that follow the items are read and dropped.
			continue
		}
		var v json.RawMessage
		if err := s.dec.Decode(&v); err != nil {
			return s.broken(err)
		}
		fields[fmt.Sprint(key)] = v
	}
	if _, err := s.dec.Token(); err != nil {
		return s.broken(err)
	}
	if list {
		return nil
	}
	// The order of fields is another one now, which doesn't matter to whoever decodes it.
	whole, err := json.Marshal(fields)
	if err != nil {
		return s.broken(err)
	}
	return s.object(whole, begin)
}

// yaml reads a stream of YAML documents.
func (m *manifest) yaml(raw []byte) error {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(raw)))
	for line := 1; ; {
		text, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return m.errorf(line, "the document that begins here can't be parsed: %w", err)
		}
		begin := line
		// Lines of a document include its comments, so that errors point into the file.
		line += bytes.Count(text, []byte{'\n'}) + 1 // and the separator
		if bytes.HasPrefix(text, []byte("---")) {   // a separator with nothing before it
			_, text, _ = bytes.Cut(text, []byte{'\n'})
			begin++
		}
		if isYAMLList(text) {
			err = m.yamlItems(text, begin)
		} else {
			err = m.yamlObject(text, begin)
		}
		if err != nil {
			return err
		}
	}
}

// yamlObject reads one document or item, and passes over one that has nothing but comments.
func (m *manifest) yamlObject(text []byte, line int) error {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil
	}
	raw, err := yaml.YAMLToJSON(text)
	if err != nil {
		return m.errorf(line, "the object that begins here can't be parsed: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	// A document with comments only is null.
	if string(raw) == "null" {
		return nil
	}
	return m.object(raw, line)
}

// isYAMLList reports whether a document is a list, as its text shows: to parse it would make the tree
// that is to be avoided.
// A field named items further in is indented, and doesn't count.
func isYAMLList(text []byte) bool {
	return bytes.HasPrefix(text, []byte("items:\n")) || bytes.Contains(text, []byte("\nitems:\n"))
}

// yamlItems reads a list as kubectl writes it. It finds the items by their
// indentation, since no YAML library hands out a part of a document: the next
// item begins at a dash that stands where the first did.
func (m *manifest) yamlItems(text []byte, line int) error {
	var item bytes.Buffer
	begin := line // of the item
	flush := func() error {
		defer item.Reset()
		return m.yamlObject(item.Bytes(), begin)
	}
	inside, dash := false, -1 // of "items:"; the indentation of its dashes, -1 before the first
	kind := false
	for full := range bytes.Lines(text) {
		at := string(bytes.TrimRight(full, "\n"))
		indent := len(at) - len(strings.TrimLeft(at, " "))
		dashed := at[indent:] == "-" || strings.HasPrefix(at[indent:], "- ")
		if inside && dash < 0 && dashed {
			// The first dash sets the indentation: kubectl indents by none, other programs
			// by two.
			dash = indent
		}
		switch {
		case at == "items:":
			inside = true
		case !inside:
			kind = kind || strings.HasPrefix(at, "kind:")
		case dashed && indent == dash:
			if err := flush(); err != nil {
				return err
			}
			begin = line
			item.WriteString(strings.TrimPrefix(at[indent+1:], " ") + "\n")
		// Lines of an item lose the dash's indentation.
		case at == "" || indent > dash:
			item.WriteString(at[min(indent, dash+2):] + "\n")
		default: // the list's other fields
			inside = false
			kind = kind || strings.HasPrefix(at, "kind:")
		}
		line++
	}
	if err := flush(); err != nil {
		return err
	}
	if inside && !kind { // kubectl writes it behind the items
		return m.errorf(line, "the list of items has no end; was the file cut off?")
	}
	return nil
}
