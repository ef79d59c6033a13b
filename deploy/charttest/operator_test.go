package charttest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// This file reads what is made for the Prometheus operator with the operator's own types.

// ofTheOperator returns an error unless the Prometheus operator knows an object's kind and all its fields, and the object says
// what the operator requires.
func ofTheOperator(o *unstructured.Unstructured) error {
	if o.GetAPIVersion() != "monitoring.coreos.com/v1" {
		return fmt.Errorf("the API version is %s, want monitoring.coreos.com/v1", o.GetAPIVersion())
	}
	read := func(into any) error {
		return runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, into, true)
	}
	switch o.GetKind() {
	case monitoringv1.ServiceMonitorsKind:
		var m monitoringv1.ServiceMonitor
		if err := read(&m); err != nil {
			return err
		}
		if len(m.Spec.Endpoints) == 0 || len(m.Spec.Selector.MatchLabels)+len(m.Spec.Selector.MatchExpressions) == 0 {
			return errors.New("it reads no endpoints, or selects every Service")
		}
		return nil
	case monitoringv1.PrometheusRuleKind:
		var r monitoringv1.PrometheusRule
		if err := read(&r); err != nil {
			return err
		}
		for _, g := range r.Spec.Groups {
			for _, rule := range g.Rules {
				if rule.Alert == "" || rule.Expr.String() == "" {
					return fmt.Errorf("group %s has a rule without a name or an expression: %+v", g.Name, rule)
				}
			}
		}
		if len(r.Spec.Groups) == 0 {
			return errors.New("it has no rules")
		}
		return nil
	}
	return fmt.Errorf("the operator has no kind %s", o.GetKind())
}

// TestObjectsOfThePrometheusOperator: the operator reads what the chart makes for it, and a field that it doesn't know is
// found.
func TestObjectsOfThePrometheusOperator(t *testing.T) {
	v := map[string]any{}
	must(t, yaml.UnmarshalStrict([]byte(`{serviceMonitor: {enabled: true, interval: 10s, labels: {release: p}}, prometheusRule: {enabled: true, labels: {release: p}}}`), &v))
	seen := 0
	for _, o := range rendered(t, v) {
		if !strings.HasPrefix(o.GetAPIVersion(), "monitoring.coreos.com/") {
			continue
		}
		seen++
		if err := ofTheOperator(o); err != nil {
			t.Errorf("%s: %v", id(o), err)
		}
		must(t, unstructured.SetNestedField(o.Object, "10s", "spec", "intervall"))
		if err := ofTheOperator(o); err == nil || !strings.Contains(err.Error(), "intervall") {
			t.Errorf("%s with the field spec.intervall: %v, want an error that names it", id(o), err)
		}
	}
	if seen != 2 {
		t.Errorf("the chart makes %d objects for the operator, want a ServiceMonitor and a PrometheusRule", seen)
	}
}
