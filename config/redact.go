package config

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"

	kubeschedulerv1 "k8s.io/kube-scheduler/config/v1"
	"sigs.k8s.io/yaml"
)

// This file leaves secrets out of a configuration: certificates and keys of extenders
// given inline, and a password or token in an extender's address. What must hold: neither
// /configz (MarshalJSON) nor a recording (Redact) shows them, nor the log and /flagz what flags have
// (FlagValues); paths of files stay, and so
// does everything that decisions read.

// MarshalJSON writes the configuration without its secrets.
func (s Scheduler) MarshalJSON() ([]byte, error) {
	type plain Scheduler // without this method, which would call itself
	s.Extenders = redactExtenders(s.Extenders)
	return json.Marshal(plain(s))
}

// redactExtenders returns extenders without their secrets.
func redactExtenders(list []kubeschedulerv1.Extender) []kubeschedulerv1.Extender {
	list = slices.Clone(list)
	for i := range list {
		x := &list[i]
		x.URLPrefix = redactAddress(x.URLPrefix)
		if x.TLSConfig != nil {
			tls := *x.TLSConfig
			tls.CertData, tls.KeyData, tls.CAData = nil, nil, nil
			x.TLSConfig = &tls
		}
	}
	return list
}

// Redact returns the text of a configuration file without its secrets, and
// without comments, which may hold more. It is parsed as before. The error is
// that of a text which isn't a configuration.
func Redact(text string) (string, error) {
	if err := yaml.UnmarshalStrict([]byte(text), &kubeschedulerv1.KubeSchedulerConfiguration{}); err != nil {
		return "", err
	}
	file := map[string]any{}
	exact := func(d *json.Decoder) *json.Decoder { d.UseNumber(); return d } // a float64 rounds large integers
	if err := yaml.Unmarshal([]byte(text), &file, exact); err != nil {
		return "", err
	}
	// The strict reading above has checked the types; the map keeps what the file says.
	extenders, _ := file["extenders"].([]any)
	for _, one := range extenders {
		x, _ := one.(map[string]any)
		if address, ok := x["urlPrefix"].(string); ok {
			x["urlPrefix"] = redactAddress(address)
		}
		if tls, ok := x["tlsConfig"].(map[string]any); ok {
			for _, key := range []string{"certData", "keyData", "caData"} {
				delete(tls, key)
			}
		}
	}
	out, err := yaml.Marshal(file)
	if err != nil {
		return "", fmt.Errorf("writing the configuration: %w", err)
	}
	return string(out), nil
}

// redactAddress leaves of an address the scheme, the host and the path. One that
// can't be read is left out.
func redactAddress(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}
