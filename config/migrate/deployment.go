package migrate

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// This file reads a Deployment of Cluster Autoscaler's.
// It stands for the whole release: its command line is what values would have made, with
// Helm's templates filled in and the user's patches applied.

// readManifest takes an object of a manifest. Of others than Deployments and Pods nothing is needed.
// A manifest often holds the ServiceAccount, the roles and a Service as well; those are
// passed over.
func (s *setup) readManifest(text string, doc map[string]any) error {
	var pod v1.PodSpec
	switch doc["kind"] {
	case "Deployment":
		var d appsv1.Deployment
		if err := yaml.Unmarshal([]byte(text), &d); err != nil {
			return err
		}
		pod = d.Spec.Template.Spec
		if d.Spec.Replicas != nil {
			s.values["replicas"] = int(*d.Spec.Replicas)
		}
	case "Pod":
		var p v1.Pod
		if err := yaml.Unmarshal([]byte(text), &p); err != nil {
			return err
		}
		pod = p.Spec
	// kubectl get -o yaml prints several objects as one List. A List in a List is read,
	// too.
	case "List":
		items, _ := doc["items"].([]any)
		for i, item := range items {
			inner, ok := item.(map[string]any)
			if !ok {
				return fmt.Errorf("items[%d] is no object", i)
			}
			raw, err := yaml.Marshal(inner)
			if err != nil {
				return err
			}
			if err := s.readManifest(string(raw), inner); err != nil {
				return fmt.Errorf("items[%d]: %w", i, err)
			}
		}
		return nil
	default:
		return nil
	}
	return s.readPod(&pod)
}

// readPod takes the command line of the container that is Cluster Autoscaler, and what the chart has of the pod.
// A pod without such a container is not an error: other pods may stand in the same file.
func (s *setup) readPod(pod *v1.PodSpec) error {
	for i := range pod.Containers {
		c := &pod.Containers[i]
		line := slices.Concat(c.Command, c.Args)
		// It is known by the name of the program, or by the container's name or image, for
		// images with an entrypoint of their own.
		is := func(arg string) bool { return strings.HasSuffix(arg, "cluster-autoscaler") }
		at := slices.IndexFunc(line, is)
		switch {
		case at > 0:
			return fmt.Errorf("container %s starts Cluster Autoscaler by another program (%s); give its flags behind -- instead", c.Name, strings.Join(line[:at], " "))
		case at < 0 && !is(c.Name) && !strings.Contains(c.Image, "cluster-autoscaler"):
			continue
		}
		args := line[at+1:]
		// The kubelet expands $(NAME) from the environment, which may come from a Secret
		// that isn't here.
		if j := slices.IndexFunc(args, func(arg string) bool { return strings.Contains(arg, "$(") }); j >= 0 {
			return fmt.Errorf("container %s: %q has a variable; write out its value", c.Name, args[j])
		}
		s.args = append(s.args, args...)
		return s.pod(pod, c)
	}
	return nil
}

// pod keeps what both charts have of a pod.
// What only makes sense beside Cluster Autoscaler's own containers is handed to the
// provider's server or left out.
func (s *setup) pod(pod *v1.PodSpec, c *v1.Container) error {
	keep := func(name string, value any) error {
		var out any
		if err := throughYAML(value, &out); err != nil {
			return err
		}
		if !empty(out) {
			s.values[name] = out
			s.say("the pod's "+name, Kept, "")
		}
		return nil
	}
	// Of resources requests and limits are kept; claims name devices of the old pod.
	for _, x := range []struct {
		name  string
		value any
	}{{"nodeSelector", pod.NodeSelector}, {"tolerations", pod.Tolerations}, {"priorityClassName", pod.PriorityClassName}, {"imagePullSecrets", pod.ImagePullSecrets},
		{"resources", v1.ResourceRequirements{Requests: c.Resources.Requests, Limits: c.Resources.Limits}}} {
		if err := keep(x.name, x.value); err != nil {
			return err
		}
	}
	if runsInPod(s.cloudOf()) {
		if err := s.podOfServer(pod, c); err != nil {
			return err
		}
	} else {
		s.podOfOtherServer(pod, c)
	}
	if pod.Affinity != nil {
		s.say("the pod's affinity", LeftOut, ownValues["affinity"])
	}
	return nil
}

// podOfOtherServer says what a server of the provider that runs elsewhere may need.
func (s *setup) podOfOtherServer(pod *v1.PodSpec, c *v1.Container) {
	if len(pod.Volumes) > 0 {
		s.say("the pod's volumes", Provider, "mount there what the provider reads, such as a cloud's certificates and configuration; otherwise add them to extraVolumes")
	}
	if len(c.Env)+len(c.EnvFrom) > 0 {
		s.say("the container's environment", Provider, "credentials and the environment are for the process that serves the provider")
	}
}

// throughYAML writes an object of the API into values, with the API's names of fields and without empty ones.
func throughYAML(object, to any) error {
	raw, err := yaml.Marshal(object)
	if err != nil {
		return fmt.Errorf("writing %T as YAML: %w", object, err)
	}
	return yaml.Unmarshal(raw, to)
}
