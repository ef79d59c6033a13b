// Package live runs a core against a Kubernetes API.
//
//	caches ─▶ inbox ─▶ loop (drive.Driver) ─▶ workers ─▶ API server, provider
//	             ▲                               │
//	             └───────── outcomes ────────────┘
//
// One goroutine, the loop, owns the driver and with it the core. Everything that
// waits for the network runs beside it: caches and workers put inputs into the
// inbox and never wait for a decision. The loop waits for workers only when the
// backlog of one is full, which is how an API server that can't keep up slows
// decisions down.
//
// Calls are divided into budgets (budgets.go), so that reports can't delay binds.
// Each worker answers for the API's peculiarities: which failures pass, and which
// are as good as success.
package live
