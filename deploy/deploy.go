// Package deploy has the kustomizations that Berth is deployed with, for programs that deploy
// it to a cluster. They are generated from the chart beside them.
package deploy

import "embed"

// Kustomize has kustomize/base and kustomize/overlays.
//
//go:embed kustomize
var Kustomize embed.FS
