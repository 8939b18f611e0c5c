package grpctls_test

import (
	"context"
	"crypto/tls"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/ossl-go/ossl/grpctls"
)

// authorityEcho returns the :authority of the call.
var authorityEcho = &echo{unary: func(ctx context.Context, _ []byte) ([]byte, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	return []byte(md.Get(":authority")[0]), nil
}}

func TestAuthority(t *testing.T) {
	noName := func(c *tls.Config) { c.ServerName = "" }
	for _, test := range []struct {
		name   string
		config func(*tls.Config)
		dial   []grpc.DialOption
		call   []grpc.CallOption
		code   codes.Code
		want   string // the authority, or the text of the status
	}{
		{name: "of the target", config: noName, want: "127.0.0.1"},
		{name: "of the credentials", want: serverName},
		{name: "of the channel", config: noName, dial: []grpc.DialOption{grpc.WithAuthority(serverName + ":99")},
			want: serverName + ":99"},
		{name: "of the channel, wrong", config: noName, dial: []grpc.DialOption{grpc.WithAuthority(otherName)},
			code: codes.Unavailable, want: "certificate is valid for server.test, not other.test"},
		{name: "of the call", config: noName, call: []grpc.CallOption{grpc.CallAuthority(serverName)}, want: serverName},
		{name: "of the call, wrong", config: noName, call: []grpc.CallOption{grpc.CallAuthority(otherName)}, code: codes.Unavailable,
			want: `failed to validate authority "other.test"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			pairings(t, func(t *testing.T, server, client impl) {
				config := clientConfig()
				if test.config != nil {
					test.config(config)
				}
				s := serve(t, server.creds(serverConfig()), authorityEcho)
				got, err := call(soon(t), dial(t, s.addr, client.creds(config), test.dial...), nil, test.call...)
				want := test.want
				if want == "127.0.0.1" {
					want = s.addr
				}
				if status.Code(err) != test.code || err == nil && string(got) != want || err != nil && !says(err, want) {
					t.Errorf("%q, %v; want %q, status %v", got, err, want, test.code)
				}
			})
		})
	}
}

// TestAuthorityTwice checks that a channel is refused if its authority and the credentials' differ.
func TestAuthorityTwice(t *testing.T) {
	for _, who := range impls {
		cc, err := grpc.NewClient("passthrough:///x", grpc.WithTransportCredentials(who.creds(clientConfig())),
			grpc.WithAuthority(otherName))
		if err == nil {
			_ = cc.Close()
			t.Errorf("%s: no error", who.name)
		}
	}
}

// A token is sent with each call, only over secure connections.
type token struct{ level credentials.SecurityLevel }

func (k token) GetRequestMetadata(ctx context.Context, _ ...string) (map[string]string, error) {
	info, _ := credentials.RequestInfoFromContext(ctx)
	if err := credentials.CheckSecurityLevel(info.AuthInfo, k.level); err != nil {
		return nil, err
	}
	return map[string]string{"authorization": "Bearer secret"}, nil
}

func (k token) RequireTransportSecurity() bool { return true }

func TestPerRPCCredentials(t *testing.T) {
	service := &echo{unary: func(ctx context.Context, _ []byte) ([]byte, error) {
		md, _ := metadata.FromIncomingContext(ctx)
		if got := md.Get("authorization"); len(got) == 1 {
			return []byte(got[0]), nil
		}
		return nil, status.Error(codes.Unauthenticated, "no token")
	}}
	k := token{credentials.PrivacyAndIntegrity}
	pairings(t, func(t *testing.T, server, client impl) {
		s := serve(t, server.creds(serverConfig()), service)
		for name, cc := range map[string]*grpc.ClientConn{
			"channel": dial(t, s.addr, client.creds(clientConfig()), grpc.WithPerRPCCredentials(k)),
			"call":    dial(t, s.addr, client.creds(clientConfig())),
		} {
			var opts []grpc.CallOption
			if name == "call" {
				opts = append(opts, grpc.PerRPCCredentials(k))
			}
			if got, err := call(soon(t), cc, nil, opts...); err != nil || string(got) != "Bearer secret" {
				t.Errorf("%s's: %q, %v", name, got, err)
			}
		}
	})
	t.Run("insecure", func(t *testing.T) {
		checkGoroutines(t)
		cc := dial(t, serve(t, insecure.NewCredentials(), service).addr, insecure.NewCredentials())
		if got, err := call(soon(t), cc, nil, grpc.PerRPCCredentials(k)); status.Code(err) != codes.Unauthenticated || len(got) > 0 {
			t.Errorf("%q, %v; want a refusal without transport security", got, err)
		}
	})
}

// TestNewClient checks that NewClient uses the credentials of the configuration, even if the
// options have others.
func TestNewClient(t *testing.T) {
	checkGoroutines(t)
	s := serve(t, std.creds(serverConfig()), nil)
	cc, err := grpctls.NewClient("passthrough:///"+s.addr, clientConfig(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer cc.Close()
	if got, err := call(soon(t), cc, []byte("hello")); err != nil || string(got) != "hello" {
		t.Errorf("%q, %v", got, err)
	}
	wrong, err := grpctls.NewClient("passthrough:///"+s.addr, &tls.Config{ServerName: serverName})
	if err != nil {
		t.Fatal(err)
	}
	defer wrong.Close()
	if _, err := call(soon(t), wrong, nil); status.Code(err) != codes.Unavailable || !says(err, "unknown authority") {
		t.Errorf("%v, want Unavailable for an unknown authority", err)
	}
}
