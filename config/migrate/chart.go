package migrate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// This file reads the values of Cluster Autoscaler's chart (https://github.com/kubernetes/autoscaler, as of its version
// for 1.35): those that make flags, those that Berth's chart has, too, and all others.
// Nothing is dropped in silence: each value that is set ends in the report with what became
// of it.

// sameValues are the values that mean the same in both charts, by their names there.
var sameValues = map[string]string{
	"nodeSelector": "nodeSelector", "tolerations": "tolerations", "resources": "resources", "podAnnotations": "podAnnotations", "podLabels": "podLabels",
	"priorityClassName": "priorityClassName", "replicaCount": "replicas", "extraVolumes": "extraVolumes", "extraVolumeMounts": "extraVolumeMounts",
	"dnsPolicy": "dnsPolicy",
}

// flagValues are the values that make flags; clouds are those of built-in providers, which their servers need.
// Values of a cloud begin with the cloud's name, as awsRegion does.
var (
	flagValues = []string{"cloudProvider", "autoDiscovery", "autoscalingGroups", "autoscalingGroupsnamePrefix", "cloudConfigPath", "extraArgs", "customArgs",
		"magnumClusterName", "clusterAPIMode", "clusterAPICloudConfigPath", "clusterAPIConfigMapsNamespace", "clusterAPIWorkloadKubeconfigPath"}
	clouds = []string{"aws", "azure", "civo", "kwok", "magnum"}
)

// otherValues are those that need no other, and why.
var otherValues = map[string]string{
	"image":                     "the image is Berth's; set image.repository for a mirror",
	"service":                   "metrics are served over TLS at flags.secure-port",
	"containerSecurityContext":  "Berth's pod has a restricted one",
	"securityContext":           "Berth's pod has a restricted one",
	"rbac":                      "Berth's chart gives the rights that the flags need",
	"kubeTargetVersionOverride": "the chart asks for a version of Kubernetes itself",
	"revisionHistoryLimit":      "it is Kubernetes' default",
	"updateStrategy":            "one replica at a time is replaced",
}

// ownValues are those that Berth's chart has, too, with a meaning that can't be taken over.
// To take them over would select the wrong pods or open the wrong port, so they are left to
// people.
var ownValues = map[string]string{
	"affinity":                   "its selectors are for Cluster Autoscaler's pods; write affinity for Berth's",
	"topologySpreadConstraints":  "its selectors are for Cluster Autoscaler's pods; write topologySpreadConstraints for Berth's",
	"hostNetwork":                "the node's port may be kube-scheduler's; set hostNetwork, with another flags.secure-port",
	"prometheusRule":             "its rules are for Cluster Autoscaler; prometheusRule.enabled installs Berth's",
	"nameOverride":               "it is for Cluster Autoscaler's objects; Berth's chart has the same value for Berth's",
	"fullnameOverride":           "it is for Cluster Autoscaler's objects; Berth's chart has the same value for Berth's",
	"clusterAPIKubeconfigSecret": "name the Secret with the management cluster's kubeconfig in cloudConfigSecret",
}

// values reads values of one chart.
// It is used for inner objects as well, wrapped under the key x, so that paths read the
// same there.
type values struct {
	*setup
	in map[string]any
}

// text returns a value as a string, "" for none.
// YAML's numbers and booleans are written as Go writes them, which suits what values are
// used for here.
func (v values) text(path ...string) string {
	value := v.at(path...)
	if value == nil {
		return ""
	}
	return strings.TrimSpace(fmt.Sprint(value))
}

// at returns the value at a path, nil for none.
// A path through something that is no object counts as none: the chart's templates would
// fail there, and the file isn't checked against the chart's schema.
func (v values) at(path ...string) any {
	var value any = v.in
	for _, key := range path {
		m, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = m[key]
	}
	return value
}

// list returns the elements of a list.
func (v values) list(path ...string) []any {
	out, _ := v.at(path...).([]any)
	return out
}

// readValues takes the values of the chart.
// It must run before migrateFlags, which reads the command line that flags makes. The only
// error is a value whose meaning depends on Helm's templates.
func (s *setup) readValues(in map[string]any) error {
	v := values{s, in}
	if err := v.flags(); err != nil {
		return err
	}
	if err := v.serverDefaults(); err != nil {
		return err
	}
	// The report's order must not change between two runs on the same file.
	for _, name := range slices.Sorted(maps.Keys(in)) {
		if empty(in[name]) || slices.Contains(flagValues, name) {
			continue
		}
		v.value(name)
	}
	return nil
}

// value says what becomes of a value that makes no flag.
func (v values) value(name string) {
	// A prefix is enough: no other value of the chart begins with the name of a cloud.
	isCloud := slices.ContainsFunc(clouds, func(cloud string) bool { return strings.HasPrefix(name, cloud) })
	switch {
	case sameValues[name] != "":
		v.same(name)
	case name == "rbac":
		v.account()
	case name == "image":
		v.pullSecrets()
	case name == "extraVolumeSecrets":
		v.secretVolumes()
	case name == "serviceMonitor":
		v.serviceMonitor()
	// minAvailable has no counterpart: Berth's chart knows maxUnavailable only.
	case name == "podDisruptionBudget":
		if most := v.at(name, "maxUnavailable"); !empty(most) {
			v.values[name] = map[string]any{"maxUnavailable": most}
			v.say(name+".maxUnavailable", Kept, "")
		}
	// The ConfigMap belongs to the release of Cluster Autoscaler and goes with it when that
	// is uninstalled.
	case name == "expanderPriorities":
		v.say(name, Changed, "Berth reads the same ConfigMap, cluster-autoscaler-priority-expander, but its chart doesn't make it: apply it yourself")
	case runsInPod(v.text("cloudProvider")) && v.environment(name):
		v.say(name, Provider, "in provider.env or provider.envFrom")
	case runsInPod(v.text("cloudProvider")) && isCloud:
		v.say(name, Provider, "add it to provider.env, and a credential to a Secret that provider.envFrom names (docs/providers.md)")
	case isCloud, strings.HasPrefix(name, "extraEnv"), strings.HasPrefix(name, "envFrom"), name == "secretKeyRefNameOverride":
		v.say(name, Provider, "credentials and the environment are for the process that serves the provider")
	case ownValues[name] != "":
		v.say(name, LeftOut, ownValues[name])
	case otherValues[name] != "":
		v.say(name, NoEffect, otherValues[name])
	default:
		v.say(name, LeftOut, "Berth's chart has no such value")
	}
}

// same keeps a value under Berth's name. A volume of a built-in provider is its server's, which
// mounts it in Berth's pod or elsewhere: Berth talks to that server and has no use for the
// certificates that such a volume holds.
func (v values) same(name string) {
	switch {
	case runsInPod(v.text("cloudProvider")) && name == "extraVolumeMounts":
		v.server.mounts = append(v.server.mounts, v.list(name)...)
		v.say(name, Provider, "as provider.volumeMounts")
		return
	case strings.HasPrefix(name, "extraVolume") && v.isElsewhere():
		v.say(name, Provider, "if it holds what the provider reads, mount it there; otherwise add it to %s", sameValues[name])
		return
	}
	v.values[sameValues[name]] = v.in[name]
	why := ""
	if to := sameValues[name]; to != name {
		why = "as " + to
	}
	v.say(name, Kept, why)
}

// account takes the annotations of the ServiceAccount, which give it a role in the cloud.
// The role is needed where the cloud is called: in Berth's pod, unless the provider's server runs
// elsewhere.
func (v values) account() {
	annotations := v.at("rbac", "serviceAccount", "annotations")
	switch {
	case empty(annotations):
	case v.isElsewhere():
		v.say("rbac.serviceAccount.annotations", Provider, "the role in the cloud is for the process that serves the provider")
	default:
		v.values["serviceAccount"] = map[string]any{"annotations": annotations}
		v.say("rbac.serviceAccount.annotations", Kept, "as serviceAccount.annotations")
	}
	// The rest of rbac is about rights for Cluster Autoscaler; Berth's chart derives them
	// from its flags.
	v.say("rbac", NoEffect, otherValues["rbac"])
}

// pullSecrets takes the names of Secrets for pulling images.
func (v values) pullSecrets() {
	var out []any
	// The charts differ in form: names there, objects with a name here.
	for _, name := range v.list("image", "pullSecrets") {
		out = append(out, map[string]any{"name": name})
	}
	if len(out) > 0 {
		v.values["imagePullSecrets"] = out
		v.say("image.pullSecrets", Kept, "as imagePullSecrets")
	}
	v.say("image", NoEffect, otherValues["image"])
}

// secretVolumes makes volumes of Secrets.
func (v values) secretVolumes() {
	if v.isElsewhere() {
		v.say("extraVolumeSecrets", Provider, "if they hold what the provider reads, mount them there")
		return
	}
	secrets, _ := v.at("extraVolumeSecrets").(map[string]any)
	volumes, mounts, mounted := v.list("extraVolumes"), []any{}, "extraVolumeMounts"
	if runsInPod(v.text("cloudProvider")) {
		mounted = "provider.volumeMounts"
	}
	for _, name := range slices.Sorted(maps.Keys(secrets)) {
		s := values{v.setup, map[string]any{"x": secrets[name]}}
		// Without a name the chart mounts the Secret that it makes itself of secretKeyRefs;
		// that Secret goes with the release.
		if s.text("x", "name") == "" {
			v.say("extraVolumeSecrets."+name, LeftOut, "it is of the release's own Secret; add it to extraVolumes with the Secret's name")
			continue
		}
		secret := map[string]any{"secretName": s.text("x", "name")}
		if items := s.at("x", "items"); items != nil {
			secret["items"] = items
		}
		volumes = append(volumes, map[string]any{"name": name, "secret": secret})
		mounts = append(mounts, map[string]any{"name": name, "mountPath": s.text("x", "mountPath"), "readOnly": true})
		v.say("extraVolumeSecrets."+name, Kept, "as extraVolumes and "+mounted)
	}
	if len(mounts) == 0 {
		return
	}
	v.values["extraVolumes"], v.in["extraVolumes"] = volumes, volumes // which is read after this, and replaces what is there
	if runsInPod(v.text("cloudProvider")) {
		v.server.mounts = append(v.server.mounts, mounts...)
	} else {
		v.values["extraVolumeMounts"] = slices.Concat(v.list("extraVolumeMounts"), mounts)
	}
}

// serviceMonitor takes what Berth's ServiceMonitor has.
// Paths, ports and TLS are set by Berth's chart: Cluster Autoscaler's are for plain HTTP.
func (v values) serviceMonitor() {
	if v.at("serviceMonitor", "enabled") != true {
		return
	}
	out := map[string]any{"enabled": true}
	if interval := v.text("serviceMonitor", "interval"); interval != "" {
		out["interval"] = interval
	}
	if labels := v.at("serviceMonitor", "selector"); !empty(labels) {
		out["labels"] = labels
	}
	v.values["serviceMonitor"] = out
	v.say("serviceMonitor", Changed, "it is in Berth's namespace; of its settings enabled, interval and selector (as labels) are kept")
}

// flags makes the command line that the chart makes of the values.
// Of some flags the last one counts, so their order is always the same.
func (v values) flags() error {
	provider := v.text("cloudProvider")
	if provider == "" {
		provider = "aws" // the chart's default
		// It is written back, so that isExternal sees the default as well.
		v.in["cloudProvider"] = provider
	}
	v.arg("cloud-provider", provider)
	for _, g := range v.list("autoscalingGroups") {
		g := values{v.setup, map[string]any{"x": g}}
		v.arg("nodes", g.text("x", "minSize")+":"+g.text("x", "maxSize")+":"+g.text("x", "name"))
	}
	v.discovery(provider)
	if path := v.text("cloudConfigPath"); path != "" && provider != "gce" {
		v.arg("cloud-config", path)
	}
	if provider == "clusterapi" {
		v.clusterAPI()
	}
	extra, _ := v.at("extraArgs").(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(extra)) {
		// The suffix lets a map have a flag twice: node-group-auto-discovery_1 and _2.
		name, _, _ := strings.Cut(key, "_") // the chart ignores what is behind
		if extra[key] == nil {
			v.args = append(v.args, "--"+name)
		} else {
			v.arg(name, fmt.Sprint(extra[key]))
		}
	}
	for _, arg := range v.list("customArgs") {
		v.args = append(v.args, fmt.Sprint(arg))
	}
	// Helm evaluates some values as templates. Without the release there is nothing to
	// evaluate them with, and passing one on as it is would make a flag that means
	// something else.
	for _, arg := range v.args {
		if strings.Contains(arg, "{{") {
			return fmt.Errorf("%q has a template; write out what Helm makes of it", arg)
		}
	}
	return nil
}

// arg adds a flag to the command line.
// The one template that the chart's own defaults contain is filled in here.
func (v values) arg(name, value string) {
	value = strings.ReplaceAll(value, "{{ .Values.autoDiscovery.clusterName }}", v.text("autoDiscovery", "clusterName"))
	v.args = append(v.args, "--"+name+"="+value)
}

// discovery adds the flags by which a provider finds its groups.
// Providers differ in whether a cluster's name alone is enough; without what they need the
// chart adds no flag, and neither does this.
func (v values) discovery(provider string) {
	cluster := v.text("autoDiscovery", "clusterName")
	switch provider {
	case "aws":
		tags := []string{"k8s.io/cluster-autoscaler/enabled", "k8s.io/cluster-autoscaler/" + cluster}
		// Tags of the user's replace the default ones; they aren't added to them.
		if given := v.list("autoDiscovery", "tags"); given != nil {
			tags = nil
			for _, tag := range given {
				tags = append(tags, fmt.Sprint(tag))
			}
		}
		if cluster != "" {
			v.arg("node-group-auto-discovery", "asg:tag="+strings.Join(tags, ","))
		}
	case "gce":
		for _, g := range v.list("autoscalingGroupsnamePrefix") {
			g := values{v.setup, map[string]any{"x": g}}
			v.arg("node-group-auto-discovery", "mig:namePrefix="+g.text("x", "name")+",min="+g.text("x", "minSize")+",max="+g.text("x", "maxSize"))
		}
	case "azure":
		if cluster != "" {
			v.arg("node-group-auto-discovery", "label:cluster-autoscaler-enabled=true,cluster-autoscaler-name="+cluster)
		}
	case "magnum":
		// Groups may be listed instead of found; then the cluster is named by a value of
		// its own.
		if name := v.text("magnumClusterName"); cluster == "" && name != "" {
			v.arg("cluster-name", name)
		} else if cluster != "" {
			v.arg("cluster-name", cluster)
			v.arg("node-group-auto-discovery", "magnum:role=worker")
		}
	case "clusterapi":
		var by []string
		for _, key := range []string{"clusterName", "namespace"} {
			if value := v.text("autoDiscovery", key); value != "" {
				by = append(by, key+"="+value)
			}
		}
		for _, labels := range v.list("autoDiscovery", "labels") {
			m, _ := labels.(map[string]any)
			for _, key := range slices.Sorted(maps.Keys(m)) {
				by = append(by, key+"="+fmt.Sprint(m[key]))
			}
		}
		if len(by) > 0 {
			v.arg("node-group-auto-discovery", "clusterapi:"+strings.Join(by, ","))
		}
	}
}

// clusterAPI adds the flags that say which cluster has the objects of Cluster API.
// The mode says for each of two clusters, that with the pods and that with the Machines,
// whether it is reached in the cluster or by a kubeconfig. Its name has the one with the
// pods first.
func (v values) clusterAPI() {
	mode := v.text("clusterAPIMode")
	path := func(name, byDefault string) string {
		if text := v.text(name); text != "" {
			return text
		}
		return byDefault
	}
	if mode == "kubeconfig-incluster" || mode == "kubeconfig-kubeconfig" || mode == "single-kubeconfig" {
		v.arg("kubeconfig", path("clusterAPIWorkloadKubeconfigPath", "/etc/kubernetes/value"))
	}
	if mode == "kubeconfig-incluster" {
		v.args = append(v.args, "--clusterapi-cloud-config-authoritative")
	}
	if mode == "incluster-kubeconfig" || mode == "kubeconfig-kubeconfig" {
		v.arg("cloud-config", path("clusterAPICloudConfigPath", "/etc/kubernetes/mgmt-kubeconfig"))
	}
}
