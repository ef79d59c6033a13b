package provider

import (
	"errors"
	"fmt"
)

// undiscovering are the providers that find their groups in one way only, with what to do instead
// of --node-group-auto-discovery.
var undiscovering = map[string]string{
	Simulated: "its groups are those in --cloud-config",
	External:  "its server determines the groups; pass the flag to the server if it supports it, or name groups with --nodes",
}

// Validate refuses flags that don't go together, before any file is read.
func (o Options) Validate() error {
	switch o.Name {
	case "", Simulated, External, ClusterAPI:
	default:
		return fmt.Errorf("--cloud-provider is %q; it must be %s, %s or %s. For Cluster Autoscaler's built-in providers use %[2]s: docs/external-providers.md", o.Name, External, ClusterAPI, Simulated)
	}
	if o.Name != ClusterAPI && (o.Name == "") != (o.File == "") {
		return errors.New("--cloud-provider and --cloud-config go together; set both or neither")
	}
	if o.Name == "" && len(o.Bounds)+len(o.Discovery) > 0 {
		return errors.New("--nodes and --node-group-auto-discovery select node groups of a cloud provider; set --cloud-provider and --cloud-config, or omit them")
	}
	if o.Name == "" && o.Prices != "" {
		return errors.New("--node-prices prices node groups of a cloud provider; set --cloud-provider and --cloud-config, or omit it")
	}
	if instead, ok := undiscovering[o.Name]; ok && len(o.Discovery) > 0 {
		return fmt.Errorf("--node-group-auto-discovery is %q, but --cloud-provider=%s can't discover groups: %s", o.Discovery[0], o.Name, instead)
	}
	return nil
}
