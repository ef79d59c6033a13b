package testkit

import (
	"reflect"
	"strings"
)

// Lengths returns how many entries all maps and lists hold that can be reached from a value,
// added up by where they are: by the names of the fields on the way, with [] for an element.
// What is reached by several ways counts once, where it is reached first. Of values of other
// modules' types, such as API objects, nothing is looked at, and of functions nothing can be.
//
// Fields to be skipped are named as Type.field.
func Lengths(v any, skip ...string) map[string]int {
	w := lengths{out: map[string]int{}, seen: map[seenAt]bool{}, skip: map[string]bool{}}
	for _, name := range skip {
		w.skip[name] = true
	}
	w.walk("", reflect.ValueOf(v))
	return w.out
}

type lengths struct {
	out  map[string]int
	seen map[seenAt]bool
	skip map[string]bool
}

type seenAt struct {
	address uintptr
	of      reflect.Type
}

const ownModule = "github.com/berthproject/berth/"

func (w *lengths) walk(path string, v reflect.Value) {
	if !v.IsValid() || v.Type().PkgPath() != "" && !strings.HasPrefix(v.Type().PkgPath(), ownModule) {
		return
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice:
		at := seenAt{v.Pointer(), v.Type()}
		if v.IsNil() || w.seen[at] && v.Kind() != reflect.Slice {
			return
		}
		w.seen[at] = true
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		w.walk(path, v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			if name := v.Type().Field(i).Name; !w.skip[v.Type().Name()+"."+name] {
				w.walk(path+"."+name, v.Field(i))
			}
		}
	case reflect.Map:
		w.out[path] += v.Len()
		for it := v.MapRange(); it.Next(); {
			w.walk(path+"[]", it.Key())
			w.walk(path+"[]", it.Value())
		}
	case reflect.Slice, reflect.Array:
		if v.Kind() == reflect.Slice {
			w.out[path] += v.Len()
		}
		switch v.Type().Elem().Kind() {
		case reflect.Pointer, reflect.Struct, reflect.Map, reflect.Slice, reflect.Interface:
			for i := range v.Len() {
				w.walk(path+"[]", v.Index(i))
			}
		}
	}
}
