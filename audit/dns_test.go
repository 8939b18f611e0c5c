package audit

import (
	"context"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/ossl-go/ossl/audit/internal/testcert"
)

// resolver answers questions by UDP, and by TCP if large.
func resolver(t *testing.T, answer func(q dnsmessage.Question) (dnsmessage.RCode, []dnsmessage.ResourceBody)) *net.Resolver {
	t.Helper()
	reply := func(packet []byte, truncate bool) []byte {
		var m dnsmessage.Message
		if err := m.Unpack(packet); err != nil || len(m.Questions) != 1 {
			return nil
		}
		code, bodies := answer(m.Questions[0])
		m.Response, m.RCode, m.Additionals = true, code, nil
		for _, b := range bodies {
			header := dnsmessage.ResourceHeader{Name: m.Questions[0].Name, Type: m.Questions[0].Type, Class: dnsmessage.ClassINET}
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: b})
		}
		out, err := m.Pack()
		if truncate && len(out) > udpSize {
			m.Answers, m.Truncated = nil, true
			out, err = m.Pack()
		}
		if err != nil {
			return nil
		}
		return out
	}
	return &net.Resolver{PreferGo: true, Dial: func(_ context.Context, network, _ string) (net.Conn, error) {
		client, server := net.Pipe()
		go func() {
			defer server.Close()
			server.SetDeadline(time.Now().Add(5 * time.Second))
			buffer := make([]byte, 4096)
			n, err := server.Read(buffer)
			if err != nil {
				return
			}
			if network == "udp" {
				server.Write([]byte("no answer to anything")) // another's packet
				server.Write(reply(buffer[:n], true))
				return
			}
			out := reply(buffer[2:n], false)
			server.Write(append([]byte{byte(len(out) >> 8), byte(len(out))}, out...))
		}()
		return client, nil
	}}
}

func TestDNS(t *testing.T) {
	if _, err := os.Stat(dnsFile); err != nil {
		t.Skip("this system has no " + dnsFile)
	}
	record := func(params ...dnsmessage.SVCParam) dnsmessage.ResourceBody {
		return &dnsmessage.HTTPSResource{SVCBResource: dnsmessage.SVCBResource{
			Priority: 1, Target: dnsmessage.MustNewName("."), Params: params}}
	}
	alpn := dnsmessage.SVCParam{Key: dnsmessage.SVCParamALPN, Value: []byte("\x02h2\x02h3")}
	ech := dnsmessage.SVCParam{Key: dnsmessage.SVCParamECH, Value: make([]byte, 2000)}
	for _, test := range []struct {
		name   string
		port   uint16
		answer func(dnsmessage.Question) (dnsmessage.RCode, []dnsmessage.ResourceBody)
		state  State
		https  string
		caa    string
		ech    bool
	}{
		{"both, and a long answer", 443, func(q dnsmessage.Question) (dnsmessage.RCode, []dnsmessage.ResourceBody) {
			switch {
			case q.Type == dnsmessage.TypeHTTPS && q.Name.String() == "www.example.test.":
				return dnsmessage.RCodeSuccess, []dnsmessage.ResourceBody{record(alpn, ech)}
			case q.Type == typeCAA && q.Name.String() == "example.test.":
				return dnsmessage.RCodeSuccess, []dnsmessage.ResourceBody{
					&dnsmessage.UnknownResource{Type: typeCAA, Data: []byte("\x00\x05issueca.test")}}
			}
			return dnsmessage.RCodeSuccess, nil
		}, Tested, "1 . alpn=h2,h3 ech=(2000 bytes)", `0 issue "ca.test"`, true},
		{"another port", 8443, func(q dnsmessage.Question) (dnsmessage.RCode, []dnsmessage.ResourceBody) {
			if q.Name.String() == "_8443._https.www.example.test." {
				return dnsmessage.RCodeSuccess, []dnsmessage.ResourceBody{record(alpn)}
			}
			return dnsmessage.RCodeNameError, nil
		}, Tested, "1 . alpn=h2,h3", "", false},
		{"server failure", 443, func(dnsmessage.Question) (dnsmessage.RCode, []dnsmessage.ResourceBody) {
			return dnsmessage.RCodeServerFailure, nil
		}, Failed, "", "", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRun("127.0.0.1:1", &testcert.Cases()[0], nil)
			r.target.Host, r.target.Port, r.options.ServerName = "www.example.test", test.port, "www.example.test"
			r.options.Resolver = resolver(t, test.answer)
			if err := probeDNS(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			f := r.facts.DNS
			if f.State != test.state || f.ECH.State != test.state || f.ECH.On != test.ech || strings.Join(f.HTTPS, ";") != test.https ||
				strings.Join(f.CAA, ";") != test.caa {
				t.Errorf("%+v", f)
			}
		})
	}
	for _, name := range []string{"localhost", "127.0.0.1", "::1"} {
		r := newRun("127.0.0.1:1", &testcert.Cases()[0], nil)
		r.target.Host, r.options.ServerName = name, name
		if err := probeDNS(t.Context(), r); err != nil || r.facts.DNS.State != NotTested {
			t.Errorf("%s: %v, %+v", name, err, r.facts.DNS)
		}
	}
}

// TestPresentCAA has tags of all lengths, the longest and impossible ones among them.
func TestPresentCAA(t *testing.T) {
	for length := range 256 {
		data := append([]byte{128, byte(length)}, strings.Repeat("t", length)+"value"...)
		if got, want := presentCAA(data), `128 `+strings.Repeat("t", length)+` "value"`; got != want {
			t.Errorf("a tag of %d bytes: %q", length, got)
		}
		if length > 0 && presentCAA(data[:length+1]) != "(malformed)" {
			t.Errorf("a tag of %d bytes, cut off: %q", length, presentCAA(data[:length+1]))
		}
	}
}

func FuzzAnswer(f *testing.F) {
	question, err := newQuestion("example.test", dnsmessage.TypeHTTPS)
	if err != nil {
		f.Fatal(err)
	}
	question.ID = 0
	reply := *question
	reply.Response, reply.Additionals = true, nil
	packet, err := reply.Pack()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(packet)
	for _, length := range []byte{253, 254, 255} {
		f.Add(append([]byte{0, length}, make([]byte, 255)...))
	}
	f.Fuzz(func(t *testing.T, packet []byte) {
		answers, _, err := parseAnswer(packet, question)
		for _, a := range answers {
			if record, ok := a.Body.(*dnsmessage.HTTPSResource); ok && err == nil {
				presentHTTPS(record)
			}
		}
		presentCAA(packet)
		presentALPN(packet)
	})
}
