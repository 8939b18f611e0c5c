// Package grpctls gives gRPC transport credentials whose TLS is package ossl's, on the OpenSSL of the host.
//
// They stand in for those of package credentials of google.golang.org/grpc, with the same constructors, and pass for them
// everywhere: the peer's AuthInfo is [credentials.TLSInfo] itself. The simplest use changes an import:
//
//	client, err := grpc.NewClient(target, grpc.WithTransportCredentials(grpctls.NewTLS(&tls.Config{RootCAs: roots})))
//	server := grpc.NewServer(grpc.Creds(grpctls.NewServerTLSFromCert(&cert)))
//
// [New] does the same, takes options of package ossl, and tells at once what can't be honoured; NewTLS can only let the
// handshakes tell. [FromContext] uses an [ossl.Context] that is there already.
//
// # ALPN
//
// As in gRPC, a peer that doesn't agree on HTTP/2 by ALPN is refused. gRPC's environment variable GRPC_ENFORCE_ALPN_ENABLED lets
// peers without ALPN pass here too, if it is "false" when the program starts.
//
// docs/GRPC.md has what else there is to know, and the differences from gRPC's own credentials.
package grpctls
