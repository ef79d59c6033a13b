package door

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// This file bounds amounts (resource.Quantity) so that counting with them takes no time. Kubernetes
// writes exponents of ten up to 2^31. "1e9999999" is read at once, but to compare it with 1 all of
// its digits are made first, which takes seconds, and hours with two digits more; "1e-9999999" takes
// as long to be read. An API server has read most of its objects itself; in others (custom
// resources, files, the answers of other programs) anything may be written. Invariant: no amount
// behind the door is beyond ±10^30, far above everything real, nor finer than 10^-9, as in the API.

// largestExponent is that of the largest amount.
const largestExponent = 30

var (
	largestAmount  = resource.MustParse("1e30")
	smallestAmount = resource.MustParse("-1e30")

	quantityType = reflect.TypeFor[resource.Quantity]()
	listType     = reflect.TypeFor[v1.ResourceList]()

	// withExponent takes an amount apart: what is before the exponent, and the exponent.
	withExponent = regexp.MustCompile(`^([^eE]*)[eE]([+-]?[0-9]+)$`)
)

// Amount reads an amount. One beyond ±10^30 is read as that.
// The error is the library's, for a text that is no amount.
func Amount(text string) (resource.Quantity, error) {
	q, err := resource.ParseQuantity(shorten(text))
	if err == nil {
		boundAmount(&q)
	}
	return q, err
}

// Read is json.Unmarshal for what was written outside: objects of the API, inputs, answers. Amounts
// beyond ±10^30 are read as that, and what is nested more deeply than MaxNesting is refused.
// Unknown fields are ignored, as API machinery does.
func Read(raw []byte, into any) error {
	if err := shallow(raw); err != nil {
		return err
	}
	if err := json.Unmarshal(Readable(raw, into), into); err != nil {
		return err
	}
	Object(into)
	return nil
}

// shallow returns an error about JSON that is nested too deeply.
// Decoders recurse, so deep nesting costs stack. It reads bytes only: text that isn't JSON
// is the decoder's to refuse.
func shallow(raw []byte) error {
	depth, quoted := 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > MaxNesting {
				return fmt.Errorf("lists and objects are nested more than %d deep", MaxNesting)
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return nil
}

// Readable returns JSON of which a strict decoder is to make into, with amounts that can be read
// at once; the rest stays. Call Object for what is made of it.
func Readable(raw []byte, into any) []byte {
	// Nearly everything ends here: one pass over the bytes, without an allocation.
	if !hasAmounts(reflect.TypeOf(into)) || !hasLongExponent(raw) {
		return raw
	}
	var tree any
	d := json.NewDecoder(bytes.NewReader(raw))
	// Numbers stay as they are written; as floats they would lose digits.
	d.UseNumber()
	if d.Decode(&tree) != nil || d.More() {
		return raw // refused by whoever reads it
	}
	short, err := json.Marshal(shortenAll(tree, reflect.TypeOf(into)))
	if err != nil { // there is nothing in the tree that JSON can't have
		return raw
	}
	return short
}

// hasLongExponent reports whether JSON may have an amount with an exponent of three digits or more:
// a value that consists of digits, e and digits. The digests of images, of which every Node has
// some, have an e and three digits inside of a value, and are none.
// Exponents of up to two digits are cheap to compare as they are.
func hasLongExponent(raw []byte) bool {
	for i, c := range raw {
		if (c == 'e' || c == 'E') && endsWithLongExponent(raw[i+1:]) && beginsAmount(raw[:i]) {
			return true
		}
	}
	return false
}

// endsWithLongExponent reports whether a value ends after three digits or more, with or without a
// sign before them.
func endsWithLongExponent(after []byte) bool {
	if len(after) > 0 && (after[0] == '+' || after[0] == '-') {
		after = after[1:]
	}
	digits := 0
	for digits < len(after) && '0' <= after[digits] && after[digits] <= '9' {
		digits++
	}
	return digits >= 3 && (digits == len(after) || atEdge(after[digits]))
}

// beginsAmount reports whether text ends with the beginning of a value, and digits and points.
func beginsAmount(before []byte) bool {
	before = bytes.TrimRight(before, "0123456789.")
	if n := len(before); n > 0 && (before[n-1] == '+' || before[n-1] == '-') {
		before = before[:n-1]
	}
	n := len(before)
	if n > 1 && before[n-1] == ':' { // of a key, and not of an image's name
		return before[n-2] <= ' ' || before[n-2] == '"'
	}
	return n == 0 || atEdge(before[n-1])
}

// atEdge reports whether a byte may be beside a value in JSON, or in a string beside the amount in
// it: around that Kubernetes ignores spaces, some of which have several bytes.
// Bytes from 0x80 may be of such a space; to take one for an edge too many costs a
// decoding, not correctness.
func atEdge(c byte) bool { return c <= ' ' || c >= 0x80 || strings.IndexByte(`":,[]{}`, c) >= 0 }

// shortenAll shortens the amounts in a value of which a t is to be made, and returns it. Maps and
// lists are changed in place.
// Only what becomes a quantity is changed: a label may look like one.
func shortenAll(v any, t reflect.Type) any {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch x := v.(type) {
	case string:
		if t == quantityType {
			return shorten(strings.TrimSpace(x)) // as Quantity.UnmarshalJSON has it
		}
	case json.Number:
		if t == quantityType {
			return json.Number(shorten(x.String()))
		}
	case []any:
		if t.Kind() == reflect.Slice || t.Kind() == reflect.Array {
			for i := range x {
				x[i] = shortenAll(x[i], t.Elem())
			}
		}
	case map[string]any:
		for key := range x {
			if at := fieldType(t, key); at != nil {
				x[key] = shortenAll(x[key], at)
			}
		}
	}
	return v
}

// fieldType returns the type of the part of a t that has a key in JSON, nil when there is none.
func fieldType(t reflect.Type, key string) reflect.Type {
	switch t.Kind() {
	case reflect.Map:
		return t.Elem()
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			// Embedded structs have their fields in the outer object.
			if name == "" && f.Anonymous {
				inner := f.Type
				if inner.Kind() == reflect.Pointer {
					inner = inner.Elem()
				}
				if at := fieldType(inner, key); at != nil {
					return at
				}
				continue
			}
			if name == "" {
				name = f.Name
			}
			if strings.EqualFold(name, key) { // as JSON is decoded
				return f.Type
			}
		}
	}
	return nil
}

// shorten returns an amount with an exponent that can be read at once, and the same value but
// beyond ±10^30 and below 10^-9: an amount of n characters before its exponent is less than 10^n,
// and 10^-n or more when it isn't 0.
// The digits before the exponent bound how far the value can be from 10^exponent, so no
// digit has to be read.
func shorten(text string) string {
	parts := withExponent.FindStringSubmatch(text)
	if parts == nil {
		return text
	}
	exponent, err := strconv.ParseInt(parts[2], 10, 64)
	if err != nil {
		return text // refused by whoever reads it
	}
	most := int64(len(parts[1]) + largestExponent + 1)
	if exponent >= -most && exponent <= most {
		return text
	}
	return parts[1] + "e" + strconv.FormatInt(min(max(exponent, -most), most), 10)
}

// Object sets each amount in what a pointer points to that is beyond ±10^30 to that: it is for
// objects that a library has decoded, before anybody else has them.
// It is what makes objects of a typed client safe, whose decoder isn't ours.
func Object(o any) { boundAll(reflect.ValueOf(o)) }

// within reports whether no amount in what a pointer points to is beyond ±10^30.
// It changes nothing, so it can be asked of objects that others read.
func within(o any) bool { return allWithin(reflect.ValueOf(o)) }

// allWithin is within for a value; only exported fields that may hold amounts are visited.
func allWithin(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return v.IsNil() || allWithin(v.Elem())
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if !allWithin(v.Index(i)) {
				return false
			}
		}
	case reflect.Struct:
		if v.Type() == quantityType {
			// Whoever called had a pointer, so the value can be addressed.
			_, beyond := bounded(v.Addr().Interface().(*resource.Quantity))
			return !beyond
		}
		for _, i := range fieldsWithAmounts(v.Type()) {
			if !allWithin(v.Field(i)) {
				return false
			}
		}
	case reflect.Map:
		return mapWithin(v)
	}
	return true
}

// mapWithin is allWithin for a map. ResourceList, by far the most frequent, needs no
// reflection by entry.
func mapWithin(v reflect.Value) bool {
	if v.Type() == listType {
		for _, q := range v.Interface().(v1.ResourceList) {
			if _, beyond := bounded(&q); beyond {
				return false
			}
		}
		return true
	}
	// Values of a map can't be addressed, hence the copy.
	for it := v.MapRange(); it.Next(); {
		value := reflect.New(v.Type().Elem()).Elem()
		value.Set(it.Value())
		if !allWithin(value) {
			return false
		}
	}
	return true
}

// boundAll is Object for a value.
func boundAll(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			boundAll(v.Elem())
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			boundAll(v.Index(i))
		}
	case reflect.Struct:
		if v.Type() == quantityType {
			boundAmount(v.Addr().Interface().(*resource.Quantity))
			return
		}
		for _, i := range fieldsWithAmounts(v.Type()) {
			boundAll(v.Field(i))
		}
	case reflect.Map:
		if v.Type() == listType {
			boundList(v.Interface().(v1.ResourceList))
			return
		}
		for it := v.MapRange(); it.Next(); {
			value := reflect.New(v.Type().Elem()).Elem()
			value.Set(it.Value())
			boundAll(value)
			v.SetMapIndex(it.Key(), value)
		}
	}
}

// boundList bounds the amounts of a list in place; setting a key while ranging over it is
// safe, since it is there.
func boundList(list v1.ResourceList) {
	for name, q := range list {
		if boundAmount(&q) {
			list[name] = q
		}
	}
}

// boundAmount bounds one amount, and reports whether it was changed.
func boundAmount(q *resource.Quantity) bool {
	b, beyond := bounded(q)
	if beyond {
		*q = b
	}
	return beyond
}

// bounded returns the bound that an amount is beyond; beyond is false for one within.
func bounded(q *resource.Quantity) (bound resource.Quantity, beyond bool) {
	// Good enough for a bound: it takes constant time, unlike a comparison.
	switch f := q.AsApproximateFloat64(); {
	case f > 1e30:
		return largestAmount, true
	case f < -1e30:
		return smallestAmount, true
	case f != f: // 0 with an exponent that no float64 has
		return resource.Quantity{Format: q.Format}, true
	}
	return bound, false
}

// amountFields caches, by struct type, which fields have amounts in them.
var amountFields sync.Map // reflect.Type to []int

// fieldsWithAmounts returns the indices of the exported fields that hold amounts. Two
// goroutines may compute them at once; they agree.
func fieldsWithAmounts(t reflect.Type) []int {
	if known, ok := amountFields.Load(t); ok {
		return known.([]int)
	}
	var fields []int
	for i := range t.NumField() {
		if f := t.Field(i); f.IsExported() && hasAmounts(f.Type) {
			fields = append(fields, i)
		}
	}
	amountFields.Store(t, fields)
	return fields
}

// hasAmounts reports whether a value of a type has amounts in it. The types of the API and of
// inputs don't contain themselves.
func hasAmounts(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return hasAmounts(t.Elem())
	case reflect.Struct:
		return t == quantityType || len(fieldsWithAmounts(t)) > 0
	}
	return false
}
