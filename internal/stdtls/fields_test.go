package stdtls

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"go/build"
	"reflect"
	"slices"
	"testing"

	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestUnexportedFields fails when a Go release changes a field that this package sets.
func TestUnexportedFields(t *testing.T) {
	var hello tls.ClientHelloInfo
	if SetHelloContext(&hello, t.Context()); hello.Context() != t.Context() {
		t.Error("ClientHelloInfo.ctx can't be set")
	}
	var info tls.CertificateRequestInfo
	if SetRequestContext(&info, t.Context()); info.Context() != t.Context() {
		t.Error("CertificateRequestInfo.ctx can't be set")
	}
	var state tls.ConnectionState
	if !stateExporter.ok {
		t.Fatal("ConnectionState.ekm can't be set")
	}
	SetExporter(&state, func(string, []byte, int) ([]byte, error) { return []byte("exported"), nil })
	if out, err := state.ExportKeyingMaterial("", nil, 0); err != nil || string(out) != "exported" {
		t.Errorf("ExportKeyingMaterial gives %q, %v", out, err)
	}
	release := func(tag string) bool { return slices.Contains(build.Default.ReleaseTags, tag) }
	if release("go1.26") && !stateHelloRetry.ok || release("go1.27") && !stateLocal.ok {
		t.Error("HelloRetryRequest or LocalCertificate can't be set")
	}
	if fieldOf[tls.ConnectionState, int]("no such field").ok || fieldOf[tls.ConnectionState, int]("ekm").ok ||
		fieldOf[tls.ConnectionState, any]("ekm").ok {
		t.Error("found a field that does not exist")
	}
}

// TestPoolRoots fails when a Go release changes the fields of a CertPool: no verified chain is
// remembered until pool.go is adapted.
func TestPoolRoots(t *testing.T) {
	pool := x509.NewCertPool()
	if roots, ok := PoolRoots(pool); !ok || len(roots) != 0 {
		t.Fatalf("an empty pool has %d roots, %v", len(roots), ok)
	}
	pool.AddCert(tlstest.CA().Cert)
	pool.AddCertWithConstraint(tlstest.OtherCA().Cert, func([]*x509.Certificate) error { return nil })
	roots, ok := PoolRoots(pool)
	if !ok || len(roots) != 2 || !bytes.Equal(roots[0].rawSubject, tlstest.CA().Cert.RawSubject) {
		t.Fatalf("a pool of two has %d roots, %v", len(roots), ok)
	}
	if roots[0].HasConstraint() || !roots[1].HasConstraint() {
		t.Error("the wrong root has a constraint")
	}
	if sameFields(reflect.TypeFor[struct{ a, b int }](), reflect.TypeFor[struct{ a int }]()) ||
		sameFields(reflect.TypeFor[struct{ a int }](), reflect.TypeFor[struct{ b int }]()) ||
		sameFields(reflect.TypeFor[struct{ a int }](), reflect.TypeFor[struct{ a uint }]()) ||
		sameFields(reflect.TypeFor[int](), reflect.TypeFor[int]()) {
		t.Error("structs of other fields are the same")
	}
}

// TestPoolCertificates fails when a Go release changes the fields of a CertPool: FIPS mode refuses
// RootCAs and ClientCAs until pool.go is adapted.
func TestPoolCertificates(t *testing.T) {
	pool := x509.NewCertPool()
	if certs, err := PoolCertificates(pool); err != nil || len(certs) != 0 {
		t.Fatalf("an empty pool: %d certificates, %v", len(certs), err)
	}
	pool.AddCert(tlstest.CA().Cert)
	pool.AppendCertsFromPEM(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: tlstest.OtherCA().Cert.Raw}))
	certs, err := PoolCertificates(pool)
	if err != nil || len(certs) != 2 || !certs[0].Equal(tlstest.CA().Cert) || !certs[1].Equal(tlstest.OtherCA().Cert) {
		t.Errorf("a pool of two: %d certificates, %v", len(certs), err)
	}
	pool.AddCertWithConstraint(tlstest.Intermediate().Cert, func([]*x509.Certificate) error { return nil })
	if _, err := PoolCertificates(pool); err == nil {
		t.Error("a constraint is lost")
	}
}

// TestTicketKeys fails when a Go release keeps ticket keys in another way.
func TestTicketKeys(t *testing.T) {
	config := new(tls.Config)
	if keys, ok := TicketKeys(config); !ok || len(keys) != 0 || !ticketKeysLayout().ok {
		t.Fatalf("a configuration without ticket keys has %d, %v", len(keys), ok)
	}
	//lint:ignore SA1019 deprecated, and still honoured by crypto/tls
	config.SessionTicketKey = [32]byte{2}
	first, ok := TicketKeys(config)
	if !ok || len(first) != 1 {
		t.Fatalf("SessionTicketKey gives %d keys, %v", len(first), ok)
	}
	config.SetSessionTicketKeys([][32]byte{{1}, {2}})
	keys, ok := TicketKeys(config)
	if !ok || len(keys) != 2 {
		t.Fatalf("SetSessionTicketKeys with two keys gives %d, %v", len(keys), ok)
	}
	if keys[0] == keys[1] || keys[1] != first[0] {
		t.Error("one secret gives another key material by SetSessionTicketKeys than by SessionTicketKey")
	}
}

// TestSessionTemplate: crypto/tls makes a session, and can encode it.
func TestSessionTemplate(t *testing.T) {
	state, err := SessionTemplate()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := state.Bytes(); err != nil {
		t.Error(err)
	}
}
