package scenario

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core/door"
)

// This file finds all fields that a type doesn't have, and all durations and quantities that are
// none: a decoder ends with the first. What it misses the decoder refuses.

var (
	durationType = reflect.TypeFor[metav1.Duration]()
	quantityType = reflect.TypeFor[resource.Quantity]()
	ownDecoder   = reflect.TypeFor[json.Unmarshaler]()
)

// What is said of a value.
const (
	notADuration = "is not a duration; it must be one such as 90s, 15m or 2h"
	notAQuantity = "is not a quantity; it must be one such as 500m, 4 or 8Gi"
)

// decodable goes through the tree of a file beside the type that it is decoded into.
type decodable struct {
	*validator
	anchors map[string]ast.Node
}

// file checks the first document of a file.
func (d *decodable) file(f *ast.File, into any) {
	if f != nil && len(f.Docs) > 0 && f.Docs[0].Body != nil {
		d.node("", f.Docs[0].Body, reflect.TypeOf(into))
	}
}

// node checks what stands in a field. A value of the wrong kind, such as a list in the place of a
// number, is left to the decoder.
func (d *decodable) node(field string, n ast.Node, t reflect.Type) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch x := n.(type) {
	case nil:
		return
	case *ast.AnchorNode:
		d.node(field, x.Value, t)
		d.anchors[x.Name.String()] = x.Value // from here on: an anchor in itself has no end
		return
	case *ast.AliasNode:
		if v, ok := d.anchors[x.Value.String()]; ok {
			d.node(field, v, t)
		}
		return
	}
	switch {
	case t == durationType || t == quantityType:
		d.scalar(field, n, t)
	case reflect.PointerTo(t).Implements(ownDecoder):
	case t.Kind() == reflect.Struct || t.Kind() == reflect.Map:
		d.mapping(field, n, t)
	case t.Kind() == reflect.Slice:
		if list, ok := n.(ast.ArrayNode); ok {
			for i, items := 0, list.ArrayRange(); items.Next(); i++ {
				d.node(fmt.Sprintf("%s[%d]", field, i), items.Value(), t.Elem())
			}
		}
	}
}

// scalar checks a duration or a quantity.
func (d *decodable) scalar(field string, n ast.Node, t reflect.Type) {
	if _, ok := n.(ast.ScalarNode); !ok || n.Type() == ast.NullType {
		return
	}
	text := n.GetToken().Value
	if literal, ok := n.(*ast.LiteralNode); ok {
		text = strings.TrimSpace(literal.Value.Value)
	}
	if t == durationType {
		if _, err := time.ParseDuration(text); err != nil {
			d.badAt(n, field, "%q %s", text, notADuration)
		}
	} else if _, err := door.Amount(text); err != nil {
		d.badAt(n, field, "%q %s", text, notAQuantity)
	}
}

// mapping checks the fields of a struct, or the values of a map.
func (d *decodable) mapping(field string, n ast.Node, t reflect.Type) {
	m, ok := n.(ast.MapNode)
	if !ok {
		return
	}
	var fields map[string]reflect.Type
	if t.Kind() == reflect.Struct {
		fields = fieldsOf(t)
	}
	for entries := m.MapRange(); entries.Next(); {
		key := entries.Key()
		if key.IsMergeKey() {
			d.node(field, entries.Value(), t)
			continue
		}
		name := key.GetToken().Value
		at := strings.TrimPrefix(field+"."+name, ".")
		if t.Kind() == reflect.Map {
			d.node(at, entries.Value(), t.Elem())
		} else if inner, known := fields[name]; known {
			d.node(at, entries.Value(), inner)
		} else {
			d.badAt(key, at, "unknown field %q", name)
		}
	}
}

// fieldsOf returns the types of a struct's fields, those of embedded structs included, by their
// names in JSON.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	out := map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported() || f.Anonymous && name == "":
		case name == "":
			out[f.Name] = f.Type
		default:
			out[name] = f.Type
		}
	}
	return out
}
