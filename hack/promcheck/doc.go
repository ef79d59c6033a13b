// Package promcheck checks with Prometheus' own library what deploy/monitoring has: the alert
// rules parse, and every expression of rules and dashboard finds its metrics and labels in a
// scrape that edge/observe records.
package promcheck
