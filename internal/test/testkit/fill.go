package testkit

import (
	"reflect"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// This file sets every field of an object, for tests of what is kept of objects.

// Fill gives every field of an API object a value: text to every string and map key, one
// element to each list and map, and a number other than 0 to all else.
func Fill(o metav1.Object, text string) { fill(reflect.ValueOf(o).Elem(), text) }

func fill(v reflect.Value, text string) {
	switch x := v.Addr().Interface().(type) {
	case *resource.Quantity:
		*x = resource.MustParse("7")
		return
	case *intstr.IntOrString:
		*x = intstr.FromString(text)
		return
	case *metav1.Time:
		*x = metav1.Unix(7, 0)
		return
	case *metav1.MicroTime:
		*x = metav1.NewMicroTime(metav1.Unix(7, 0).Time)
		return
	case *runtime.RawExtension:
		x.Raw = []byte(`{"` + text + `":"` + text + `"}`)
		return
	case *metav1.FieldsV1:
		x.SetRawString(`{"` + text + `":{}}`)
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint8:
		v.SetUint('7')
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), text)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), text)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), text)
	case reflect.Map:
		k, e := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(k, text)
		fill(e, text)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(k, e)
	default:
		panic("testkit: an API object with a " + v.Type().String())
	}
}
