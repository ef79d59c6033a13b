// Package nodeprices reads price files (--node-prices): what a node costs an hour, by its labels. It is for
// clouds whose provider states no prices, and for prices that differ from those of the price list.
//
//	file.go        the text, and all that may be wrong with it
//	prices.go      rules, and which of them a node matches first
//	write.go       a price file of rules that another program made
//	currencies.go  the codes of ISO 4217
package nodeprices
