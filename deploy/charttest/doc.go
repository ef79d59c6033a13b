// Package charttest tests deploy/: that the chart and the kustomization have the same content,
// that values with a mistake are refused, that make image builds an image with the program and
// nothing else, and that the chart can be installed, upgraded and uninstalled on a dev cluster,
// where that image runs by it. It is a module of its own since Helm's libraries ask for other
// versions of what k8s.io/kubernetes imports than the dev cluster does.
package charttest
