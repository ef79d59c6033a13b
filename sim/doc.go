// Package sim is a virtual world: an API, kubelets, controllers, a cloud and a
// storage in virtual time, in which the real core schedules and scales. It has
// no goroutine and no clock; what is random is drawn from the scenario's seed.
// Nothing in the core knows which world it is in.
//
// Time advances in ticks. Within a tick calls of Berth's reach the API first,
// in the order in which they were made; then the world moves, in an order
// shuffled by the seed; then changes reach Berth; then Berth takes its Steps.
package sim
