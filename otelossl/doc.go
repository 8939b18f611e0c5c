// Package otelossl gives OpenTelemetry metrics of ossl's connections, and a span of each handshake.
//
//	tel, err := otelossl.New(metrics.Process)
//	...
//	defer tel.Close()
//	ctx, err := ossl.NewContext(config, tel.Events(""))
//
// exports the statistics of the process, and the durations and spans of the Contexts that have the
// option. With a [metrics.Contexts] each Context has its own statistics, with the attribute
// "ossl.context.name":
//
//	var contexts metrics.Contexts
//	tel, err := otelossl.New(&contexts)
//	...
//	ctx, err := ossl.NewContext(config, tel.Events("web"))
//	remove, err := contexts.Add("web", ctx)
//
// Names and attributes follow OpenTelemetry's semantic conventions if these have them: "tls.*",
// "network.*", "server.address" and "error.type", which is the class of an [ossl.Failure]. No
// attribute of a metric has a value that the peer chooses freely. docs/OBSERVABILITY.md lists the
// metrics and the attributes.
package otelossl
