// Package metrics gathers the statistics of Contexts under names, for exporters. The modules
// promossl and otelossl export them to Prometheus and OpenTelemetry; an exporter to another system
// needs only this package:
//
//	var contexts metrics.Contexts
//	remove, err := contexts.Add("web", ctx) // a *ossl.Context
//	...
//	for _, named := range contexts.Stats() {
//		fmt.Println(named.Name, named.Stats.OpenConns)
//	}
//
// The counts of a name only grow, although Contexts come and go: if a program replaces a Context,
// for another certificate for example, the counts of the old one stay in the sum.
package metrics
