package migrate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// This file makes the values of the provider's server in Berth's pod (docs/providers.md), for the clouds whose provider is
// known to run so: the wrapper in Cluster Autoscaler's repository. It serves on the loopback address of the pod, and gets the
// environment and the mounts that Cluster Autoscaler had.

// sidecar is what the server in the pod is started with. Its parts are in the order in which they were found.
type sidecar struct {
	args []string // further ones than its address
	// env, envFrom and mounts are as the API has them.
	env, envFrom, mounts []any
}

// runsInPod reports whether the chart runs the server of a provider in Berth's pod.
func runsInPod(provider string) bool {
	return slices.Contains([]string{"aws", "azure", "gce"}, provider)
}

// wrapperFlags are the flags of Cluster Autoscaler that the wrapper takes, too.
var wrapperFlags = []string{"cloud-provider", "cloud-config", "cluster-name", "nodes", "node-group-auto-discovery"}

// serverFlag says what becomes of a flag that is the server's.
func (s *setup) serverFlag(g given) {
	switch {
	case !runsInPod(s.provider):
		s.say(g.String(), Provider, "")
	case !slices.Contains(wrapperFlags, g.name):
		s.say(g.String(), Provider, "the wrapper has no such flag: left out")
	case g.name == "cloud-config":
		s.server.args = append(s.server.args, "--cloud-config="+g.value)
		s.say(g.String(), Provider, "in provider.args; provider.volumeMounts must have the file there")
	default:
		s.server.args = append(s.server.args, "--"+g.name+"="+g.value)
		s.say(g.String(), Provider, "in provider.args")
	}
}

// sidecarValues sets the values of the server in the pod. Its image can't be known here: the placeholder is to be replaced
// by hand, as the report says.
func (s *setup) sidecarValues() {
	args := []any{"--address=127.0.0.1:8086"}
	for _, arg := range s.server.args {
		args = append(args, arg)
	}
	p := map[string]any{"image": map[string]any{"repository": "REGISTRY/berth-provider", "tag": s.provider}, "args": args}
	// While the check fails no pod is placed, so a Berth that places pods begins without it.
	if !s.Scheduler {
		p["check"] = true
	}
	for name, list := range map[string][]any{"env": s.server.env, "envFrom": s.server.envFrom, "volumeMounts": s.server.mounts} {
		if len(list) > 0 {
			p[name] = list
		}
	}
	s.values["provider"] = p
	s.say("--cloud-provider="+s.provider, Changed, "Berth reaches this provider through the wrapper in Cluster Autoscaler's repository, which runs in Berth's pod: build its image, and write its name into provider.image (docs/providers.md)")
}

// environment takes the value of a name if Cluster Autoscaler's chart makes the container's environment of it, and reports
// whether it does. Credentials that stand in values are left to people: the values of Berth's chart are no place for them.
func (v values) environment(name string) bool {
	entry := func(key string, rest map[string]any) {
		v.server.env = append(v.server.env, mergedInto(map[string]any{"name": key}, rest))
	}
	entries, _ := v.at(name).(map[string]any)
	switch name {
	case "awsRegion":
		entry("AWS_REGION", map[string]any{"value": v.text(name)})
	case "extraEnv":
		for _, key := range slices.Sorted(maps.Keys(entries)) {
			entry(key, map[string]any{"value": v.text(name, key)})
		}
	case "extraEnvConfigMaps", "extraEnvSecrets":
		ref := map[string]string{"extraEnvConfigMaps": "configMapKeyRef", "extraEnvSecrets": "secretKeyRef"}[name]
		for _, key := range slices.Sorted(maps.Keys(entries)) {
			entry(key, map[string]any{"valueFrom": map[string]any{ref: map[string]any{"name": v.text(name, key, "name"), "key": v.text(name, key, "key")}}})
		}
	case "envFromConfigMap":
		v.server.envFrom = append(v.server.envFrom, map[string]any{"configMapRef": map[string]any{"name": v.text(name)}})
	case "envFromSecret":
		v.server.envFrom = append(v.server.envFrom, map[string]any{"secretRef": map[string]any{"name": v.text(name)}})
	default:
		return false
	}
	return true
}

// isElsewhere reports whether the provider becomes a server outside of Berth's pod.
func (v values) isElsewhere() bool {
	return isExternal(v.text("cloudProvider")) && !runsInPod(v.text("cloudProvider"))
}

// serverDefaults sets what Cluster Autoscaler's chart has by default, and refuses what only Helm could evaluate.
func (v values) serverDefaults() error {
	if _, has := v.in["awsRegion"]; !has && v.text("cloudProvider") == "aws" {
		v.in["awsRegion"] = "us-east-1"
	}
	if !runsInPod(v.text("cloudProvider")) {
		return nil
	}
	texts := map[string]string{"awsRegion": v.text("awsRegion")}
	entries, _ := v.at("extraEnv").(map[string]any)
	for key := range entries {
		texts["extraEnv."+key] = v.text("extraEnv", key)
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if strings.Contains(texts[name], "{{") {
			return fmt.Errorf("%s: %q has a template; write out what Helm makes of it", name, texts[name])
		}
	}
	return nil
}

// mergedInto adds the entries of one map to another, which it returns.
func mergedInto(to, from map[string]any) map[string]any {
	maps.Copy(to, from)
	return to
}

// cloudOf returns the provider of the command line that was read so far, as migrateFlags finds it; a line that can't be read
// is refused there.
func (s *setup) cloudOf() string {
	flags, err := s.parse()
	if at := slices.IndexFunc(flags, func(g given) bool { return g.name == "cloud-provider" }); err == nil && at >= 0 {
		return flags[at].value
	}
	return "gce"
}

// podOfServer takes what the server in the pod needs of Cluster Autoscaler's: the environment of its container, and the
// volumes that this mounts. The token of the ServiceAccount is mounted by the API server.
func (s *setup) podOfServer(pod *v1.PodSpec, c *v1.Container) error {
	var volumes []v1.Volume
	var mounts []v1.VolumeMount
	for _, m := range c.VolumeMounts {
		at := slices.IndexFunc(pod.Volumes, func(v v1.Volume) bool { return v.Name == m.Name })
		if at < 0 || strings.HasPrefix(m.Name, "kube-api-access-") {
			continue
		}
		mounts = append(mounts, m)
		if !slices.ContainsFunc(volumes, func(v v1.Volume) bool { return v.Name == m.Name }) {
			volumes = append(volumes, pod.Volumes[at])
		}
	}
	for _, x := range []struct {
		value any
		to    *[]any
	}{{c.Env, &s.server.env}, {c.EnvFrom, &s.server.envFrom}, {mounts, &s.server.mounts}} {
		if err := throughYAML(x.value, x.to); err != nil {
			return err
		}
	}
	if len(s.server.env)+len(s.server.envFrom) > 0 {
		s.say("the container's environment", Provider, "as provider.env and provider.envFrom")
	}
	if len(mounts) > 0 {
		var list []any
		if err := throughYAML(volumes, &list); err != nil {
			return err
		}
		s.values["extraVolumes"] = list
		s.say("the pod's volumes", Provider, "as extraVolumes and provider.volumeMounts")
	}
	if pod.ServiceAccountName != "" {
		s.say("the pod's serviceAccountName", Provider, "annotations of ServiceAccount "+pod.ServiceAccountName+" that give it a role in the cloud belong in serviceAccount.annotations")
	}
	return nil
}
